package tts

import (
	"context"
	"iter"

	"github.com/lutra-lm/lutra/tts/text"
)

// Filter maps an event of a run to those that stand in its place, which it passes to emit.
// It returns false when the reader has left: when emit does.
type Filter func(e Event, emit func(Event) bool) bool

// Filtered passes events through filters, one after the other.
func Filtered(events iter.Seq2[Event, error], filters ...Filter) iter.Seq2[Event, error] {
	for _, filter := range filters {
		inner := events
		events = func(yield func(Event, error) bool) {
			emit := func(e Event) bool { return yield(e, nil) }
			for e, err := range inner {
				if err != nil {
					yield(e, err)
					return
				}
				if !filter(e, emit) {
					return
				}
			}
		}
	}
	return events
}

// Echo puts a text before every one of n choices.
func Echo(text string, n int) Filter {
	return func(e Event, emit func(Event) bool) bool {
		w, opens := e.What.(Opening)
		if !opens {
			return emit(e)
		}
		w.Thinking, w.ContinuesText = false, false // its text begins with the prompt
		if !emit(Event{More: true, What: w}) {
			return false
		}
		for i := range n {
			if !emit(Event{Choice: i, What: Text{Text: text}}) {
				return false
			}
		}
		return true
	}
}

// WithoutReasoning leaves reasoning out.
func WithoutReasoning(e Event, emit func(Event) bool) bool {
	_, reasoning := e.What.(Reasoning)
	return reasoning || emit(e)
}

// divided emits what a text, which is e, consists of.
func (e Event) divided(emit func(Event) bool, r Reasoning, t Text, c Calls) bool {
	return (r == "" || emit(Event{e.Choice, true, r})) &&
		emit(Event{e.Choice, e.More || c != nil, t}) &&
		(c == nil || emit(Event{e.Choice, e.More, c}))
}

// Strategy answers a request. Implementations are small values that hold the
// model and their plan; Run may be called many times and at once.
//
// The sequence ends after its first error. Breaking out of it, or ctx's end,
// closes every sequence the run has opened.
type Strategy interface {
	Run(ctx context.Context, req *Request) iter.Seq2[Event, error]
	// Prepare makes the prompt of a request ready, and refuses what Run refuses before
	// it computes anything.
	Prepare(ctx context.Context, req *Request) (*Prepared, error)
}

// Thoughts sets the thoughts of a run's n choices apart, as Reasoning: what stands between
// the marks at an answer's beginning. White space around thoughts belongs to neither. Text
// that begins otherwise is left as it is.
func (m *Model) Thoughts(n int) Filter {
	marks, choices := m.ThoughtMarks(), make([]text.Thought, n)
	return func(e Event, emit func(Event) bool) bool {
		switch w := e.What.(type) {
		case Opening:
			for i := range choices {
				choices[i] = marks.NewThought(w.Thinking, w.ContinuesText)
			}
		case Text:
			var reasoning string
			reasoning, w.Text = choices[e.Choice].Push(w.Text, w.Last)
			return e.divided(emit, Reasoning(reasoning), w, nil)
		}
		return emit(e)
	}
}
