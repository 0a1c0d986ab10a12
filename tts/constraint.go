package tts

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// constraint is what a request forbids the model to say.
type constraint struct {
	vocab   int
	least   int     // tokens before which none of ends may come
	ends    []int32 // tokens that end an answer
	bad     [][]int32
	allowed []int32 // nil: all tokens
	thought thoughtLimit
	format  structured
}

var _ sampling.Constraint = (*constraint)(nil)

// constraint is nil for a request that forbids nothing. thinking says that the prompt
// ends within a thought.
func (r *Request) constraint(m *Model, thinking bool) sampling.Constraint {
	if r.MinTokens == 0 && len(r.BadWords) == 0 && r.Allowed == nil && r.MaxThinking == 0 && r.Format == nil {
		return nil
	}
	c := &constraint{vocab: m.Vocab, least: r.MinTokens, allowed: r.Allowed, thought: m.thoughtLimit(r.MaxThinking, thinking)}
	c.format = structured{Format: r.Format, model: m}
	switch {
	case thinking && r.FormatThoughts:
		c.format.begun = m.Tokenizer.Encode(nil, thinkBegin, tokenizer.Options{ParseSpecial: true})
	case thinking:
		c.format.after = thinkEnd
	}
	c.ends = slices.Concat(r.Sampling.Stop, m.Tokenizer.EOGs())
	for _, word := range r.BadWords {
		for _, text := range []string{word, " " + word} { // as it begins a text, and within one
			ids := m.Tokenizer.Encode(nil, text, tokenizer.Options{})
			if len(ids) > 0 && !slices.ContainsFunc(c.bad, func(b []int32) bool { return slices.Equal(b, ids) }) {
				c.bad = append(c.bad, ids)
			}
		}
	}
	return c
}

// Allow implements sampling.Constraint.
func (c *constraint) Allow(mask []uint64, completion []int32) {
	if id, ends := c.thought.next(completion); ends {
		clear(mask)
		mask[id/64] |= 1 << (id % 64)
		return
	}
	if c.format.Format != nil {
		if c.allow(mask, completion) != nil {
			clear(mask) // nothing can be sampled, and the request fails
			return
		}
	} else if c.allowed == nil {
		for w := range mask {
			mask[w] = math.MaxUint64
		}
	}
	for _, id := range c.allowed {
		mask[id/64] |= 1 << (id % 64)
	}
	if len(completion) < c.least {
		for _, id := range c.ends {
			c.forbid(mask, id)
		}
	}
	for _, word := range c.bad {
		if head := word[:len(word)-1]; len(head) <= len(completion) && slices.Equal(completion[len(completion)-len(head):], head) {
			c.forbid(mask, word[len(head)])
		}
	}
}

// forbid removes a token from a mask.
func (c *constraint) forbid(mask []uint64, id int32) {
	if int(id) < c.vocab && id >= 0 {
		mask[id/64] &^= 1 << (id % 64)
	}
}

// sampling are the parameters of every choice, with the model's own ends and
// what the request forbids. thinking: answers begin in a thought.
func (r *Request) sampling(m *Model, thinking bool) sampling.Params {
	p := r.Sampling
	p.Constraint = r.constraint(m, thinking)
	if !p.IgnoreEOS {
		p.Stop = sampling.NewTokenSet(p.Stop, m.Tokenizer.EOGs())
	}
	p.IgnoreEOS = false // the request's own ends count all the same
	return p
}
