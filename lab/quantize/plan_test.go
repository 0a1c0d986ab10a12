package quantize

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
)

// plans are the types that llama-quantize gives to the tensors of models(); see
// testdata/plans.py.
//
//go:embed testdata/plans.json
var plans []byte

// shapes are the matrices of a layer.
type shapes map[string][]int

func (s shapes) with(more shapes) shapes {
	out := maps.Clone(s)
	maps.Copy(out, more)
	return out
}

// models are those of plans.py.
func models(t *testing.T) map[string]*gguf.File {
	layer := shapes{
		"attn_q": {256, 8}, "attn_k": {256, 8}, "attn_v": {256, 8}, "attn_output": {256, 8},
		"ffn_gate": {256, 8}, "ffn_up": {256, 8}, "ffn_down": {256, 8},
	}
	experts := shapes{
		"attn_q": {256, 8}, "attn_k": {256, 8}, "attn_v": {256, 8}, "attn_output": {256, 8}, "ffn_gate_inp": {256, 8},
		"ffn_gate_exps": {256, 8, 8}, "ffn_up_exps": {256, 8, 8}, "ffn_down_exps": {256, 8, 8},
	}
	return map[string]*gguf.File{
		"llama":     model(t, "llama", 32, 32, 8, 0, true, layer),
		"llama-70b": model(t, "llama", 80, 64, 8, 0, true, layer),
		"mixtral":   model(t, "llama", 12, 32, 8, 8, true, experts),
		"tied":      model(t, "qwen3", 28, 16, 8, 0, false, layer.with(shapes{"ffn_down": {320, 8}, "attn_output": {80, 8}, "attn_v": {128, 8}})),
		"phi":       model(t, "phi3", 24, 32, 32, 0, true, shapes{"attn_qkv": {256, 8}, "attn_output": {256, 8}, "ffn_up": {256, 8}, "ffn_down": {256, 8}}),
		"moe":       model(t, "qwen3moe", 24, 32, 4, 128, true, experts),
	}
}

// model makes one of noughts.
func model(t *testing.T, arch string, layers, heads, headsKV, experts int, output bool, layer shapes) *gguf.File {
	meta := gguf.Metadata{
		"general.architecture": arch, arch + ".block_count": uint32(layers),
		arch + ".attention.head_count": uint32(heads), arch + ".attention.head_count_kv": uint32(headsKV),
	}
	if experts > 0 {
		meta[arch+".expert_count"] = uint32(experts)
	}
	all := shapes{"output_norm.weight": {256}, "token_embd.weight": {256, 8}}
	if output {
		all["output.weight"] = []int{256, 8}
	}
	for i := range layers {
		for name, dims := range layer {
			all[fmt.Sprintf("blk.%d.%s.weight", i, name)] = dims
		}
		all[fmt.Sprintf("blk.%d.attn_norm.weight", i)] = []int{256}
	}
	var tensors []gguf.Tensor
	for name, dims := range all { // in any order
		x := gguf.Tensor{Name: name, Type: gguf.F16, Dims: dims}
		if len(dims) == 1 || strings.Contains(name, "gate_inp") {
			x.Type = gguf.F32
		}
		x.Data = make([]byte, x.Bytes())
		tensors = append(tensors, x)
	}
	return parsed(t, meta, tensors)
}

