package tts

import (
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Delta is what a strategy adds to its answer. A run's first delta is empty
// but for Usage.Prompt and comes as soon as the request has been accepted:
// errors of the request itself come before it.
type Delta struct {
	Choice int    // the choice that Text and Tokens belong to
	Text   string // new text; may be empty while bytes are held back
	// Reasoning is new text that comes before the answer and is no part of it:
	// what Thinking has set apart, or how a search goes, with StreamReasoning.
	Reasoning string
	// Thinking and Midway, on a run's first delta, are those of Prepared: how
	// every choice's text goes on from the prompt.
	Thinking, Midway bool
	Dropped          int             // on a run's first delta: messages left out of the prompt
	Prompt           []int32         // on a run's first delta: the prompt's tokens
	Calls            []toolcall.Call // pieces of calls of tools, which Calling has set apart
	Tokens           []Token         // tokens whose text begins in what was delivered, when log-probabilities are wanted
	Stop             string          // with Finish: the stop string that ended the choice
	Finish           Finish          // set on a choice's last delta
	Usage            Usage           // tokens spent since the last delta; the sum over a run is its cost
	Timing           Timing          // of the choice, set with Finish
	More             bool            // the choice's next delta comes without waiting

	Progress *Progress // where a search stands; nil: nothing new
	Outcome  *Outcome  // of a search, on its last delta
}

// Finish says why a choice ended.
type Finish string

// The reasons, in OpenAI's words.
const (
	FinishStop   Finish = "stop"       // the model ended its turn, or a stop string appeared
	FinishLength Finish = "length"     // the token limit or the context's end
	FinishCalls  Finish = "tool_calls" // the model ended its turn, and has called tools
)

// Usage counts tokens.
type Usage struct {
	Prompt     int // tokens of the prompt, once for all choices
	Cached     int // those of them that the prefix cache saved
	Completion int // tokens generated for candidates that took part in the answer's choice
	Verifier   int // tokens that a verifier read of these, each different beginning once
	// Cancelled are tokens generated for candidates that were given up before
	// they took part: how many depends on their speed, so nobody is charged.
	Cancelled int
}

// Add counts v's tokens too.
func (u *Usage) Add(v Usage) {
	u.Prompt += v.Prompt
	u.Cached += v.Cached
	u.Completion += v.Completion
	u.Verifier += v.Verifier
	u.Cancelled += v.Cancelled
}

// Token is a token of the answer (or of an echoed prompt) with its
// log-probability.
type Token struct {
	ID      int32
	Bytes   []byte
	Logprob float32
	// Certainty is that of the distribution that the token was sampled from, as in sampling.Token.
	Certainty float32
	Known     bool // Logprob and Certainty hold a value: false for a prompt's first token, which nothing predicts
	Hidden    bool // Bytes are its name: it adds nothing to the text
	End       bool // it ended the choice, and is no part of the text
	Top       []Alternative
}

// Alternative is a token that could have stood in a Token's place.
type Alternative struct {
	ID      int32
	Bytes   []byte
	Logprob float32
}

// Timing is where a choice's time went.
type Timing struct {
	Queue   time.Duration // until the prompt's first tokens were computed
	Prefill time.Duration // from then to the first token
	Decode  time.Duration // from the first token to the last
}

// timing of a sequence whose prompt root computed.
func timing(root, seq batcher.Timing) Timing {
	if root.Started.IsZero() || seq.FirstToken.IsZero() {
		return Timing{}
	}
	return Timing{
		Queue:   root.Started.Sub(root.Opened),
		Prefill: seq.FirstToken.Sub(root.Started),
		Decode:  seq.LastToken.Sub(seq.FirstToken),
	}
}
