package models

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/models/kv"
)

// altered is the reference model of the llama architecture after change.
func altered(t *testing.T, change func(md gguf.Metadata, tensors []gguf.Tensor) []gguf.Tensor) *gguf.File {
	t.Helper()
	f, err := gguf.Open("testdata/golden/llama3-rope-tied/model.gguf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	md := maps.Clone(f.Metadata)
	var b strings.Builder
	if err := gguf.Write(&b, md, change(md, slices.Clone(f.Tensors))); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAModelThatCannotRunIsRefusedByName(t *testing.T) {
	sweep.NoEmulator(t)
	pool := pool.New(1)
	defer pool.Close()
	set := func(key string, v any) func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor {
		return func(md gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
			if md[key] = v; v == nil {
				delete(md, key)
			}
			return ts
		}
	}
	without := func(name string) func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor {
		return func(_ gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
			return slices.DeleteFunc(ts, func(t gguf.Tensor) bool { return t.Name == name })
		}
	}
	vector := func(name string, v ...float32) func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor {
		return func(_ gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
			data := make([]byte, 4*len(v))
			for i, x := range v {
				b := math.Float32bits(x)
				data[4*i], data[4*i+1], data[4*i+2], data[4*i+3] = byte(b), byte(b>>8), byte(b>>16), byte(b>>24)
			}
			ts = slices.DeleteFunc(ts, func(t gguf.Tensor) bool { return t.Name == name })
			return append(ts, gguf.Tensor{Name: name, Type: gguf.F32, Dims: []int{len(v)}, Data: data})
		}
	}
	// A reward model whose head has two matrices, and something between them.
	reward := func(between any, dense int) func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor {
		return func(md gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
			md["llama.pooling_type"] = uint32(4)
			if between != nil {
				md["lutra.verifier.activation"] = between
			}
			return append(ts, gguf.Tensor{Name: "cls.output.weight", Type: gguf.F32, Dims: []int{128}, Data: make([]byte, 4*128)},
				gguf.Tensor{Name: "cls.weight", Type: gguf.F32, Dims: []int{128, dense}, Data: make([]byte, 4*128*dense)})
		}
	}
	bad := make([]float32, 128)
	bad[5] = float32(math.NaN())
	for _, c := range []struct {
		change func(gguf.Metadata, []gguf.Tensor) []gguf.Tensor
		want   string // in the error
	}{
		{set("general.architecture", "mamba"), `architecture "mamba" is not supported (have `},
		{set("general.architecture", nil), "general.architecture is missing"},
		{set("llama.block_count", nil), "llama.block_count is missing"},
		{set("llama.block_count", uint32(0)), "llama.block_count is 0"},
		{set("llama.block_count", uint32(math.MaxUint32)), "llama.block_count is 4294967295"},
		{set("llama.block_count", uint32(3)), "tensor blk.2.attn_norm.weight is missing"},
		{set("llama.block_count", "two"), "llama.block_count is two"},
		{set("llama.embedding_length", uint32(64)), "has shape [128"},
		{set("llama.feed_forward_length", uint32(255)), "tensor blk.0.ffn_gate.weight has shape [128 256]"},
		{set("llama.attention.head_count", uint32(0)), "llama.attention.head_count is 0"},
		{set("llama.attention.head_count", []uint32{4, 4}), "llama.attention.head_count is [4 4]"},
		{set("llama.attention.head_count_kv", uint32(3)), "4 heads do not share 3 KV heads"},
		{set("llama.attention.head_count_kv", uint32(4)), "tensor blk.0.attn_k.weight has shape [128 64]"},
		{set("llama.attention.key_length", uint32(31)), "heads of 31 elements"},
		{set("llama.attention.key_length", uint32(1<<20)), "4 heads of 1048576 elements are too many"},
		{set("llama.attention.value_length", uint32(64)), "llama.attention.value_length is 64"},
		{set("llama.attention.layer_norm_rms_epsilon", nil), "layer_norm_rms_epsilon is missing"},
		{set("llama.attention.layer_norm_rms_epsilon", float32(math.NaN())), "layer_norm_rms_epsilon is NaN"},
		{set("llama.context_length", nil), "llama.context_length is missing"},
		{set("llama.context_length", int32(-4)), "llama.context_length is -4"},
		{set("llama.rope.dimension_count", uint32(34)), "llama.rope.dimension_count is 34"},
		{set("llama.rope.dimension_count", uint32(16)), "tensor rope_freqs.weight has shape [16]"},
		{set("llama.rope.freq_base", float32(0)), "base 0: out of range"},
		{set("llama.rope.scaling.factor", float32(math.Inf(1))), "llama.rope.scaling.factor is +Inf"},
		{set("llama.rope.scaling.type", "ntk"), `llama.rope.scaling.type "ntk" is not supported`},
		{set("llama.rope.scaling.type", "longrope"), "tensor rope_factors_short.weight is missing"},
		{set("llama.expert_count", uint32(8)), "llama.expert_used_count is missing"},
		{set("llama.pooling_type", uint32(2)), "llama.pooling_type is 2: the first token"},
		{set("llama.pooling_type", uint32(5)), "llama.pooling_type is 5, want 0 to 4"},
		{set("llama.attention.causal", false), "llama.attention.causal is false"},
		{set("llama.pooling_type", uint32(4)), "tensor cls.output.weight is missing"},
		{reward(nil, 128), `lutra.verifier.activation is ""`},
		{reward("tanh", 128), `lutra.verifier.activation is "tanh"`},
		{reward("relu", 64), "tensor cls.weight has shape [128 64]"},
		{vector("cls.output.weight", bad...), "tensor cls.output.weight has no meaning"},
		{set("tokenizer.ggml.tokens", []string{"a", "b"}), "tokenizer.ggml.tokens has 2 tokens and token_embd.weight 384 rows"},
		{without("token_embd.weight"), "tensor token_embd.weight is missing"},
		{without("output_norm.weight"), "tensor output_norm.weight is missing"},
		{without("blk.1.ffn_down.weight"), "tensor blk.1.ffn_down.weight is missing"},
		{vector("blk.0.attn_norm.weight", 1, 2, 3), "tensor blk.0.attn_norm.weight has shape [3], want [128]"},
		{vector("blk.0.attn_norm.weight", bad...), "tensor blk.0.attn_norm.weight: element 5 is NaN"},
		{vector("rope_freqs.weight", make([]float32, 16)...), "tensor rope_freqs.weight: element 0 is 0"},
		{vector("blk.0.attn_q.bias", 1), "tensor blk.0.attn_q.bias has shape [1], want [128]"},
		{vector("blk.1.ffn_up.bias", 1), "tensor blk.1.ffn_up.bias has no meaning for architecture llama"},
		{vector("output.weight", 1), "tensor output.weight has shape [1]"},
		{set("general.architecture", "mamba"), `architecture "mamba" is not supported`},
	} {
		_, err := loadModel(altered(t, c.change), LoadOptions{Pool: pool})
		if !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("loading gave %v, want an error that says %q", err, c.want)
		}
	}
}

func TestABundleSurvivesATemplateItCannotParse(t *testing.T) {
	if b := openEmbedded(t, "lutra-tiny-s"); b.Template == nil || b.TemplateErr != nil || b.Name == "" {
		t.Errorf("the embedded model %q came with template error %v", b.Name, b.TemplateErr)
	}
	pool := pool.New(1)
	defer pool.Close()
	b, err := LoadFile(altered(t, func(md gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor {
		md["tokenizer.chat_template"] = "{% if %}"
		return ts
	}), LoadOptions{Pool: pool})
	if err != nil || b.Template != nil || b.TemplateErr == nil || len(b.Warnings) == 0 {
		t.Errorf("LoadFile gave %+v, %v; want a bundle without template and the reason", b, err)
	}
}

func TestAnUnalteredCopyLoads(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	m, err := loadModel(altered(t, func(_ gguf.Metadata, ts []gguf.Tensor) []gguf.Tensor { return ts }), LoadOptions{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	got := m.Config()
	want := Config{
		Arch: "llama", Name: got.Name, Layers: 2, Hidden: 128, FFN: 256, Vocab: 384, Context: got.Context, Outputs: 384, NormEps: 1e-3,
		AttentionShape: AttentionShape{Heads: 4, KVHeads: 2, HeadDim: 32}, Footprint: Footprint{Packings: "F16", Params: got.Params, Bytes: got.Bytes},
	}
	if got != want || got.Params < 384*128 || got.Bytes < got.Params {
		t.Errorf("Config() = %+v, want %+v", got, want)
	}
}

// Microsoft's converter for bitnet-25 stores the inverse frequencies where
// others have factors.
func TestBitNetsOwnFrequenciesAreNoFactors(t *testing.T) {
	f, err := gguf.Open("testdata/golden/bitnet-b1.58-f16/model.gguf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	md := gguf.Metadata{}
	for key, v := range f.Metadata {
		md[strings.Replace(key, "bitnet-b1.58.", "bitnet-25.", 1)] = v
	}
	md["general.architecture"] = "bitnet-25"
	freqs := make([]byte, 4*16)
	for i := range 16 {
		binary.LittleEndian.PutUint32(freqs[4*i:], math.Float32bits(float32(math.Pow(500000, -float64(i)/16))))
	}
	var b strings.Builder
	if err := gguf.Write(&b, md, append(slices.Clone(f.Tensors), gguf.Tensor{Name: "rope_freqs.weight", Type: gguf.F32, Dims: []int{16}, Data: freqs})); err != nil {
		t.Fatal(err)
	}
	written, err := gguf.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	pool := pool.New(1)
	defer pool.Close()
	m, err := loadModel(written, LoadOptions{Pool: pool, Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	g, want := readGolden(t, reference{dir: "testdata/golden/bitnet-b1.58-f16"})
	if e := nmse(newRunner(t, m, kv.F32).feed(len(g.Tokens), g.Tokens...), want); !(e <= g.Tolerance.Strict) {
		t.Errorf("NMSE %.3g, want at most %.3g", e, g.Tolerance.Strict)
	}
}

// deviceLayers tells whether an NPU computes whole layers of an architecture: see decoderLayer.dense.
func (a *architecture) deviceLayers() bool {
	v := &a.attention
	ungated := a.ffn.ungated && a.ffn.activation != UnitErfGELU
	return !(ungated || a.norms.postEps > 0 || v.latent || a.states.kind == stateSpaces || a.states.kind == besideStates || v.valueNorm || v.otherHeads || v.tempered || a.positions.alibi || a.layerInputs || a.norms.kind == rmsNormBias)
}

// The row of each architecture has what the code does: package huggingface knows the directories.
func TestTheGuidesTableOfArchitecturesSaysWhatTheCodeDoes(t *testing.T) {
	text, err := os.ReadFile("../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n### Architectures\n")
	table, _, end := strings.Cut(table, "\n### ")
	if !ok || !end {
		t.Fatal("docs/models.md has no section Architectures")
	}
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			name, _, _ = strings.Cut(name, "`")
			rows[name] = cells[1:]
		}
	}
	types := huggingface.ModelTypes()
	for _, name := range architectureNames() {
		a, want := architectures[name], []string{"", "–", "matrices"} // the first names models
		if of := types[name]; of != nil {
			want[1] = "`" + strings.Join(of, "`, `") + "`"
		}
		if a.deviceLayers() {
			want[2] = "layers"
		}
		got := rows[name]
		if len(got) == len(want) {
			want[0] = got[0]
		}
		if !slices.Equal(got, want) {
			t.Errorf("docs/models.md has of %s\n%q, want\n%q", name, got, want)
		}
		delete(rows, name)
		delete(types, name)
	}
	if len(rows) > 0 || len(types) > 0 {
		t.Errorf("no architectures: rows %v, directories %v", rows, types)
	}
}

func TestAModelOfQ2_0CComputesAsItsWeightsDoInFloats(t *testing.T) {
	p := pool.New(2)
	defer p.Close()
	r := rand.New(rand.NewPCG(2, 41))
	stored := map[string][]byte{}
	load := func(floats, exact bool) []float32 {
		f, err := gguf.Open("testdata/golden/llama-tq2_0/model.gguf")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		for i := range f.Tensors {
			x := &f.Tensors[i]
			if x.Type != gguf.TQ2_0 || x.Cols()%512 != 0 {
				continue
			}
			raw := stored[x.Name]
			for b := 0; raw == nil && b < x.Len()/512; b++ {
				block := binary.LittleEndian.AppendUint16(nil, vector.ToF16(0.01+0.02*r.Float32()))
				for range 128 {
					block = append(block, byte(r.Uint32()))
				}
				stored[x.Name] = append(stored[x.Name], block...)
			}
			*x = gguf.Tensor{Name: x.Name, Type: gguf.Q2_0C, Dims: x.Dims, Data: stored[x.Name]}
			if floats {
				values := make([]float32, x.Len())
				if err := x.Dequantize(values, 0); err != nil {
					t.Fatal(err)
				}
				*x = gguf.Tensor{Name: x.Name, Type: gguf.F32, Dims: x.Dims, Data: make([]byte, 4*len(values))}
				if err := gguf.Quantize(gguf.F32, x.Data, values); err != nil {
					t.Fatal(err)
				}
			}
		}
		m, err := loadModel(f, LoadOptions{Pool: p, Exact: exact})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(newRunner(t, m, kv.F32).feed(8, 1, 2, 3, 4, 5, 6, 7, 8))
	}
	exact := load(false, true)
	compareBits(t, "exact", exact, load(true, true))
	got := load(false, false)
	if x := nmse(got, exact); !(x < 1e-3) || len(stored) != 6 {
		t.Errorf("as Q2_0C %d matrices give logits that are off by %.3g", len(stored), x)
	}
}

func TestStorageType42IsReadAsTheUserNamesIt(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	load := func(typ gguf.Type, md gguf.Metadata) ([]float32, error) {
		f, err := gguf.Open("testdata/golden/llama-tq2_0/model.gguf")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		i := slices.IndexFunc(f.Tensors, func(x gguf.Tensor) bool { return x.Name == "blk.0.ffn_up.weight" })
		x := &f.Tensors[i]
		values := make([]float32, x.Len())
		for k := range values {
			if k/16%4 != k/64%4 { // one of four, 16 apart, is zero
				values[k] = 0.0625 * float32(1-k%3/2*2)
			}
		}
		raw := make([]byte, len(values)/256*42)
		if err := gguf.Quantize(gguf.STQ1_0, raw, values); err != nil {
			t.Fatal(err)
		}
		f.Tensors[i] = gguf.Tensor{Name: x.Name, Type: typ, Dims: x.Dims, Data: raw}
		m, err := loadModel(f, LoadOptions{Pool: p, Metadata: md})
		if err != nil {
			return nil, err
		}
		return newRunner(t, m, kv.F32).feed(3, 1, 2, 3), nil
	}
	want, err := load(gguf.STQ1_0, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := load(gguf.STQ1_0_42, gguf.Metadata{keyType42: "STQ1_0"})
	if err != nil {
		t.Fatal(err)
	}
	compareBits(t, "type 42", got, want)
	if _, err := load(gguf.STQ1_0_42, nil); err == nil {
		t.Error("type 42 is read though nobody names it")
	}
	if _, err := load(gguf.STQ1_0_42, gguf.Metadata{keyType42: "Q2_0"}); err == nil || !strings.Contains(err.Error(), "lutra.type.42 is Q2_0") {
		t.Errorf("type 42 as Q2_0: %v", err)
	}
}
