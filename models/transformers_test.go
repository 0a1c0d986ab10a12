package models

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// transformersTokens returns the tokens that testdata/transformers/make.py feeds.
func transformersTokens() []int32 {
	tokens := make([]int32, 40)
	for i := range tokens {
		tokens[i] = int32((37*i*i + 11*i + 5) % 64)
	}
	return tokens
}

// transformersMixtures are the models of testdata/transformers.
var transformersMixtures = []string{"mixtral", "qwen2moe", "qwen3moe", "olmoe", "granitemoe", "qwen35moe", "gpt-oss", "phimoe", "maple", "lfm2moe", "glm4moe", "qwen3next", "gemma4-moe", "deepseek2", "deepseek2-v3", "granitehybrid-moe", "hunyuan-moe", "ernie4_5-moe", "dots1", "nemotron_h_moe", "nemotron_h_moe-latent", "bailingmoe2", "exaone-moe", "minimax-m2"}

// transformersDense are the others.
var transformersDense = []string{"gemma3", "olmo2", "olmo3", "exaone4", "hunyuan-dense", "glm4", "ernie4_5", "seed_oss", "granite", "lfm2", "gemma4", "granitehybrid", "falcon-h1", "minicpm", "cohere2", "qwen3-normed", "gemma3-normed", "deepseek2-dense", "mistral3", "gemma", "command-r", "nemotron_h", "muse-glimmer", "internlm2", "exaone", "starcoder2", "phi2", "stablelm", "nemotron", "arcee", "bitnet", "eurobert", "llama-embed", "mamba2", "bamba"}

func TestModelsGiveTheLogitsOfTransformers(t *testing.T) {
	for _, name := range slices.Concat(transformersMixtures, transformersDense) {
		t.Run(name, func(t *testing.T) { givesLogits(t, "testdata/transformers/"+name+".gguf", name) })
	}
}

// Directories have the weights of the files beside them, as transformers has saved them.
func TestDirectoriesGiveTheLogitsOfTheirFiles(t *testing.T) {
	found, err := filepath.Glob("testdata/transformers/*/config.json")
	if err != nil || len(found) < 51 {
		t.Fatalf("%d directories, %v", len(found), err)
	}
	for _, path := range found {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			givesLogits(t, withTokenizer(t, filepath.Dir(path)), strings.TrimSuffix(name, "-mxfp4"))
		})
	}
}

// withTokenizer returns a copy of a directory that has a tokenizer too: any of as many tokens will do.
func withTokenizer(t *testing.T, from string) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(from, "config.json"), filepath.Join(from, "model.safetensors"), filepath.Join(directories, "qwen3", "tokenizer.json")} {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// givesLogits fails unless the model at path gives the logits of a name.
func givesLogits(t *testing.T, path, name string) {
	t.Helper()
	logits := transformersLogits(t, name)
	m := openModel(t, path, LoadOptions{Exact: true})
	tokens := transformersTokens()
	got := newRunner(t, m, kv.F32).feed(len(tokens), tokens...)
	if len(got) != len(logits) {
		t.Fatalf("%d logits, want %d", len(got), len(logits))
	}
	worst, sum := 0.0, 0.0
	for i, x := range got {
		want := float64(logits[i])
		worst, sum = max(worst, math.Abs(float64(x)-want)), sum+want*want
	}
	scale := math.Sqrt(sum / float64(len(got)))
	t.Logf("largest difference %.2g of logits of %.2g", worst, scale)
	if !(worst < 1e-4*scale) {
		t.Errorf("a logit differs by %.3g, want less than 1e-4 of their scale, %.3g", worst, scale)
	}
}

// Every sixth layer of Gemma 3 sees all keys, where the file does not say otherwise.
func TestLayersWithWindowsAreThoseThatTheArchitectureOrTheFileNames(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for _, c := range []struct {
		name    string
		pattern any // nil: none
		windows []bool
		err     string
	}{
		{"gemma3", nil, []bool{true, true}, ""},
		{"gemma3", uint32(2), []bool{true, false}, ""},
		{"gemma3", []bool{false, true}, []bool{false, true}, ""},
		{"gemma3", []bool{false}, nil, "sliding_window_pattern has 1 values for 2 layers"},
		{"gemma3", "2", nil, "sliding_window_pattern is 2, want one integer"},
		{"maple", []bool{false, false}, []bool{false, false}, ""},
	} {
		raw, err := os.ReadFile("testdata/transformers/" + c.name + ".gguf")
		if err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		key := c.name + ".attention.sliding_window_pattern"
		if delete(f.Metadata, key); c.pattern != nil {
			f.Metadata[key] = c.pattern
		}
		m, err := loadModel(f, LoadOptions{Pool: p})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s with %v: loading gave %v, want an error that says %q", c.name, c.pattern, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, y := range m.graph.layers {
			if got := y.mixer.(*selfAttention).mask.Window > 0; got != c.windows[i] {
				t.Errorf("%s with %v: layer %d has a window: %t", c.name, c.pattern, i, got)
			}
		}
	}
}

func TestClampsThatAreNotThoseOfTheArchitectureAreRefused(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for name, limit := range map[string]any{"maple": []float32{7, 6}, "qwen3moe": float32(7)} {
		_, err := Load("testdata/transformers/"+name+".gguf", LoadOptions{Pool: p, Metadata: gguf.Metadata{name + ".swiglu_clamp_exp": limit}})
		if err == nil || !strings.Contains(err.Error(), name+".swiglu_clamp_exp is ") {
			t.Errorf("%s clamped by %v: loading gave %v", name, limit, err)
		}
	}
}

func TestModelsOfTransformersGiveEverySequenceTheBitsItGetsAlone(t *testing.T) {
	sweep.Full(t)
	sweep.NoEmulator(t)
	for _, name := range []string{"gpt-oss", "qwen35moe", "phimoe", "gemma3", "exaone4", "lfm2moe", "qwen3next", "gemma4", "gemma4-moe", "deepseek2", "deepseek2-v3", "granitehybrid-moe", "falcon-h1", "cohere2", "qwen3-normed", "deepseek2-dense", "nemotron_h", "nemotron_h_moe", "nemotron_h_moe-latent", "mamba2", "bamba"} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/transformers/" + name + ".gguf"
			together(t, path, kv.F16, conversations(t, path, kv.F16, 16), false)
		})
	}
}

func TestAWarmStepOfLayersOfAllKindsAllocatesNothing(t *testing.T) {
	sweep.NoEmulator(t)
	for _, name := range []string{"gemma4", "deepseek2", "granitehybrid", "falcon-h1", "cohere2", "qwen3-normed", "deepseek2-dense", "nemotron_h", "nemotron_h_moe", "nemotron_h_moe-latent", "mamba2"} {
		m := openModel(t, "testdata/transformers/"+name+".gguf", oneThread(t))
		cache, err := kv.New(m.Config().KV(), kv.Options{BlockLen: 16, Blocks: 16, States: 4})
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close()
		s := cache.Open(nil)
		if err := s.Grow(200); err != nil {
			t.Fatal(err)
		}
		var b Batch
		pos := 0
		step := func() {
			b.Reset()
			b.Add(s, pos, 1, 7, 8, 9)
			if err := m.Forward(&b, cache); err != nil {
				t.Fatal(err)
			}
			pos += 3
		}
		for pos < 120 { // plans grow with the context
			step()
		}
		if n := testing.AllocsPerRun(20, step); n != 0 {
			t.Errorf("%s: a step allocates %v times", name, n)
		}
	}
}

func TestMetadataOfTheCallerReplacesThatOfTheFile(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	tokens := transformersTokens()
	logits := map[string][]float32{}
	for name, md := range map[string]gguf.Metadata{
		"authors": nil, "llama.cpp": {authorsKey: false}, "again": {authorsKey: true},
	} {
		b, err := Load("testdata/transformers/phimoe.gguf", LoadOptions{Pool: p, Metadata: md})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		logits[name] = slices.Clone(newRunner(t, b.Model, kv.F32).feed(len(tokens), tokens...))
	}
	if !slices.Equal(logits["authors"], logits["again"]) || nmse(logits["llama.cpp"], logits["authors"]) < 1e-3 {
		t.Errorf("the file's and other metadata give logits that differ by %.3g", nmse(logits["llama.cpp"], logits["authors"]))
	}
	if _, err := Load("testdata/transformers/phimoe.gguf", LoadOptions{Pool: p, Metadata: gguf.Metadata{authorsKey: "yes"}}); err == nil || !strings.Contains(err.Error(), authorsKey+" is yes, want true or false") {
		t.Errorf("a value of another type gives %v", err)
	}
}

func TestSparsemixerChoosesTwo(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	_, err := Load("testdata/transformers/phimoe.gguf", LoadOptions{Pool: p, Metadata: gguf.Metadata{"phimoe.expert_used_count": int64(3)}})
	if err == nil || !strings.Contains(err.Error(), "phimoe.expert_used_count is 3: sparsemixer chooses 2") {
		t.Errorf("three experts a row give %v", err)
	}
}

