package tts

import (
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
