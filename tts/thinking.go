package tts

import (
	"maps"
	"strings"

	"github.com/lutra-lm/lutra/tts/text"
)

// Thoughts sets the thoughts of a run's n choices apart, as Reasoning: what stands between
// the marks at an answer's beginning. White space around thoughts belongs to neither. Text
// that begins otherwise is left as it is.
func Thoughts(n int) Filter {
	choices := make([]text.Thought, n)
	return func(e Event, emit func(Event) bool) bool {
		switch w := e.What.(type) {
		case Opening:
			for i := range choices {
				choices[i] = text.NewThought(w.Thinking, w.Midway)
			}
		case Text:
			var reasoning string
			reasoning, w.Text = choices[e.Choice].Push(w.Text, w.Last)
			return e.divided(emit, Reasoning(reasoning), w, nil)
		}
		return emit(e)
	}
}

// mark is the text of a token that some vocabularies hide though it divides
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

// thinkingVariable is the variable of chat templates that switches thinking, as
// those of Qwen3 and SmolLM3 have it.
const thinkingVariable = "enable_thinking"

// ThinkingSwitches reports whether the chat template can switch thinking on and off.
func (m *Model) ThinkingSwitches() bool {
	return m.Template != nil && strings.Contains(m.Template.Source(), thinkingVariable)
}

// SwitchThinking switches thinking on or off where the prompt does not say itself.
func (p *Prompt) SwitchThinking(on bool) {
	if _, said := p.Extra[thinkingVariable]; said {
		return
	}
	vars := map[string]any{thinkingVariable: on}
	maps.Copy(vars, p.Extra)
	p.Extra = vars
}

// thinks reports whether a prompt ends with the mark that begins a thought.
func (m *Model) thinks(prompt []int32) bool {
	return text.EndsInThought(m.Tokenizer.Decode(prompt[max(0, len(prompt)-2*len(text.ThinkBegin)):], true))
}
