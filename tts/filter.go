package tts

import (
	"iter"
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
		w.Thinking, w.Midway = false, false // its text begins with the prompt
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
