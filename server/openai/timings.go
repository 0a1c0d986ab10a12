package openai

import (
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// clock gathers the times of an answer's choices, for a request that asks for them. A nil one
// gathers nothing.
type clock struct{ total tts.Timing }

// clock returns one where timings_per_token asks for it, and no search is asked for: its
// candidates come side by side, and few of their tokens are the answer's.
func (f reader) clock(report *report.Search) *clock {
	var wanted bool
	if f.Bool("timings_per_token", &wanted); !wanted || report != nil {
		return nil
	}
	return &clock{}
}

// note takes in an event of the answer.
func (c *clock) note(e tts.Event) {
	end, ok := e.What.(tts.End)
	if c == nil || !ok || end.Timing.First.IsZero() {
		return
	}
	t := &c.total
	if t.First.IsZero() {
		*t = end.Timing
	}
	if end.Timing.First.Before(t.First) {
		t.First = end.Timing.First
	}
	if end.Timing.Last.After(t.Last) {
		t.Last = end.Timing.Last
	}
}

// timings returns what the answer says; nil: nothing.
func (c *clock) timings(u tts.Usage) *report.Timings {
	if c == nil || c.total.First.IsZero() {
		return nil
	}
	c.total.Decode = c.total.Last.Sub(c.total.First)
	return report.NewTimings(&c.total, u)
}
