package tts

import (
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// Readings sums up, in order, the engine's probe of the states that a candidate's tokens so far were sampled
// from.
type Readings struct {
	Tokens int
	Sum    []float32 // [Width] over the tokens
	Last   []float32 // [Width] of the last

	Logprob   float64 // sum
	Least     float32 // log-probability of a token
	Certainty float64 // sum
}

// Add takes in a further token. Tokens without a reading count for nothing.
func (r *Readings) Add(tok *sampling.Token) {
	if tok.Reading == nil {
		return
	}
	if r.Sum == nil {
		r.Sum = make([]float32, len(tok.Reading))
	}
	for i, x := range tok.Reading {
		r.Sum[i] += x
	}
	r.Tokens++
	r.Last = tok.Reading
	r.Logprob += float64(tok.Logprob)
	r.Certainty += float64(tok.Certainty)
	r.Least = min(r.Least, tok.Logprob)
}

// Clone returns a copy that further tokens do not change.
func (r *Readings) Clone() Readings {
	c := *r
	c.Sum = slices.Clone(r.Sum)
	return c
}
