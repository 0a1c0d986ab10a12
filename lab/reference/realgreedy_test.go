package reference

import (
	"slices"
	"testing"
)

// greedyOf are answers of a model in float32, each token the likeliest.
type greedyOf struct {
	Peer    int // how many of them llama.cpp gives
	Answers []struct {
		Prompt, Answer []int32
		Lead           []float64 // of each token of the answer before the second likeliest, in nats
	}
}

// mostLead is the largest lead that rounding of activations to eight bits may turn over. Peers turn over
// leads of half a nat.
const mostLead = 0.6

// compare returns how many answers are the same. An answer may differ from its first token on that leads by
// less than mostLead.
func (g *greedyOf) compare(t testing.TB, score Scorer) (equal int) {
	t.Helper()
	for i, a := range g.Answers {
		at := -1 // the first token that differs
		last := len(a.Prompt) - 1
		err := score(slices.Concat(a.Prompt, a.Answer[:len(a.Answer)-1]), func(pos int, logits []float32) error {
			if k := pos - last; k >= 0 && at < 0 && logits[a.Answer[k]] < slices.Max(logits) {
				at = k
			}
			return nil
		})
		switch {
		case err != nil:
			t.Fatal(err)
		case at < 0:
			equal++
		case a.Lead[at] > mostLead:
			t.Errorf("answer %d leaves float32 at token %d, which leads by %.2f", i, at, a.Lead[at])
		}
	}
	return equal
}
