package search_test

import (
	"fmt"
	"testing"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

// BenchmarkSearch answers one question after the other, each N at the same
// questions: time against N=1 is what a search costs beside a single sample.
func BenchmarkSearch(b *testing.B) {
	for _, name := range []string{"lutra-tiny-s", "lutra-tiny-l"} {
		model, judges := tiny(b, name)
		for _, n := range []int{1, 8, 32} {
			var s tts.Strategy = tts.Single{Model: model}
			if n > 1 {
				s = Search{Model: model, Plan: scaling.Plan{Method: scaling.BestOfN, N: n}, Verifiers: judges}
			}
			b.Run(fmt.Sprintf("%s/N=%d", name, n), func(b *testing.B) {
				set := problems(b, 64)
				i, tokens, judged := 0, 0, 0
				for b.Loop() {
					req := tts.Request{Prompt: tts.Prompt{Messages: []template.Message{{Role: "user", Content: set[i%len(set)].Question}}}}
					req.Sampling = sampling.Params{Temperature: 0.8, Seed: uint64(i), MaxTokens: 256}
					for e, err := range s.Run(b.Context(), &req) {
						if err != nil {
							b.Fatal(err)
						}
						d := ttstest.Flatten(e)
						tokens += d.Usage.Completion
						judged += d.Usage.Verifier
					}
					i++
				}
				b.ReportMetric(float64(tokens)/float64(i), "tokens/op")
				b.ReportMetric(float64(judged)/float64(i), "judged/op")
			})
		}
	}
}
