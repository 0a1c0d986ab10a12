package commands

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/gguf"
)

// longRope is the path of a model that turns as lutra-tiny-s does in contexts of
// up to 64 tokens, and four times as slowly in longer ones.
func longRope(t *testing.T) string {
	t.Helper()
	f, err := embedded.Open("lutra-tiny-s")
	if err != nil {
		t.Fatal(err)
	}
	md := maps.Clone(f.Metadata)
	md["llama.rope.scaling.type"], md["llama.rope.scaling.original_context_length"] = "longrope", uint32(64)
	dims, _ := md.Int("llama.rope.dimension_count")
	if dims == 0 {
		hidden, _ := md.Int("llama.embedding_length")
		heads, _ := md.Int("llama.attention.head_count")
		dims = hidden / heads
	}
	factors := func(name string, x float32) gguf.Tensor {
		return gguf.Tensor{Name: name, Type: gguf.F32, Dims: []int{dims / 2},
			Data: bytes.Repeat(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)), dims/2)}
	}
	tensors := append(slices.Clone(f.Tensors), factors("rope_factors_short.weight", 1), factors("rope_factors_long.weight", 4))
	var raw bytes.Buffer
	if err := gguf.Write(&raw, md, tensors); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "longrope.gguf")
	if err := os.WriteFile(path, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheContextOfLogitsAndPerplexityChoosesALongRopesFactors(t *testing.T) {
	dir, model := t.TempDir(), longRope(t)
	tokens, out := filepath.Join(dir, "ids"), filepath.Join(dir, "out.f32")
	if err := os.WriteFile(tokens, []byte("1022 286 10 258 273 111 300 301"), 0o600); err != nil {
		t.Fatal(err)
	}
	logits := func(args ...string) string {
		mustLutra(t, append([]string{"logits", "--tokens", tokens, "--out", out}, args...)...)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	plain := logits("--model", "lutra-tiny-s")
	if logits("--model", model, "--context", "64") != plain {
		t.Error("with the factors for short contexts, which are 1, the logits differ from those without factors")
	}
	long := logits("--model", model)
	if long == plain || logits("--model", model, "--context", "65") != long {
		t.Error("a context of 65 does not choose the factors for long ones, as the model's own does")
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("Now she has 12+36=48.\nNow she has 48+2=50.\n", 8)), 0o600); err != nil {
		t.Fatal(err)
	}
	perplexity := func(args ...string) string {
		return mustLutra(t, append([]string{"perplexity", "--file", text}, args...)...)
	}
	if a, b := perplexity("--model", model, "--context", "64"), perplexity("--model", "lutra-tiny-s", "--context", "64"); a != b {
		t.Errorf("with short pieces: %q, without factors %q", a, b)
	}
}

func TestAnInvalidContextIsRefused(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "ids")
	if err := os.WriteFile(tokens, []byte("1 2 3 4 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"-1", "100000"} {
		for _, args := range [][]string{{"logits", "--tokens", tokens, "--out", os.DevNull}, {"perplexity", "--file", tokens}} {
			var mistake usage.Error
			if _, err := lutra(t, append(args, "--context", n)...); !errors.As(err, &mistake) || !strings.Contains(err.Error(), "--context: "+n) {
				t.Errorf("%s --context %s: error %v, want one of usage", args[0], n, err)
			}
		}
	}
	if _, err := lutra(t, "logits", "--tokens", tokens, "--out", os.DevNull, "--context", "4"); err == nil || !strings.Contains(err.Error(), "5 tokens are more than the context of 4") {
		t.Errorf("more tokens than the context: error %v", err)
	}
}
