package tts

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/batcher"
)

// Errors of a request that cannot be answered as it stands.
var (
	// ErrEmpty says that a prompt encodes to no tokens.
	ErrEmpty = errors.New("tts: the prompt is empty")
	// ErrToken says that a token id is outside the vocabulary.
	ErrToken = errors.New("tts: token id outside the vocabulary")
	// ErrLogprobs says that an answer would list more log-probabilities than Request.MaxLogprobs.
	ErrLogprobs = errors.New("tts: too many log-probabilities")
	// ErrPromptLogprobs says so of its prompt.
	ErrPromptLogprobs = errors.New("tts: too many log-probabilities of a prompt")
	// ErrInfill says that the model cannot fill in the middle of a text.
	ErrInfill = errors.New("tts: the vocabulary has no tokens to fill in the middle of a text")
	// ErrFormat says that a request has something that Request.Format excludes.
	ErrFormat = errors.New("tts: it does not go with a format")
	// ErrTemplate says that the chat template refused the messages, or that the model has none.
	ErrTemplate = errors.New("tts: chat template")
)

// ContextError says that a prompt leaves no room in the context. It is a
// batcher.ErrTooLong.
type ContextError struct {
	Limit  int  // tokens that prompt and completion may have together
	Prompt int  // tokens of the prompt; of a text far too long, the fewest it can have
	Part   Part // what is too long
}

// Part is the part of a request that is at fault.
type Part string

// The parts.
const (
	PartMessages  Part = "messages"
	PartPrompt    Part = "prompt"
	PartResponses Part = "responses" // to be rated
)

func (e *ContextError) Error() string {
	return fmt.Sprintf("tts: the prompt has at least %d tokens, the context %d", e.Prompt, e.Limit)
}

// Unwrap makes errors.Is(err, batcher.ErrTooLong) hold.
func (e *ContextError) Unwrap() error { return batcher.ErrTooLong }
