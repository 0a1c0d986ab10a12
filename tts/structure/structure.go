// Package structure holds answers to a grammar: which tokens may follow what has been
// written. One Format serves all candidates of a request.
package structure

import (
	"bytes"
	"sync"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Vocabulary is the texts of a tokenizer's tokens.
func Vocabulary(t *tokenizer.Tokenizer) *grammar.Vocabulary {
	return grammar.NewVocabulary(t.Size(), func(id int32) []byte { return Text(t, id) })
}

// Text is what a token adds to a structured answer: its text, or grammar.Special and
// the name of one that is not ordinary. It is nothing for a token that no text has.
func Text(t *tokenizer.Tokenizer, id int32) []byte {
	if !t.Plain(id) {
		return []byte(grammar.Special + t.Token(id))
	}
	if text := t.Piece(id); !bytes.Contains(text, []byte(grammar.Special)) {
		return text
	}
	return nil
}

// The bounds of what a Format remembers.
const (
	mostPlaces = 1 << 10
	mostMasks  = 8 << 20 // bytes
)

// Format is a grammar over a vocabulary, with what has been found out about it. Any
// number of goroutines may use it.
type Format struct {
	grammar    *grammar.Grammar
	vocabulary *grammar.Vocabulary
	text       func(id int32) []byte

	mu     sync.Mutex
	places map[place]*grammar.State
	masks  map[*grammar.State]*allowed
}

// place names what has been written so far, by its length and a sum of its tokens.
type place struct {
	tokens int
	sum    uint64
}

// allowed is the tokens that may follow a state.
type allowed struct {
	once sync.Once
	mask grammar.Mask
	err  error
}

// New makes a format. text is what a token adds to an answer, as Text has it.
func New(g *grammar.Grammar, v *grammar.Vocabulary, text func(id int32) []byte) *Format {
	return &Format{grammar: g, vocabulary: v, text: text, places: map[place]*grammar.State{}, masks: map[*grammar.State]*allowed{}}
}

// Worn reports whether the format should be made anew for further requests.
func (f *Format) Worn() bool { return f.grammar.Worn() }

// with is the sum behind one more token.
func (p place) with(id int32) place {
	return place{p.tokens + 1, (p.sum ^ uint64(id)) * 0x9e3779b97f4a7c15}
}

// State is where an answer stands behind tokens; nil: they are no beginning of one.
// An error is grammar.ErrComplex.
func (f *Format) State(tokens []int32) (*grammar.State, error) {
	places := make([]place, len(tokens)+1)
	for i, id := range tokens {
		places[i+1] = places[i].with(id)
	}
	s, at := f.latest(places)
	for ; at < len(tokens) && s != nil; at++ {
		next, err := f.read(s, tokens[at])
		if err != nil {
			return nil, err
		}
		s = next
		f.mu.Lock()
		if len(f.places) >= mostPlaces {
			clear(f.places)
		}
		f.places[places[at+1]] = s
		f.mu.Unlock()
	}
	return s, nil
}

// latest is the state of the last place that is known, and its number of tokens.
func (f *Format) latest(places []place) (*grammar.State, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(places) - 1; i > 0; i-- {
		if s, known := f.places[places[i]]; known {
			return s, i
		}
	}
	return f.grammar.Start(), 0
}

// read is the state behind a token, nil if it may not stand there.
func (f *Format) read(s *grammar.State, id int32) (*grammar.State, error) {
	text := f.text(id)
	next, n, err := s.Read(text)
	if err != nil {
		return nil, err
	}
	if n < len(text) || n == 0 {
		return nil, nil
	}
	return next, nil
}

// Mask is the tokens that may follow s. It is not to be changed.
func (f *Format) Mask(s *grammar.State) (grammar.Mask, error) {
	f.mu.Lock()
	a := f.masks[s]
	if a == nil {
		if (len(f.masks)+1)*f.vocabulary.Words()*8 > mostMasks {
			clear(f.masks)
		}
		a = &allowed{}
		f.masks[s] = a
	}
	f.mu.Unlock()
	a.once.Do(func() {
		a.mask = make(grammar.Mask, f.vocabulary.Words())
		a.err = s.Allow(f.vocabulary, a.mask)
	})
	return a.mask, a.err
}
