package structure

import (
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Accepts reports whether the answer may end here.
func (s *State) Accepts() bool { return s.read.Accepts() }

// Next returns the state after a token, nil if it may not stand there. An error is one of the
// grammar's budget.
func (s *State) Next(id int32) (*State, error) {
	text := s.format.tokens.Text(id)
	next, n, err := s.read.Read(text)
	if err != nil || n < len(text) || n == 0 {
		return nil, err
	}
	return s.format.at(next), nil
}

// Peek is Next as far as that is known without work or waiting.
func (s *State) Peek(id int32) (next *State, known bool) {
	text := s.format.tokens.Text(id)
	at, n, known := s.read.Peek(text)
	if !known || n < len(text) || n == 0 {
		return nil, known
	}
	return s.format.at(at), true
}

// Forced returns the next token if the format leaves no choice but the spelling: the first one of the forced
// text, as the tokenizer spells it. It depends on the state alone.
func (s *State) Forced(rests Rests) (id int32, ok bool) {
	s.forcing.Do(func() {
		s.id = none
		defer s.forced.Store(true)
		f := s.format
		var text []byte
		var err error
		rests.work(func(rest func()) { text, err = s.read.ForcedWithin(f.vocabulary, rest) })
		if err != nil || len(text) == 0 {
			return
		}
		id, ok := f.first(string(text))
		if !ok {
			return
		}
		if next, err := s.Next(id); err == nil && next != nil {
			s.id = id
		}
	})
	return s.id, s.id != none
}

// first returns the first token of a text, as the tokenizer spells it.
func (f *Format) first(text string) (id int32, ok bool) {
	o := tokenizer.Options{Within: true}
	if name, special := strings.CutPrefix(text, grammar.Special); special {
		text, o.ParseSpecial = name, true
	} else {
		text, _, _ = strings.Cut(text, grammar.Special)
	}
	ids := f.tokens.Encode(nil, text, o)
	if len(ids) == 0 || !f.vocabulary.Has(ids[0]) {
		return 0, false
	}
	return ids[0], true
}

// ForcedKnown reports whether Forced answers at once.
func (s *State) ForcedKnown() bool { return s.forced.Load() }

// Mask returns the tokens that may follow. It is not to be changed. An error is one of the
// grammar's budget.
func (s *State) Mask(rests Rests) (grammar.Mask, error) {
	s.masking.Do(func() {
		defer s.masked.Store(true)
		f := s.format
		if !s.read.Shared() {
			if s.mask, s.err = f.at(s.read.Rules()).Mask(rests); s.err == nil {
				s.mask = slices.Clone(s.mask)
				rests.work(func(rest func()) { s.err = s.read.Withhold(f.vocabulary, s.mask, rest) })
			}
			return
		}
		s.mask = make(grammar.Mask, f.vocabulary.Words())
		rests.work(func(rest func()) { s.err = s.read.Allow(f.vocabulary, s.mask, rest) })
		f.mu.Lock()
		f.keep(len(s.mask) * 8)
		f.mu.Unlock()
	})
	return s.mask, s.err
}

// MaskKnown reports whether Mask answers at once.
func (s *State) MaskKnown() bool { return s.masked.Load() }

// Rests lets long work rest: it calls work with a function for work to call now and then, which may wait for
// others. It gives back what it takes meanwhile, such as a place among the workers, when work returns. Work
// that locks a grammar is alone in its call. Nobody who has a place then waits for the lock, whose owner may
// wait for a place. Nil: work does not rest.
type Rests func(work func(rest func()))

func (r Rests) work(work func(rest func())) {
	if r == nil {
		work(nil)
		return
	}
	r(func(rest func()) { work(Spaced(rest)) })
}

// restAfter is the time for which work goes on before it rests; a test has it rest at once.
var restAfter = 2 * time.Millisecond

// Spaced calls rest no more often than every restAfter.
func Spaced(rest func()) func() {
	if rest == nil {
		return nil
	}
	last := time.Now()
	return func() {
		if time.Since(last) >= restAfter {
			rest()
			last = time.Now()
		}
	}
}
