package models

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/lutra-lm/lutra/models/kv"
)

// transformersTokens are those that testdata/transformers/make.py feeds.
func transformersTokens() []int32 {
	tokens := make([]int32, 40)
	for i := range tokens {
		tokens[i] = int32((37*i*i + 11*i + 5) % 64)
	}
	return tokens
}

// transformersMixtures are the models of testdata/transformers.
var transformersMixtures = []string{"mixtral", "qwen2moe", "qwen3moe", "olmoe", "granitemoe", "qwen35moe", "gpt-oss", "phimoe"}

func TestMixturesGiveTheLogitsOfTransformers(t *testing.T) {
	for _, name := range transformersMixtures {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/transformers/" + name + ".npy")
			if err != nil {
				t.Fatal(err)
			}
			raw = raw[10+int(binary.LittleEndian.Uint16(raw[8:])):]
			m := openModel(t, "testdata/transformers/"+name+".gguf", LoadOptions{Exact: true})
			tokens := transformersTokens()
			got := newRunner(t, m, kv.F32).feed(len(tokens), tokens...)
			if len(got) != len(raw)/4 {
				t.Fatalf("%d logits, want %d", len(got), len(raw)/4)
			}
			worst, sum := 0.0, 0.0
			for i, x := range got {
				want := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
				worst, sum = max(worst, math.Abs(float64(x)-want)), sum+want*want
			}
			scale := math.Sqrt(sum / float64(len(got)))
			t.Logf("largest difference %.2g of logits of %.2g", worst, scale)
			if !(worst < 1e-4*scale) {
				t.Errorf("a logit differs by %.3g, want less than 1e-4 of their scale, %.3g", worst, scale)
			}
		})
	}
}

func TestMixturesOfTransformersGiveEverySequenceTheBitsItGetsAlone(t *testing.T) {
	for _, name := range []string{"gpt-oss", "qwen35moe", "phimoe"} {
		t.Run(name, func(t *testing.T) {
			path := "testdata/transformers/" + name + ".gguf"
			together(t, path, kv.F16, conversations(t, path, kv.F16, 16), false)
		})
	}
}
