package probe

import (
	"context"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/search"
)

// Scorer judges by a probe that the generator's engine reads for.
type Scorer struct {
	*Probe
	at int // its first channel
}

// Scorers returns scorers of the probes that Read was given, in the same order.
func Scorers(probes []*Probe) []*Scorer {
	list := make([]*Scorer, len(probes))
	for i, p := range probes {
		list[i] = &Scorer{p, channels * i}
	}
	return list
}

// ReadsStates tells that the scorer judges nothing but what this engine has generated.
func (*Scorer) ReadsStates() bool { return true }

// Open implements tts.Scorer.
func (s *Scorer) Open(context.Context, *tts.Model, *tts.Request, []int32) (tts.Judge, error) {
	return search.ByOwn(func(c *tts.Candidate) float64 {
		if c.Finish == "" {
			return s.Step.score(&c.Readings, s.at+lineChannels)
		}
		return s.Whole.score(&c.Readings, s.at)
	}), nil
}
