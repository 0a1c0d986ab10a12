package models

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// array is a tensor that a directory is to have.
type array struct {
	dtype string
	shape []int
	data  []byte
}

// floatArray is an array of F32.
func floatArray(x []float32, shape ...int) array {
	a := array{dtype: "F32", shape: shape}
	for _, v := range x {
		a.data = binary.LittleEndian.AppendUint32(a.data, math.Float32bits(v))
	}
	return a
}

// directoryOf writes a directory of those tensors, with any tokenizer of testdata.
func directoryOf(t *testing.T, config map[string]any, tensors map[string]array, tokenizer string) string {
	t.Helper()
	dir, header, data := t.TempDir(), map[string]any{}, []byte(nil)
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		a := tensors[name]
		header[name] = map[string]any{"dtype": a.dtype, "shape": a.shape, "data_offsets": []int{len(data), len(data) + len(a.data)}}
		data = append(data, a.data...)
	}
	put := func(name string, raw []byte, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(header)
	put(safetensors.Single, slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw, data), err)
	raw, err = json.Marshal(config)
	put("config.json", raw, err)
	raw, err = os.ReadFile(filepath.Join(directories, tokenizer, "tokenizer.json"))
	put("tokenizer.json", raw, err)
	return dir
}

// valuesOf reads all numbers of a tensor of a file.
func valuesOf(t *testing.T, m *gguf.Tensor) []float32 {
	t.Helper()
	x := make([]float32, m.Len())
	if err := m.Dequantize(x, 0); err != nil {
		t.Fatal(err)
	}
	return x
}

// The file is held against its paper's formulas in tts/embed.
func TestADirectoryOfJinaBERTHasTheKeysAndTensorsOfItsFile(t *testing.T) {
	f, err := Open("../tts/embed/testdata/jina-bert-v2.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	theirs := strings.NewReplacer("blk.", "encoder.layer.", "attn_q.", "attention.self.query.", "attn_k.", "attention.self.key.", "attn_v.", "attention.self.value.",
		"attn_output_norm.", "attention.output.LayerNorm.", "attn_output.", "attention.output.dense.", "ffn_down.", "mlp.wo.", "layer_output_norm.", "mlp.layernorm.",
		"token_embd_norm.", "embeddings.LayerNorm.", "token_embd.", "embeddings.word_embeddings.", "token_types.", "embeddings.token_type_embeddings.", "ffn_gate.", "mlp.gated_layers.")
	tensors, want := map[string]array{"pooler.dense.bias": floatArray([]float32{1}, 1)}, map[string][]float32{}
	for i := range f.Tensors {
		m := &f.Tensors[i]
		name, x, shape := m.Name, valuesOf(t, m), slices.Clone(m.Dims)
		switch {
		case strings.Contains(name, "ffn_up"):
			continue
		case strings.Contains(name, "ffn_gate"): // gates lie ahead of ups
			up := strings.Replace(name, "gate", "up", 1)
			x = append(x, valuesOf(t, f.Tensor(up))...)
			shape[1] *= 2
			want[up] = x
		default:
			want[name] = x
		}
		slices.Reverse(shape)
		tensors[theirs.Replace(name)] = floatArray(x, shape...)
	}
	config := map[string]any{
		"model_type": "bert", "architectures": []string{"JinaBertForMaskedLM"}, "position_embedding_type": "alibi", "feed_forward_type": "geglu", "hidden_act": "gelu",
		"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 64, "max_position_embeddings": 640, "layer_norm_eps": 1e-12,
	}
	got, err := Open(directoryOf(t, config, tensors, "bert"))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for key, v := range f.Metadata {
		if strings.HasPrefix(key, "jina-bert-v2.") && got.Metadata[key] != v {
			t.Errorf("%s is %v, want %v", key, got.Metadata[key], v)
		}
	}
	if len(got.Tensors) != len(want) {
		t.Errorf("%d tensors, want %d", len(got.Tensors), len(want))
	}
	for name, x := range want {
		if m := got.Tensor(name); m == nil || !slices.Equal(valuesOf(t, m), x) {
			t.Errorf("tensor %s is not there, or has other values", name)
		}
	}
	config["feed_forward_type"] = "reglu"
	if _, err := Open(directoryOf(t, config, tensors, "bert")); err == nil || !strings.Contains(err.Error(), `feed_forward_type is "reglu"`) {
		t.Errorf("other units: %v", err)
	}
}

