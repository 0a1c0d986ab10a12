package huggingface

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// testdata are directories that transformers has saved.
const testdata = "../testdata/huggingface"

func open(t testing.TB, dir string) *gguf.File {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestTokensAreThoseOfTransformers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testdata, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var of map[string][]struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	for name, cases := range of {
		tok, err := tokenizer.New(open(t, filepath.Join(testdata, name)).Metadata)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, c := range cases {
			if got := tok.Encode(nil, c.Text, tokenizer.Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q = %v, want %v", name, c.Text, got, c.IDs)
			}
		}
	}
}

func floats(t testing.TB, x *gguf.Tensor) []float32 {
	t.Helper()
	v := make([]float32, x.Len())
	if err := x.Dequantize(v, 0); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWeightsThatBitNetMakesTernaryOnlineAreSo(t *testing.T) {
	dir := copied(t, "qwen3")
	edit(t, dir, fileConfig, func(c map[string]any) {
		c["quantization_config"] = map[string]any{"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online", "modules_to_not_convert": []string{"lm_head"}}
	})
	plain, ternary := open(t, filepath.Join(testdata, "qwen3")), open(t, dir)
	for _, name := range []string{"blk.0.attn_q.weight", "blk.0.ffn_down.weight", "token_embd.weight", "output.weight"} {
		want, got := floats(t, plain.Tensor(name)), floats(t, ternary.Tensor(name))
		if name != "token_embd.weight" && name != "output.weight" {
			sum := 0.0
			for _, x := range want {
				sum += math.Abs(float64(x))
			}
			mean := float32(sum / float64(len(want)))
			for i, x := range want {
				want[i] = float32(min(1, max(-1, math.RoundToEven(float64(x/mean))))) * mean
			}
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Fatalf("%s: %v at %d, want %v", name, got[i], i, want[i])
			}
		}
	}
}

func TestAModelIsCalledAsItsDirectoryOrItsRepository(t *testing.T) {
	for dir, want := range map[string]string{
		"/models/Qwen2.5-0.5B": "Qwen2.5-0.5B", "/cache/models--acme--Tiny-1.5B/snapshots/0123abc": "Tiny-1.5B", "/models/snapshots/x": "x",
	} {
		if got := Name(filepath.FromSlash(dir)); got != want {
			t.Errorf("Name(%s) = %s, want %s", dir, got, want)
		}
	}
}
