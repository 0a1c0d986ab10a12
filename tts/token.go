package tts

import (
	"time"

	"github.com/lutra-lm/lutra/batcher"
)

// Finish says why a choice ended.
type Finish string

// The reasons, in OpenAI's words but for the last.
const (
	FinishStop   Finish = "stop"       // the model ended its turn, or a stop string appeared
	FinishLength Finish = "length"     // the token limit or the context's end
	FinishCalls  Finish = "tool_calls" // the model ended its turn, and has called tools
	// FinishRepetition is of an answer that a Request's Repetition ended, in vLLM's word.
	FinishRepetition Finish = "repetition"
)

// Cut reports whether the end of the answer is missing.
func (f Finish) Cut() bool { return f == FinishLength || f == FinishRepetition }

// Token is a token of the answer (or of an echoed prompt) with its
// log-probability.
type Token struct {
	ID      int32
	Bytes   []byte
	Logprob float32
	// Certainty belongs to the distribution that the token was sampled from, as in sampling.Token.
	Certainty float32
	Rank      int  // among all tokens in its place, from 1 on
	Known     bool // Logprob and Certainty hold a value: false for a prompt's first token, which nothing predicts
	Hidden    bool // Bytes are its name: it adds nothing to the text
	End       bool // it ended the choice, and is no part of the text
	Top       []Alternative
}

// Said returns tokens without the one that ended the choice.
func Said(tokens []Token) []Token {
	if n := len(tokens); n > 0 && tokens[n-1].End {
		return tokens[:n-1]
	}
	return tokens
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

	First, Last time.Time // tokens, by the engine's clock: whoever reads them may come later
}

// TimingOf returns the timing of a sequence whose prompt root computed.
func TimingOf(root, seq batcher.Timing) Timing {
	if root.Started.IsZero() || seq.FirstToken.IsZero() {
		return Timing{}
	}
	return Timing{
		Queue:   root.Started.Sub(root.Opened),
		Prefill: seq.FirstToken.Sub(root.Started),
		Decode:  seq.LastToken.Sub(seq.FirstToken),
		First:   seq.FirstToken,
		Last:    seq.LastToken,
	}
}
