package tts

import (
	"maps"

	"github.com/lutra-lm/lutra/models/template"
)

// Prompt is the text that a model continues: the first of Messages, Tokens and Text that is set.
type Prompt struct {
	Messages        []template.Message // a conversation, rendered with the model's template
	Before          []int32            // token ids that stand before a conversation
	Tools           []any              // tool definitions as their JSON decodes; the template gets them as toolcall.Normalize writes them
	Extra           map[string]any     // further variables of the template
	Ending          Ending             // of the conversation
	Truncate        bool               // leave out the oldest exchanges of a conversation that does not fit
	Tokens          []int32            // token ids, taken as they are
	Text            string             // plain text
	Infill          *Infill            // what Text stands before: the answer goes between; nil: nothing
	NoBOS           bool               // begin Text without the BOS that the model may want
	NoSpecialTokens bool               // take the names of special tokens in Text for plain text
}

// Infill is the text around a gap that the answer fills, besides the text before it.
type Infill struct {
	Suffix string // the text after the gap
	Files  []File // others of the same project
}

// File is a text with a name.
type File struct{ Name, Text string }

// Ending says how a rendered conversation ends.
type Ending uint8

// The endings.
const (
	AddGenerationPrompt  Ending = iota // with the header of an answer
	NoGenerationPrompt                 // with the last message
	ContinueFinalMessage               // within the last message, which the answer continues
)

// Prepared is a prompt as the model reads it.
type Prepared struct {
	Tokens  []int32
	Text    string // what Tokens encode; empty where token ids were given
	Dropped int    // messages that were left out
	// Prefix is the text of the message that the answer continues.
	Prefix string
	// Thinking says that the model goes on in a thought, ContinuesText that it goes on
	// in the midst of its thought or answer, whose white space then counts.
	Thinking, ContinuesText bool

	Messages []template.Message // those that were not left out
}

// Opening returns the event that a run begins with.
func (p *Prepared) Opening() Event {
	return Event{What: Opening{Prompt: p.Tokens, Dropped: p.Dropped, Thinking: p.Thinking, ContinuesText: p.ContinuesText}}
}

// part returns where the prompt comes from.
func (p *Prompt) part() Part {
	if p.Messages != nil {
		return PartMessages
	}
	return PartPrompt
}

// thinkingVariable is the variable that switches thinking in chat templates such as Qwen3's and SmolLM3's.
const thinkingVariable = "enable_thinking"

// SwitchThinking switches thinking on or off where the prompt does not say itself.
func (p *Prompt) SwitchThinking(on bool) {
	if _, said := p.Extra[thinkingVariable]; said {
		return
	}
	vars := map[string]any{thinkingVariable: on}
	maps.Copy(vars, p.Extra)
	p.Extra = vars
}
