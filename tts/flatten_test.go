package tts_test

import (
	. "github.com/lutra-lm/lutra/tts"
)

// flat is an event, field by field.
type flat struct {
	Choice    int
	Opening   Opening
	Text      string
	Reasoning string
	Tokens    []Token
	Finish    Finish
	Usage     Usage
	Progress  *Progress
	Outcome   *Outcome
}

// flatten reads an event.
func flatten(e Event) flat {
	t := flat{Choice: e.Choice}
	t.Usage.Count(e)
	switch w := e.What.(type) {
	case Opening:
		t.Opening = w
	case Text:
		t.Text, t.Tokens = w.Text, w.Tokens
	case Reasoning:
		t.Reasoning = string(w)
	case End:
		t.Finish = w.Finish
	case *Progress:
		t.Progress = w
	case *Outcome:
		t.Outcome = w
	}
	return t
}