func TestAFileOfGPTOSSThatLacksAPartIsRefusedByName(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for _, c := range []struct {
		tensor string
		change func(*gguf.Tensor) // nil: it is missing
		want   string
	}{
		{"blk.0.attn_sinks.weight", nil, "tensor blk.0.attn_sinks.weight is missing"},
		{"blk.1.attn_sinks.weight", func(t *gguf.Tensor) { t.Dims, t.Data = []int{2}, t.Data[:8] }, "tensor blk.1.attn_sinks.weight has shape [2], want [4]"},
		{"blk.0.attn_sinks.weight", func(t *gguf.Tensor) { copy(t.Data, []byte{0, 0, 0xc0, 0x7f}) }, "tensor blk.0.attn_sinks.weight: element 0 is NaN"},
		{"blk.0.ffn_gate_inp.bias", nil, "tensor blk.0.ffn_gate_inp.bias is missing"},
		{"blk.0.ffn_up_exps.bias", nil, "tensor blk.0.ffn_up_exps.bias is missing"},
		{"blk.1.ffn_down_exps.bias", func(t *gguf.Tensor) { t.Dims = []int{64, 2} }, "tensor blk.1.ffn_down_exps.bias has shape [64 2], want [32 4]"},
		{"blk.1.ffn_up_exps.weight", func(t *gguf.Tensor) { t.Data[17] = 255 }, "tensor blk.1.ffn_up_exps.weight: row 1 holds a number that is infinite or NaN"},
		{"blk.0.post_attention_norm.weight", nil, "tensor blk.0.post_attention_norm.weight is missing"},
	} {
		raw, err := os.ReadFile("testdata/transformers/gpt-oss.gguf")
		if err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		var list []gguf.Tensor
		for _, x := range f.Tensors {
			if x.Name == c.tensor {
				if c.change == nil {
					continue
				}
				c.change(&x)
			}
			list = append(list, x)
		}
		var out strings.Builder
		if err := gguf.Write(&out, f.Metadata, list); err != nil {
			t.Fatal(err)
		}
		if f, err = gguf.Parse([]byte(out.String())); err != nil {
			t.Fatal(err)
		}
		if _, err := loadModel(f, LoadOptions{Pool: p}); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("loading gave %v, want an error that says %q", err, c.want)
		}
	}
}

// llama.cpp's converter writes gate and up as one tensor if it is asked to.
func TestGateAndUpOfExpertsMayBeOneTensor(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	for _, name := range []string{"qwen35moe", "gpt-oss"} {
		path := "testdata/transformers/" + name + ".gguf"
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		var list []gguf.Tensor
		for _, x := range f.Tensors {
			if strings.Contains(x.Name, "ffn_up_exps") {
				continue
			}
			if strings.Contains(x.Name, "ffn_gate_exps") {
				up := f.Tensor(strings.Replace(x.Name, "gate", "up", 1))
				x.Name, x.Dims = strings.Replace(x.Name, "gate", "gate_up", 1), slices.Clone(x.Dims)
				x.Dims[len(x.Dims)-2] *= 2
				gate, each := x.Data, len(x.Data)/x.Dims[len(x.Dims)-1]
				x.Data = nil
				for at := 0; at < len(gate); at += each {
					x.Data = slices.Concat(x.Data, gate[at:at+each], up.Data[at:at+each])
				}
			}
			list = append(list, x)
		}
		var out strings.Builder
		if err := gguf.Write(&out, f.Metadata, list); err != nil {
			t.Fatal(err)
		}
		fused, err := gguf.Parse([]byte(out.String()))
		if err != nil {
			t.Fatal(err)
		}
		tokens := transformersTokens()
		want := newRunner(t, openModel(t, path, LoadOptions{}), kv.F16).feed(len(tokens), tokens...)
		for _, memory := range []int64{0, 12 << 10} {
			m, err := loadModel(fused, LoadOptions{Pool: p, ExpertMemory: memory})
			if err != nil {
				t.Fatal(err)
			}
			defer m.close()
			compareBits(t, name, newRunner(t, m, kv.F16).feed(len(tokens), tokens...), want)
		}
	}
}

func TestTensorsOfExpertsAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]bool{
		"blk.0.ffn_gate_exps.weight": true, "blk.11.ffn_down_exps.weight": true, "blk.0.ffn_gate_up_exps.weight": true, "blk.0.ffn_up.7.weight": true,
		"blk.0.ffn_up.weight": false, "blk.0.ffn_gate_inp.weight": false, "blk.0.ffn_up_shexp.weight": false, "blk.0.ffn_up_exps.bias": false, "output.weight": false,
	} {
		if HoldsExperts(name) != want {
			t.Errorf("%s holds experts: %t", name, !want)
		}
	}
}
