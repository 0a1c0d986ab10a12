package tts

import (
	"math"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/structure"
)

// constraint is what a request forbids the model to say.
type constraint struct {
	vocab   int
	least   int     // tokens before which none of ends may come
	ends    []int32 // tokens that end an answer
	bad     [][]int32
	longest int     // tokens of bad's longest
	allowed []int32 // nil: all tokens
	thought *thoughtLimit
	format  *structured
}

// constraint is nil for a request that forbids nothing. thinking says that the prompt
// ends within a thought.
func (r *Request) constraint(m *Model, thinking bool) sampling.Constraint {
	if r.MinTokens == 0 && len(r.BadWords) == 0 && r.Allowed == nil && r.MaxThinking == 0 && r.Format == nil {
		return nil
	}
	c := &constraint{vocab: m.Vocab, least: r.MinTokens, allowed: r.Allowed, thought: m.thoughtLimit(r.MaxThinking, thinking)}
	if r.Format != nil {
		switch {
		case thinking && r.FormatThoughts:
			c.format = newStructured(r.Format, m, "", m.Tokenizer.Encode(nil, thinkBegin, tokenizer.Options{ParseSpecial: true}))
		case thinking:
			c.format = newStructured(r.Format, m, thinkEnd, nil)
		default:
			c.format = newStructured(r.Format, m, "", nil)
		}
	}
	c.ends = slices.Concat(r.Sampling.Stop, m.Tokenizer.EOGs())
	for _, word := range r.BadWords {
		for _, text := range []string{word, " " + word} { // as it begins a text, and within one
			ids := m.Tokenizer.Encode(nil, text, tokenizer.Options{})
			if len(ids) > 0 && !slices.ContainsFunc(c.bad, func(b []int32) bool { return slices.Equal(b, ids) }) {
				c.bad = append(c.bad, ids)
				c.longest = max(c.longest, len(ids))
			}
		}
	}
	return &standing{constraint: c, thinking: c.thought.start(), form: c.format.start()}
}

// HeldTo is a constraint that holds answers of the model to a format of it.
func (m *Model) HeldTo(f *structure.Format) sampling.Constraint {
	return (&Request{Format: f}).constraint(m, false)
}

// standing is where a completion stands in a constraint. What it keeps does not grow
// with the completion.
type standing struct {
	*constraint
	length   int     // tokens of the completion
	tail     []int32 // the last of them, as many as bad words can begin with
	thinking thoughtState
	form     *formState

	mu       sync.Mutex
	prepared sampling.Prepared
}

var _ sampling.Preparer = (*standing)(nil)

// Next implements sampling.Constraint.
func (s *standing) Next(id int32) sampling.Constraint {
	n := &standing{constraint: s.constraint, length: s.length + 1, thinking: s.thought.next(s.thinking, id), form: s.format.next(s.form, id)}
	if keep := s.longest - 1; keep > 0 {
		n.tail = append(append(make([]int32, 0, keep), s.tail[max(0, len(s.tail)+1-keep):]...), id)
	}
	return n
}

// closed is what is prepared where there is nothing to find out.
var closed = func() sampling.Prepared {
	c := make(chan struct{})
	close(c)
	return sampling.Prepared{Forced: c, Allowed: c}
}()

// Prepare implements sampling.Preparer.
func (s *standing) Prepare() sampling.Prepared {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prepared.Forced == nil {
		if s.prepared = closed; !s.format.known(s.form) {
			s.prepared = s.format.find(s.form)
		}
	}
	return s.prepared
}

// Forced implements sampling.Preparer.
func (s *standing) Forced() (id int32, ok bool) {
	if id, ends := s.thought.ending(s.thinking); ends {
		return id, true
	}
	id, ok = s.format.forced(s.form)
	return id, ok && !slices.ContainsFunc(s.bad, func(word []int32) bool { return s.completes(word, id) })
}

// completes reports whether a token completes a bad word.
func (s *standing) completes(word []int32, id int32) bool {
	head := word[:len(word)-1]
	return word[len(head)] == id && len(head) <= len(s.tail) && slices.Equal(s.tail[len(s.tail)-len(head):], head)
}

// Allow implements sampling.Constraint.
func (s *standing) Allow(mask []uint64) {
	if id, ends := s.thought.ending(s.thinking); ends {
		mask[id/64] |= 1 << (id % 64)
		return
	}
	if s.format != nil {
		switch err := s.allow(mask); {
		case err == errStrayed: // as guesses may
			clear(mask)
			return
		case err != nil:
			panic(err) // the request fails, by no fault of what it asks for
		}
	} else if s.allowed == nil {
		for w := range mask {
			mask[w] = math.MaxUint64
		}
	}
	for _, id := range s.allowed {
		mask[id/64] |= 1 << (id % 64)
	}
	if s.length < s.least {
		for _, id := range s.ends {
			s.forbid(mask, id)
		}
	}
	for _, word := range s.bad {
		if id := word[len(word)-1]; s.completes(word, id) {
			s.forbid(mask, id)
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
