package tts

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/text"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Model is a language model ready to be asked in words: an engine with the
// tokenizer and the chat template that belong to its weights. It is immutable
// and may be used by many callers at once.
type Model struct {
	Name      string
	Engine    *batcher.Engine
	Tokenizer *tokenizer.Tokenizer
	Template  *template.Template // nil: the model knows no conversations
	Config    models.Config      // what the model is
	Stops     []string           // texts that end an answer in a conversation, besides the tokens that do
	MaxTurns  int                // latest exchanges of a conversation that the model reads well; 0: all
	Vocab     int                // token ids are 0 to Vocab-1
	Outputs   int                // width of a row of logits: Vocab, or the number of a reward model's scores
	Source    Source             // other machines that go on with a search's candidates, set before the model is used; nil: there are none
	Context   int                // tokens that prompt and completion may have together
	Formats   *constrain.Formats // what answers can be held to
	Identity  *models.Identity   // what its answers depend on; nil: it has no file

	longest int     // bytes of the longest token
	lines   []int32 // tokens that hold a line's end
}

// NewModel ties a loaded bundle to the engine that runs it. Without an engine
// the model can be looked at, but not asked.
func NewModel(b *models.Bundle, e *batcher.Engine) *Model {
	m := &Model{
		Name: b.Name, Engine: e, Tokenizer: b.Tokenizer, Template: b.Template, Stops: b.Stops, MaxTurns: b.MaxTurns,
		Identity: b.Identity, Formats: constrain.NewFormats(b.Tokenizer), Config: b.Model.Config(), Vocab: b.Model.Config().Vocab, Outputs: b.Model.Config().Outputs,
	}
	if e != nil {
		m.Context = e.Limit()
	}
	for id := range int32(m.Tokenizer.Size()) {
		m.longest = max(m.longest, len(m.Bytes(id)))
	}
	m.lines = m.holding([]string{"\n"})
	return m
}

// ToolFormat returns how the model calls tools.
func (m *Model) ToolFormat() *toolcall.Format {
	if m.Template == nil {
		return toolcall.Hermes
	}
	return toolcall.Of(m.Template.Source())
}

// LeastTokens returns the fewest tokens that a text can have.
func (m *Model) LeastTokens(text string) int { return len(text) / max(m.longest, 1) }

// Decode returns the text of tokens, without special ones, as valid UTF-8.
func (m *Model) Decode(ids []int32) string {
	return text.Characters(m.Tokenizer.Decode(ids, false))
}

// Spell returns the text of tokens with the names of special ones, as valid UTF-8.
func (m *Model) Spell(ids []int32) string {
	return text.Characters(m.Tokenizer.Decode(ids, true))
}

// Bytes returns a token's text, for listing tokens one by one, or its name where a
// special token has no text.
func (m *Model) Bytes(id int32) []byte {
	return text.Piece(m.Tokenizer, id)
}

// words returns what constraints have to know of the model.
func (m *Model) words() constrain.Words {
	return constrain.Words{Tokenizer: m.Tokenizer, Vocab: m.Vocab, Thinks: m.Thinks()}
}

// HeldTo returns a constraint that holds answers of the model to a format of it.
func (m *Model) HeldTo(f *structure.Format) sampling.Constraint {
	return (&constrain.Rules{Format: f}).New(m.words(), nil, false)
}

// hidden reports whether a token adds nothing to a text, so that Bytes is its name.
func (m *Model) hidden(id int32) bool {
	return len(m.Tokenizer.Piece(id)) == 0 && len(m.mark(id)) == 0
}

// delimiters returns the tokens that hold one of stops: engines stop at them, so
// that nothing beyond a solution step is computed in vain.
func (m *Model) delimiters(stops []string) []int32 {
	if len(stops) == 1 && stops[0] == "\n" {
		return m.lines
	}
	return m.holding(stops)
}

// holding lists the tokens that hold one of stops.
func (m *Model) holding(stops []string) []int32 {
	var ids []int32
	for id := range int32(m.Vocab) {
		piece := m.Tokenizer.Piece(id)
		if slices.ContainsFunc(stops, func(s string) bool { return bytes.Contains(piece, []byte(s)) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// special returns a special token's name, empty when the vocabulary has no such token.
func (m *Model) special(id int32, ok bool) string {
	if !ok {
		return ""
	}
	return m.Tokenizer.Token(id)
}

// mark returns the text of a token that some vocabularies hide though it divides
// the thoughts from the answer; empty for all others.
func (m *Model) mark(id int32) []byte {
	if name := m.Tokenizer.Token(id); name == text.ThinkBegin || name == text.ThinkEnd {
		return []byte(name)
	}
	return nil
}

// Thinks reports whether answers may begin with thoughts: the chat template knows
// the mark that ends one.
func (m *Model) Thinks() bool {
	return m.Template != nil && strings.Contains(m.Template.Source(), text.ThinkEnd)
}

// ThinkingSwitches reports whether the chat template can switch thinking on and off.
func (m *Model) ThinkingSwitches() bool {
	return m.Template != nil && strings.Contains(m.Template.Source(), thinkingVariable)
}

// thinks reports whether a prompt ends with the mark that begins a thought.
func (m *Model) thinks(prompt []int32) bool {
	return text.EndsInThought(m.Tokenizer.Decode(prompt[max(0, len(prompt)-2*len(text.ThinkBegin)):], true))
}