// eights are the values of E4M3's bytes without their signs, but for NaN.
func eights() (x []float64) {
	for i := range 127 {
		if e := i >> 3; e > 0 {
			x = append(x, math.Ldexp(1+float64(i&7)/8, e-7))
		} else {
			x = append(x, math.Ldexp(float64(i&7)/8, -6))
		}
	}
	return x
}

// inEight is a matrix in blocks of E4M3, its scales, and the values that they mean.
func inEight(x []float32, rows, cols, block int) (codes, scales, values array) {
	levels, wide := eights(), make([]float32, len(x))
	codes = array{dtype: "F8_E4M3", shape: []int{rows, cols}, data: make([]byte, len(x))}
	down, across := (rows+block-1)/block, (cols+block-1)/block
	inverse := make([]float32, down*across)
	for i := range inverse {
		inverse[i] = 0.004 * float32(1+i%5)
	}
	for i, v := range x {
		scale := inverse[i/cols/block*across+i%cols/block]
		best := 0
		for k, l := range levels {
			if math.Abs(l-math.Abs(float64(v/scale))) < math.Abs(levels[best]-math.Abs(float64(v/scale))) {
				best = k
			}
		}
		wide[i] = float32(levels[best]) * scale
		if codes.data[i] = byte(best); v < 0 {
			codes.data[i], wide[i] = byte(best)|128, -wide[i]
		}
	}
	return codes, floatArray(inverse, down, across), floatArray(wide, rows, cols)
}

// DeepSeek V3 is published so: latent attention has matrices that files have turned, and in parts.
func TestADirectoryOfDeepSeekV3InBlocksOfFP8GivesTheBitsOfItsValues(t *testing.T) {
	from := filepath.Join("testdata", "transformers", "deepseek2-v3")
	stored, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	raw, err := os.ReadFile(filepath.Join(from, "config.json"))
	var config map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	packed, wide, n := map[string]array{}, map[string]array{}, 0
	for i := range stored.Tensors {
		s := &stored.Tensors[i]
		a := array{s.DType, s.Shape, make([]byte, s.Bytes())}
		if err := s.Source.Read(a.data, s.Offset); err != nil {
			t.Fatal(err)
		}
		if s.DType != "F16" || len(s.Shape) != 2 || !strings.Contains(s.Name, "_proj") {
			packed[s.Name], wide[s.Name] = a, a
			continue
		}
		g := gguf.Tensor{Type: gguf.F16, Dims: []int{s.Shape[1], s.Shape[0]}, Data: a.data}
		packed[s.Name], packed[s.Name+"_scale_inv"], wide[s.Name] = inEight(valuesOf(t, &g), s.Shape[0], s.Shape[1], 16)
		n++
	}
	if packed["model.layers.0.self_attn.kv_b_proj.weight"].dtype != "F8_E4M3" || packed["model.layers.1.mlp.experts.7.down_proj.weight"].dtype != "F8_E4M3" {
		t.Fatalf("%d matrices are in blocks, and not those of latent attention and of experts", n)
	}
	logits := func(tensors map[string]array) []float32 {
		tokens := transformersTokens()
		m := openModel(t, directoryOf(t, config, tensors, "qwen3"), LoadOptions{Exact: true})
		return slices.Clone(newRunner(t, m, kv.F32).feed(len(tokens), tokens...))
	}
	want := logits(wide)
	config["quantization_config"] = map[string]any{"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": []int{16, 16}}
	compareBits(t, "FP8", logits(packed), want)
	if e := nmse(want, transformersLogits(t, "deepseek2-v3")); !(e < 0.05) {
		t.Errorf("logits of the values that FP8 has differ by %.3g from those of the weights", e)
	}
}
