package tts

import (
	"context"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// What tests outside of the package see of its inside. They are outside because
// they search with package reward, which imports this one.

const (
	Probes          = probes
	PartialBytes    = partialBytes
	PartialInterval = partialInterval
)

var (
	Exchanges = exchanges
	From      = from
)

func (p *Prepared) Messages() []template.Message { return p.messages }

func (m *Model) Reserve(maxTokens int) int { return reserveFor(m, maxTokens) }

func (m *Model) Rendered(ctx context.Context, p *Prompt, limit int) (*Prepared, error) {
	return renderPrompt(ctx, m, p, limit)
}

func (m *Model) ThinksAfter(prompt []int32) bool { return endsInThought(m, prompt) }

func (c *Candidate) SetAnswer(key string) { c.key = key }

func Rank(cands []*Candidate, sel scaling.Select) []*Candidate { return rank(cands, sel).order }

// Drawn returns which n of all particles a plan that has its defaults draws after a step of a round.
func Drawn(p *scaling.Plan, seed uint64, round, step, n int, all []*Candidate) []int {
	scores := make([]float32, len(all))
	for i, c := range all {
		scores[i] = c.Score
	}
	return drawParticles(&p.Particles, seed, round, step, n, scores)
}
