package reference

import (
	"math"
	"os"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// 4-bit keys and values without the query's own block in 8 bits have 0.042 (docs/data/kv-scales-h.csv).
func TestKeysAndValuesInFewerBitsKeepAPublicModelsAnswers(t *testing.T) {
	const first, tokens = 256, 1024
	path := realModel(t, "smollm2.gguf")
	text, err := os.ReadFile("../../docs/serving.md")
	if err != nil {
		t.Fatal(err)
	}
	logProbs := func(logits []float32) []float64 {
		p, sum := make([]float64, len(logits)), logSum(logits)
		for i, x := range logits {
			p[i] = float64(x) - sum
		}
		return p
	}
	var want [][]float32
	for _, c := range []struct {
		kind  string
		bound float64
	}{{"f16", 0}, {"int8", 0.01}, {"int8/int4", 0.01}, {"int4", 0.03}} {
		withReal(t, Options{Model: path, KVType: c.kind}, func(b *models.Bundle, score Scorer) {
			ids := b.Tokenizer.Encode(nil, string(text[:8*tokens]), tokenizer.Options{})
			if len(ids) < tokens {
				t.Fatalf("the text has %d tokens", len(ids))
			}
			sum := 0.0
			if err := score(ids[:tokens], func(at int, logits []float32) error {
				switch {
				case at < first:
				case c.bound == 0:
					want = append(want, append([]float32(nil), logits...))
				default:
					p, q := logProbs(want[at-first]), logProbs(logits)
					for i := range p {
						sum += math.Exp(p[i]) * (p[i] - q[i])
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			kl := sum / (tokens - first)
			t.Logf("%s: KL divergence from f16 %.4f", c.kind, kl)
			if !(kl <= c.bound) {
				t.Errorf("%s: KL divergence from f16 %.4f, want at most %v", c.kind, kl, c.bound)
			}
		})
	}
}
