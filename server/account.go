package server

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/tts"
)

// account is what a request's log line and metrics report of its answer.
type account struct {
	metrics.Request
	strategy string
	searched bool
	tokens   []int // of each choice so far
}

// record is what a request's log line and metrics report.
type record struct {
	id      string
	start   time.Time
	key     *admission.Key // that the client has shown; nil: none was asked for
	account *account       // of its answer; nil: no model took part
	err     error
	waiting *waiting // what a stream began with, before it had anything to say; nil: nothing
}

type recordKey struct{}

// note takes in an event of an answer.
func (a *account) note(e tts.Event) {
	a.Usage.Count(e)
	switch w := e.What.(type) {
	case tts.Text:
		// A search spends tokens long before its reader gets any.
		if !a.searched && w.Sampled > 0 || a.searched && w.Text != "" {
			a.gained()
		}
		if !a.searched {
			a.tokens[e.Choice] += w.Sampled
			a.Longest = max(a.Longest, a.tokens[e.Choice])
		}
	case tts.Reasoning:
		if a.searched {
			a.gained()
		}
	case *tts.Outcome:
		a.Searches = append(a.Searches, w)
		for _, c := range w.Choices {
			a.Longest = max(a.Longest, len(c.IDs))
		}
	case tts.End:
		if e.Choice == 0 {
			a.Finish, a.Timing = w.Finish, w.Timing
		}
	}
}

// gained notes that the reader gets something.
func (a *account) gained() {
	a.Last = time.Now()
	if a.First.IsZero() {
		a.First = a.Last
	}
}

// log adds the account of a request that came at start to its log line.
func (a *account) log(e *zerolog.Event, start time.Time) {
	if a.Model != "" {
		e.Str("model", a.Model).Str("strategy", a.strategy).
			Int("prompt_tokens", a.Usage.Prompt).Int("cached_tokens", a.Usage.Cached).Int("completion_tokens", a.Usage.Completion)
	}
	if !a.First.IsZero() {
		e.Dur("ttft_ms", a.First.Sub(start))
		if len(a.Searches) == 0 { // whose tokens come side by side
			e.Dur("tpot_ms", a.TPOT())
		}
	}
	if a.Finish != "" {
		e.Str("finish", string(a.Finish))
	}
}

// recordOf returns the record of the request that ctx belongs to.
func recordOf(ctx context.Context) *record { return ctx.Value(recordKey{}).(*record) }
