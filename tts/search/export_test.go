package search

import (
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// What tests outside of the package see of its inside. They are outside because
// they search with package reward, which imports this one.

const (
	Probes          = probes
	PartialBytes    = partialBytes
	PartialInterval = partialInterval
)

func Rank(cands []*tts.Candidate, sel scaling.Select) []*tts.Candidate { return rank(cands, sel).order }

// Drawn returns which n of all particles a plan that has its defaults draws after a step of a round.
func Drawn(p *scaling.Plan, seed uint64, round, step, n int, all []*tts.Candidate) []int {
	scores := make([]float32, len(all))
	for i, c := range all {
		scores[i] = c.Score
	}
	return drawParticles(&p.Particles, seed, round, step, n, scores)
}