// types lists names and types as plans.py does.
func types(p *Plan) string {
	var lines []string
	for i := range p.Tensors {
		lines = append(lines, fmt.Sprintf("%s %v\n", p.Tensors[i].Name, p.Tensors[i].To))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func TestTensorsHaveTheTypesOfTheReference(t *testing.T) {
	var want map[string]string
	if err := json.Unmarshal(plans, &want); err != nil {
		t.Fatal(err)
	}
	files := models(t)
	if len(want) != 36*len(files) {
		t.Fatalf("%d plans, want %d", len(want), 36*len(files))
	}
	none := collectedBy(t, new(Collector))
	for key, sum := range want {
		name, typ, _ := strings.Cut(key, " ")
		typ, weighed := strings.CutSuffix(typ, " weighed")
		opt := Options{Type: named(t, typ)}
		if weighed {
			opt.Importance = none
		}
		p, err := NewPlan(files[name], opt)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if got := types(p); digest([]byte(got)) != sum {
			t.Errorf("%s: not the types of the reference%s", key, firstDifference(key, got))
		}
	}
}

// firstDifference says where lines part, if LUTRA_GOLDEN_QUANTIZE is the folder that plans.py
// wrote them into.
func firstDifference(key, got string) string {
	want, err := os.ReadFile(filepath.Join(os.Getenv("LUTRA_GOLDEN_QUANTIZE"), key))
	if err != nil {
		return ""
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			return fmt.Sprintf(": %q, want %q", line, lines[min(i, len(lines)-1)])
		}
	}
	return ": some are missing"
}

// collectedBy writes what c has collected and opens it.
func collectedBy(t *testing.T, c *Collector) *Importance {
	t.Helper()
	c.Add("none", 0, 1, make([]float32, 256))
	meta, tensors, err := c.File("text", 3, 512)
	if err != nil {
		t.Fatal(err)
	}
	return opened(t, meta, tensors)
}

func opened(t *testing.T, meta gguf.Metadata, tensors []gguf.Tensor) *Importance {
	t.Helper()
	m, err := OpenImportance(stored(t, meta, tensors))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestFlagsComeBeforeRules(t *testing.T) {
	f := models(t)["llama"]
	q8, bf16 := gguf.Q8_0, gguf.BF16
	for _, c := range []struct {
		opt  Options
		want map[string]gguf.Type
	}{
		{Options{Pure: true}, map[string]gguf.Type{"output.weight": gguf.Q4_K, "blk.0.attn_v.weight": gguf.Q4_K, "token_embd.weight": gguf.Q4_K}},
		{Options{Output: &q8, Embedding: &bf16}, map[string]gguf.Type{"output.weight": q8, "token_embd.weight": bf16, "blk.0.attn_v.weight": gguf.Q6_K}},
		{
			Options{Tensors: []Override{{regexp.MustCompile(`blk\.[01]\.attn_v`), gguf.Q8_0}, {regexp.MustCompile("attn_v"), gguf.Q4_0}}},
			map[string]gguf.Type{"blk.1.attn_v.weight": gguf.Q8_0, "blk.2.attn_v.weight": gguf.Q4_0, "blk.0.ffn_down.weight": gguf.Q6_K},
		},
	} {
		c.opt.Type = named(t, "Q4_K_M")
		p, err := NewPlan(f, c.opt)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Tensors {
			if want, ok := c.want[p.Tensors[i].Name]; ok && p.Tensors[i].To != want {
				t.Errorf("%s is %v, want %v", p.Tensors[i].Name, p.Tensors[i].To, want)
			}
		}
	}
}

func TestRowsThatAreNoWholeBlocksHaveATypeThatFits(t *testing.T) {
	for _, c := range []struct {
		of   gguf.Type
		cols int
		want gguf.Type
	}{
		{gguf.Q4_K, 512, gguf.Q4_K}, {gguf.Q4_K, 96, gguf.Q5_0}, {gguf.Q6_K, 96, gguf.Q8_0}, {gguf.Q6_K, 80, gguf.F16},
		{gguf.I2_S, 192, gguf.Q2_0}, {gguf.TQ2_0, 128, gguf.Q4_0}, {gguf.PQ2_0, 96, gguf.Q4_0}, {gguf.PQ2_0, 20, gguf.F16},
	} {
		if got := fitting(c.of, c.cols); got != c.want {
			t.Errorf("fitting(%v, %d) = %v, want %v", c.of, c.cols, got, c.want)
		}
	}
}

func TestNumbersOfAModelThatMakeNoSenseAreRefused(t *testing.T) {
	f := models(t)["mixtral"]
	f.Metadata["llama.block_count"] = uint32(3) // there are twelve
	if _, err := NewPlan(f, Options{Type: named(t, "Q4_K_M")}); err == nil || !strings.Contains(err.Error(), "blk.3.ffn_down_exps.weight") {
		t.Errorf("a layer beyond block_count: %v", err)
	}
	f.Metadata["llama.expert_count"] = int64(-8)
	if _, err := NewPlan(f, Options{Type: named(t, "Q4_K_M")}); err == nil || !strings.Contains(err.Error(), "llama.expert_count") {
		t.Errorf("-8 experts: %v", err)
	}
}
