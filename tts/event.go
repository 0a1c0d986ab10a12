package tts

import (
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Event tells of a change in a choice of an answer. The first of a run is its Opening: errors of the
// request itself come before it. The last of a choice is its End.
type Event struct {
	Choice int  // the first of the run's where it happens to all of them
	More   bool // the choice's next event comes without waiting
	What   What
}

// What is one of Opening, PromptScores, TokenIDs, Text, Reasoning, Calls, Usage, *Progress, *Outcome and End.
type What interface{ event() }

// Opening says that a request has been accepted, and how its choices go on from the prompt.
type Opening struct {
	Prompt  []int32 // tokens
	Dropped int     // messages that were left out of the prompt
	// Thinking and ContinuesText are Prepared's.
	Thinking, ContinuesText bool
}

// PromptScores are the tokens of a prompt with their log-probabilities, of all its choices.
type PromptScores []Token

// TokenIDs are tokens of a choice as they were sampled, before the event that has their text.
type TokenIDs []int32

// Text is new text of a choice.
type Text struct {
	Text    string  // may be empty while bytes are held back
	Tokens  []Token // whose text begins in Text, where log-probabilities are wanted
	Sampled int     // tokens generated since the choice's last Text, where no Usage counts them
	Last    bool    // it is the choice's last
}

// Reasoning is text that comes before the answer and is no part of it: what Thoughts has
// set apart, or how a search goes, with StreamReasoning.
type Reasoning string

// Calls are pieces of calls of tools, which Calling has set apart.
type Calls []toolcall.Call

// End says why and where a choice ended.
type End struct {
	Finish Finish
	Stop   string // the stop string that ended it
	Timing Timing
}

func (Opening) event()      {}
func (PromptScores) event() {}
func (TokenIDs) event()     {}
func (Text) event()         {}
func (Reasoning) event()    {}
func (Calls) event()        {}
func (End) event()          {}
func (Usage) event()        {} // tokens spent since the last one
func (*Progress) event()    {} // where a search stands
func (*Outcome) event()     {} // of a search, before its choices end

// Usage counts tokens.
type Usage struct {
	Prompt     int // tokens of the prompt, once for all choices
	Cached     int // tokens of these that the prefix cache saved
	Completion int // tokens generated for candidates that took part in the answer's choice
	Verifier   int // tokens that a verifier read of these, each different beginning once
	Critiques  int // tokens that it wrote of these
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
	u.Critiques += v.Critiques
	u.Cancelled += v.Cancelled
}

// Count counts the tokens that an event tells of: the sum over a run is its cost.
func (u *Usage) Count(e Event) {
	switch w := e.What.(type) {
	case Opening:
		u.Prompt += len(w.Prompt)
	case Text:
		u.Completion += w.Sampled
	case Usage:
		u.Add(w)
	}
}
