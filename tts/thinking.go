package tts

import (
	"maps"
	"strings"
)

// The marks between which thinking models put what they think, as DeepSeek-R1
// and Qwen3 do. Chat templates may write the first one themselves.
const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// Thoughts sets the thoughts of a run's n choices apart, as Reasoning: what stands between
// the marks at an answer's beginning. White space around thoughts belongs to neither. Text
// that begins otherwise is left as it is.
func Thoughts(n int) Filter {
	choices := make([]thinkingText, n)
	return func(e Event, emit func(Event) bool) bool {
		switch w := e.What.(type) {
		case Opening:
			for i := range choices {
				choices[i] = thinkingText{begun: w.Midway}
				if w.Thinking {
					choices[i].state = thinking
				} else if w.Midway {
					choices[i].state = answering
				}
			}
		case Text:
			var reasoning string
			reasoning, w.Text = choices[e.Choice].push(w.Text, w.Last)
			return e.divided(emit, Reasoning(reasoning), w, nil)
		}
		return emit(e)
	}
}

// thinkingState is how far an answer has come.
type thinkingState uint8

const (
	undecided thinkingState = iota // white space, or what may become the first mark
	thinking
	answering
)

// thinkingText divides one answer's text as it comes.
type thinkingText struct {
	state thinkingState
	begun bool   // the part under way has had more than white space
	held  string // not divided yet
}

// push takes more text; last says that it is all. What is held back is white
// space, of which it is not known whether it ends a part, and the beginning
// of a mark.
func (t *thinkingText) push(text string, last bool) (reasoning, answer string) {
	if t.state == answering && t.begun {
		return "", text
	}
	t.held += text
	if t.state == undecided {
		head := strings.TrimLeft(t.held, " \t\r\n")
		switch {
		case strings.HasPrefix(head, thinkBegin):
			t.state, t.held = thinking, head[len(thinkBegin):]
		case !last && strings.HasPrefix(thinkBegin, head):
			return "", ""
		default:
			t.state, t.begun = answering, true
		}
	}
	if t.state == thinking {
		reasoning = t.think(last)
	}
	if t.state == answering {
		answer, t.held = t.held, ""
		if !t.begun {
			answer = strings.TrimLeft(answer, " \t\r\n")
			t.begun = answer != ""
		}
	}
	return reasoning, answer
}

// think takes from held what is certainly a thought, and the mark that ends it.
func (t *thinkingText) think(last bool) string {
	out, rest, ended := strings.Cut(t.held, thinkEnd)
	if !ended && !last {
		keep := len(thinkEnd) - 1
		for keep > 0 && !strings.HasSuffix(out, thinkEnd[:keep]) {
			keep--
		}
		out = out[:len(out)-keep]
	}
	out = strings.TrimRight(out, " \t\r\n")
	t.held = t.held[len(out):]
	if !t.begun {
		out = strings.TrimLeft(out, " \t\r\n")
		t.begun = out != ""
	}
	if ended {
		t.state, t.begun, t.held = answering, false, rest
	} else if last {
		t.held = ""
	}
	return out
}

// AnswerText is what a model has written behind the thought that its text begins
// with: all of it without one, nothing while the thought lasts. inThought tells that
// the prompt has begun the thought (Opening.Thinking).
func AnswerText(text string, inThought bool) string {
	if !inThought && !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), thinkBegin) {
		return text
	}
	_, rest, _ := strings.Cut(text, thinkEnd)
	return rest
}

// mark is the text of a token that some vocabularies hide though it divides
// the thoughts from the answer; empty for all others.
func (m *Model) mark(id int32) []byte {
	if name := m.Tokenizer.Token(id); name == thinkBegin || name == thinkEnd {
		return []byte(name)
	}
	return nil
}

// Thinks reports whether answers may begin with thoughts: the chat template knows
// the mark that ends one.
func (m *Model) Thinks() bool {
	return m.Template != nil && strings.Contains(m.Template.Source(), thinkEnd)
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
	return endsInThought(m.Tokenizer.Decode(prompt[max(0, len(prompt)-2*len(thinkBegin)):], true))
}

// endsInThought reports whether a text ends with the mark that begins a thought.
func endsInThought(text string) bool {
	return strings.HasSuffix(strings.TrimRight(text, " \t\r\n"), thinkBegin)
}
