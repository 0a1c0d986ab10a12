package batcher

import (
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models/kv"
)

// Drafter guesses the next tokens of one engine's sequences. The step loop calls
// it. Its guesses change the speed alone, never the tokens.
type Drafter interface {
	// Kind is the name under which its guesses are counted.
	Kind() DraftKind
	// Draft appends up to Most tokens to the Tokens of each guess. It may take
	// extra seconds, besides its Price, to read texts that are new to it, and
	// has no tokens for those until it has read them. After an error it is not
	// called again.
	Draft(guesses []*Guess, extra float64) error
	// Price returns the seconds that Draft will take, once it knows the texts.
	Price(guesses []*Guess) float64
}

// Follower is a Drafter that reads the hidden states of what its engine's model computes.
type Follower interface {
	Drafter
	// Follow tells of tokens that a step has computed, number at and those after it, and of their states. The guess's Text
	// ends with them.
	Follow(g *Guess, at int, tokens []int32, states []float32)
	// Read reads them, if they are many, at the end of a step. After an error the drafter is not called again.
	Read() error
}

// DraftKind is a way to guess.
type DraftKind uint8

// The kinds.
const (
	DraftLookup DraftKind = iota // what followed the same words before
	DraftModel                   // what a smaller model would say
	DraftMTP                     // what the model's own layer for a further token says
	DraftKinds
)

// String returns the kind's name in metrics.
func (k DraftKind) String() string { return [DraftKinds]string{"lookup", "model", "mtp"}[k] }

// Guess asks a Drafter about one sequence; it is the same one at each call.
type Guess struct {
	Text   []int32         // the sequence's tokens, mostly the last call's and some more
	Prompt int             // of them come before the first generated one
	Params sampling.Params // of the tokens that follow; its Constraint is where Text stands
	Most   int             // tokens wanted
	Tokens []int32         // that may well follow Text, each if those before it do
	Notes  Notes           // what the drafter keeps of the sequence
	Root   *kv.Root        // begins the prefixes that the sequence shares, with Salt
	Salt   kv.Salt
}

// Notes are closed when their sequence loses its KV blocks.
type Notes interface{ Close() }
