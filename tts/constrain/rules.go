// Package constrain holds what a model writes to what a request asks: formats, bounds of
// thoughts, words that are never said, tokens that may end an answer.
package constrain

import (
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/text"
)

// Words has the parts of a model that constraints need.
type Words struct {
	Tokenizer *tokenizer.Tokenizer
	Vocab     int        // token ids are 0 to Vocab-1
	Thinks    bool       // answers may begin with thoughts
	Thoughts  text.Marks // of them
}

// Rules are a request's constraints on its answers.
type Rules struct {
	// MinTokens is the number of tokens before which neither a token nor a stop
	// string ends a choice.
	MinTokens int
	// MaxThinking is the number of tokens after which a thought is ended; 0: no bound.
	MaxThinking int
	// BadWords are never completed, spelt with the tokens that they have at a
	// text's beginning, or after a space.
	BadWords []string
	// Allowed are the only tokens that may be sampled; nil: all.
	Allowed []int32
	// Format is the format of the answers; nil: none.
	Format *structure.Format
	// JSON says that Format is one of JSON.
	JSON bool
	// Unheld are formats of strings that the schema of Format names and answers are not
	// held to: annotations, since nobody knows them.
	Unheld []string
	// FormatThoughts says that Format describes the thought before an answer too, from
	// the mark on that begins it; else Format is for what follows a thought.
	FormatThoughts bool
}

// FormatError says why it cannot be found out what may come next by Rules.Format: it
// takes more work or memory than a format may have.
type FormatError struct{ Err error }

func (e *FormatError) Error() string {
	return "tts: the grammar or schema that the answer is held to cannot be used: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }
