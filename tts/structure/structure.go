// Package structure holds answers to a grammar: which tokens may follow what has been
// written. One Format serves all candidates of a request, and all requests for it.
package structure

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Vocabulary returns the texts of a tokenizer's tokens.
func Vocabulary(t *tokenizer.Tokenizer) *grammar.Vocabulary {
	return grammar.NewVocabulary(t.Size(), TokensOf(t).Text)
}

// TokensOf returns what formats have to know of a tokenizer.
func TokensOf(t *tokenizer.Tokenizer) Tokens { return tokens{t} }

type tokens struct{ *tokenizer.Tokenizer }

// Text returns the text of an ordinary token, or grammar.Special and the name of another
// one. It is nothing for a token that no text has.
func (t tokens) Text(id int32) []byte {
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
	mostStates = 1 << 12
	mostMasks  = 8 << 20 // bytes, and no more than a quarter of the format's
	stateBytes = 192     // of a state without its mask
)

// Tokens has the part of a tokenizer that a format needs.
type Tokens interface {
	Text(id int32) []byte // what a token adds to an answer
	// Encode appends the tokens of a text to dst.
	Encode(dst []int32, text string, o tokenizer.Options) []int32
}

// Format is a grammar over a vocabulary, with what has been found out about it. Any
// number of goroutines may use it.
type Format struct {
	grammar    *grammar.Grammar
	vocabulary *grammar.Vocabulary
	tokens     Tokens

	mu      sync.Mutex
	states  map[*grammar.State]*State
	held    int    // bytes that they and their masks hold
	cleared uint64 // of the grammar, when states was last empty
}

// New makes a format.
func New(g *grammar.Grammar, v *grammar.Vocabulary, t Tokens) *Format {
	return &Format{grammar: g, vocabulary: v, tokens: t, states: map[*grammar.State]*State{}}
}

// Worn reports whether the format should be made anew for further requests.
func (f *Format) Worn() bool { return f.grammar.Worn() }

// Start returns where answers begin.
func (f *Format) Start() *State { return f.at(f.grammar.Start()) }

// Budget returns what the format takes.
func (f *Format) Budget() *budget.Budget { return f.grammar.Budget() }

// at returns what is known of a state of the grammar.
func (f *Format) at(s *grammar.State) *State {
	if !s.Shared() {
		return &State{format: f, read: s}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.states[s]
	if p == nil {
		f.keep(stateBytes)
		p = &State{format: f, read: s}
		f.states[s] = p
	}
	return p
}

// keep charges bytes for states and masks. It forgets all states before if they are too
// many or too large, or the grammar has forgotten its own. Locked.
func (f *Format) keep(bytes int) {
	b := f.Budget()
	most := int(min(mostMasks, b.Bytes()/4))
	if cleared := f.grammar.Cleared(); len(f.states) >= mostStates || f.held+bytes > most || cleared != f.cleared {
		f.cleared = cleared
		f.forget()
	}
	f.held += bytes
	if b.Hold(bytes) != nil && f.held > bytes { // others need the memory more than what can be worked out again
		f.held -= bytes
		f.forget()
		f.held += bytes
	}
}

// forget forgets all states. Locked.
func (f *Format) forget() {
	clear(f.states)
	f.Budget().Release(f.held)
	f.held = 0
}

// State is where an answer stands in a format, with what has been found out about it.
// Any number of goroutines may use it.
type State struct {
	format *Format
	read   *grammar.State

	forcing sync.Once
	id      int32 // that is forced, or none
	forced  atomic.Bool

	masking sync.Once
	mask    grammar.Mask
	masked  atomic.Bool
	err     error // of the mask
}

// none says that no token is forced.
const none int32 = -1
