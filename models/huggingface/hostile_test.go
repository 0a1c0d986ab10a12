package huggingface

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/safetensors"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// copied is a directory of testdata that a test may change.
func copied(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(testdata, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// edit changes a JSON file.
func edit(t testing.TB, dir, name string, change func(map[string]any)) {
	t.Helper()
	path := filepath.Join(dir, name)
	var m map[string]any
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err == nil {
		change(m)
		text, err = json.Marshal(m)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inHeader changes the header of a directory's weights, of the same length.
func inHeader(t testing.TB, dir, old, new string) {
	t.Helper()
	path := filepath.Join(dir, safetensors.Single)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 8 + int(binary.LittleEndian.Uint64(raw))
	head := strings.Replace(string(raw[:n]), old, new, 1)
	if head == string(raw[:n]) || len(head) != n {
		t.Fatalf("the header has no %q, or not of the length of %q", old, new)
	}
	if err := os.WriteFile(path, append([]byte(head), raw[n:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNotReadOfADirectoryIsRefusedByName(t *testing.T) {
	set := func(file, key string, value any) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			edit(t, dir, file, func(m map[string]any) {
				if m[key] = value; value == nil {
					delete(m, key)
				}
			})
		}
	}
	config := func(key string, value any) func(*testing.T, string) { return set(fileConfig, key, value) }
	inModel := func(key string, value any) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			edit(t, dir, fileTokenizer, func(m map[string]any) { m["model"].(map[string]any)[key] = value })
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rename := func(old, new string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { inHeader(t, dir, old, new) }
	}
	object := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	for _, c := range []struct {
		dir    string
		change func(*testing.T, string)
		want   string
	}{
		{"llama", remove(fileConfig), "config.json is missing"},
		{"llama", remove(fileTokenizer), "tokenizer.json is missing"},
		{"qwen3", remove("model-00002-of-00002.safetensors"), "huggingface: open "},
		{"llama", remove(safetensors.Single), "neither model.safetensors nor model.safetensors.index.json is there"},
		{"llama", func(t *testing.T, dir string) {
			remove(safetensors.Single)(t, dir)
			if err := os.WriteFile(filepath.Join(dir, "pytorch_model.bin"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "pytorch_model.bin is a PyTorch checkpoint"},
		{"llama", config("model_type", "mamba"), `model_type "mamba"`},
		{"llama", config("model_type", nil), "model_type is missing"},
		{"llama", config("hidden_size", nil), "hidden_size is missing"},
		{"llama", config("hidden_size", "32"), `hidden_size is "32", want a whole number`},
		{"llama", config("num_hidden_layers", 1e9), "num_hidden_layers is"},
		{"llama", config("num_attention_heads", 0), "num_attention_heads is"},
		{"llama", config("num_attention_heads", 3), "no pairs of 3 heads"},
		{"llama", config("hidden_act", "gelu"), `hidden_act is "gelu"`},
		{"llama", config("quantization_config", object("quant_method", "hqq")), `quant_method is "hqq"`},
		{"llama", config("rope_parameters", object("rope_type", "dynamic", "factor", 2)), `rope_type is "dynamic"`},
		{"llama", config("rope_parameters", object("rope_type", "linear", "factor", -2)), "factor is -2"},
		{"llama", config("rope_parameters", []int{1}), "rope_parameters is"},
		{"gemma2", config("query_pre_attn_scalar", 144), "query_pre_attn_scalar is 144"},
		{"gemma2", config("layer_types", []string{"sliding_attention"}), "layer_types has 1 entries for 2 layers"},
		{"gemma2", config("layer_types", []string{"chunked_attention", "full_attention"}), `layer_types at 0 is "chunked_attention"`},
		{"smollm3", config("no_rope_layers", []int{1, 1, 1, 1}), "no_rope_layers at 3"},
		{"qwen3_moe", config("num_local_experts", 5), "expert 4 of 5 is missing"},
		{"qwen3_moe", config("num_local_experts", 3), "config.json says 3"},
		{"qwen3_moe", config("mlp_only_layers", []int{0}), "mlp_only_layers names 1 layers"},
		{"phi3", config("rope_parameters", object("rope_type", "longrope", "short_factor", []int{1})), "short_factor has 1 numbers, want 4"},
		{"llama", rename("layers.1.mlp.up_proj.weight", "layers.1.mlp.up_proj.wEight"), "layers.1.mlp.up_proj.wEight"},
		{"llama", rename("model.norm.weight", "model.worm.weight"), `tensor "model.worm.weight"`},
		{"bitnet", rename("mlp.up_proj.weight_scale", "mlp.up_proj.weight_skale"), "weight_skale"},
		{"bitnet", config("quantization_config", object("quant_method", "bitnet", "use_rms_norm", true)), "use_rms_norm is true"},
		{"bitnet", config("quantization_config", nil), `mlp.down_proj.weight_scale": unsupported`},
		{"fp8", config("quantization_config", object("quant_method", "fp8", "weight_block_size", []int{16})), "weight_block_size is"},
		{"fp8", config("quantization_config", object("quant_method", "fp8", "weight_block_size", []int{8, 8})), "want 16 numbers"},
		{"gptq", config("quantization_config", object("quant_method", "gptq", "bits", 8)), "bits is 8: unsupported: only 4 is"},
		{"gptq", config("quantization_config", object("quant_method", "gptq", "checkpoint_format", "marlin")), `checkpoint_format is "marlin"`},
		{"awq", config("quantization_config", object("quant_method", "awq", "version", "gemv")), `version is "gemv"`},
		{"w4a16", config("quantization_config", object("quant_method", "compressed-tensors", "format", "marlin-24")), `format is "marlin-24"`},
		{"w4a16", config("quantization_config", object("quant_method", "compressed-tensors", "format", "pack-quantized", "config_groups", object("g", object("weights", object("num_bits", 8))))), "num_bits is 8"},
		{"nvfp4-modelopt", set(fileModelOpt, "quantization", object("quant_algo", "FP8")), `quant_algo is "FP8"`},
		{"nvfp4-modelopt", set(fileModelOpt, "quantization", nil), "hf_quant_config.json: quantization is missing"},
		{"gptq", overwrite("model.layers.0.mlp.up_proj.g_idx", 4*9, 1), `mlp.up_proj.g_idx": unsupported: column 9 is of group 1: columns are in an order of their own (desc_act)`},
		{"gptq", rename("mlp.up_proj.qzeros", "mlp.up_proj.qzebra"), "mlp.up_proj.qzebra"},
		{"awq", rename("mlp.up_proj.scales", "mlp.up_proj.skales"), "skales"},
		{"nvfp4", rename("mlp.up_proj.weight_scale", "mlp.up_proj.weight_skale"), "weight_skale"},
		{"w4a16", overwrite("model.layers.0.mlp.up_proj.weight_shape", 0, 65), "it says [65 64] of codes for 64 rows of 64"},
		{"nvfp4", overwrite("model.layers.0.mlp.up_proj.weight_global_scale", 3, 0x7f, 2, 0x80), "the scale is zero, infinite or NaN"},
		{"qwen2", inModel("type", "WordLevel"), `model.type "WordLevel"`},
		{"qwen2", inModel("vocab", object("a", 64)), "the embedding 64 rows"},
		{"qwen2", inModel("vocab", object("a", 9, "b", 9)), "have the same id 9"},
		{"qwen2", inModel("vocab", []int{1}), "model.vocab"},
		{"qwen2", inModel("merges", []string{"ab"}), "merges: number 0 is no pair"},
		{"qwen2", inModel("end_of_word_suffix", "</w>"), "end_of_word_suffix"},
		{"qwen2", set(fileTokenizer, "normalizer", object("type", "Lowercase")), `normalizer "Lowercase"`},
		{"qwen2", set(fileTokenizer, "pre_tokenizer", object("type", "Sequence", "pretokenizers", []any{object("type", "ByteLevel", "add_prefix_space", true)})), "add_prefix_space"},
		{"mistral", set(fileTokenizer, "pre_tokenizer", object("type", "Whitespace")), `pre_tokenizer "Whitespace"`},
		{"granite", inModel("vocab", []any{[]any{"a", "b"}}), "number 0 is no new token with a score"},
		{"llama", set(fileGeneration, "eos_token_id", []int{2, 70}), "which is no token of 64"},
		{"llama", set(fileGeneration, "eos_token_id", []int{2, 3, 4, 5}), "more than three"},
		{"llama", func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, fileTokens), maxText+1); err != nil {
				t.Fatal(err)
			}
		}, "tokenizer_config.json: 4194305 bytes, at most 4194304 are read"},
	} {
		dir := copied(t, c.dir)
		c.change(t, dir)
		f, err := Open(dir)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Open gave %v, want an error that says %q", c.dir, err, c.want)
		}
	}
}

// overwrite changes bytes of a tensor: places and values in turn.
func overwrite(tensor string, bytes ...int) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		model, err := safetensors.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		at := model.Tensor(tensor).Offset
		if err := model.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(filepath.Join(dir, safetensors.Single), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for ; len(bytes) > 0; bytes = bytes[2:] {
			if _, err := file.WriteAt([]byte{byte(bytes[1])}, at+int64(bytes[0])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNumbersThatMeanNothingAreFoundWhenTheyAreRead(t *testing.T) {
	for _, c := range []struct {
		dir    string
		change func(*testing.T, string)
		want   string
	}{
		{"bitnet", overwrite("model.layers.0.mlp.up_proj.weight", 5, 0b110101), "row 64: malformed safetensors: column 5 is no trit"},
		{"nvfp4", overwrite("model.layers.0.mlp.up_proj.weight_scale", 6, 0x7f), "row 1: malformed safetensors: scale 2 is NaN"},
		{"nvfp4", overwrite("model.layers.0.mlp.up_proj.weight_scale", 6, 0x80), "row 1: malformed safetensors: scale 2 is -0"},
		{"w4a16", overwrite("model.layers.0.mlp.up_proj.weight_scale", 4*3, 1), `a scale of`},
	} {
		dir := copied(t, c.dir)
		c.change(t, dir)
		x := open(t, dir).Tensor("blk.0.ffn_up.weight")
		err := x.Dequantize(make([]float32, x.Len()), 0)
		if err == nil || !strings.Contains(err.Error(), `tensor "blk.0.ffn_up.weight": row `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: reading gave %v, want an error that says %q", c.dir, err, c.want)
		}
	}
}

func TestAPreTokenizerThatIsNotKnownIsRefusedWithItsPattern(t *testing.T) {
	dir := copied(t, "qwen2")
	edit(t, dir, fileTokenizer, func(m map[string]any) {
		m["pre_tokenizer"] = map[string]any{"type": "Split", "pattern": map[string]any{"Regex": "[a-c]+"}, "behavior": "Isolated", "invert": false}
	})
	f := open(t, dir)
	if _, err := tokenizer.New(f.Metadata); err == nil || !strings.Contains(err.Error(), `pre-tokenizer "[a-c]+" is not known`) {
		t.Errorf("New gave %v", err)
	}
	f.Metadata["tokenizer.ggml.pre"] = "qwen2" // as a model's metadata may say
	if _, err := tokenizer.New(f.Metadata); err != nil {
		t.Error(err)
	}
}

// fuzzed feeds f contents of one file of a directory of each kind.
func fuzzed(f *testing.F, file string, dirs ...string) {
	for _, name := range dirs {
		text, err := os.ReadFile(filepath.Join(testdata, name, file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	dir := copied(f, dirs[0])
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
		model, err := Open(dir)
		if err != nil {
			return
		}
		defer model.Close()
		for i := range model.Tensors {
			x := &model.Tensors[i]
			if _, err := x.Load(x.Rows()-1, x.Rows(), nil); err != nil {
				t.Errorf("tensor %s of shape %v cannot be read: %v", x.Name, x.Dims, err)
			}
		}
		_, _ = tokenizer.New(model.Metadata) // which may refuse it
	})
}

func FuzzConfig(f *testing.F) {
	fuzzed(f, fileConfig, "llama", "gemma3", "phi3", "qwen3_moe", "fp8", "awq", "w4a16")
}

func FuzzTokenizer(f *testing.F) { fuzzed(f, fileTokenizer, "llama", "qwen2", "mistral", "granite") }

func FuzzTokenizerConfig(f *testing.F) { fuzzed(f, fileTokens, "llama", "mistral") }

func TestADirectoryWhoseConfigContradictsItsTensorsIsRefused(t *testing.T) {
	for _, c := range []struct {
		dir, key string
		value    any
		want     string
	}{
		{"qwen35moe", "linear_num_value_heads", 8, "want 8 value heads of"},
		{"qwen35moe", "layer_types", []string{"full_attention", "linear_attention"}, "layer_types is"},
		{"qwen3next", "linear_num_value_heads", 8, "in_proj_qkvz"},
		{"deepseek2-v3", "v_head_dim", 8, "kv_b_proj"},
		{"deepseek2-v3", "scoring_func", "softmax", "scoring_func is"},
		{"hunyuan-moe", "moe_topk", []any{[]int{2}, []int{2}}, "moe_topk is"},
		{"hunyuan-moe", "moe_topk", []int{2, 1}, "moe_topk is"},
		{"ernie4_5-moe", "moe_layer_interval", 2, "moe_layer_interval is 2"},
		{"gpt-oss", "swiglu_limit", 8, "swiglu_limit is 8"},
		{"gemma4", "layer_types", []string{"sliding_attention"}, "layer_types has 1 entries for 4 layers"},
		{"falcon-h1", "mamba_norm_before_gate", true, "mamba_norm_before_gate is true"},
		{"lfm2", "conv_bias", true, "conv_bias is true"},
		{"nemotron_h", "layers_block_type", []string{"mamba", "attention", "mlp", "mamba", "recurrent"}, `layers_block_type at 4 is "recurrent"`},
		{"nemotron_h", "mlp_hidden_act", "silu", `only "relu2" is`},
		{"nemotron_h", "mamba_hidden_act", "gelu", "mamba_hidden_act is"},
		{"nemotron_h", "time_step_limit", []float64{0.01, 1}, "time_step_limit is"},
		{"mamba2", "num_heads", 8, "expand gives 64 elements, num_heads and head_dim 128"},
		{"mamba2", "time_step_limit", []float64{0.01, 1}, "time_step_limit is"},
		{"bamba", "attn_layer_indices", []int{2}, `attn_layer_indices has "2", want numbers of 2 layers`},
		{"bamba", "mamba_proj_bias", true, "mamba_proj_bias is true"},
		{"nemotron_h_moe", "n_routed_experts", 8, "expert 4 of 8 is missing"},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("../testdata/transformers", c.dir))); err != nil {
			t.Fatal(err)
		}
		edit(t, dir, fileConfig, func(config map[string]any) { config[c.key] = c.value })
		if f, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			if err == nil {
				f.Close()
			}
			t.Errorf("%s with %s %v: Open gave %v, want an error that says %q", c.dir, c.key, c.value, err, c.want)
		}
	}
}
