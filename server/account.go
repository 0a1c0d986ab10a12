package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/tts"
)

// account holds the figures of an answer that the log line and the metrics report. Its handler alone
// changes it; mu protects readers meanwhile.
type account struct {
	mu sync.Mutex
	metrics.Request
	strategy string
	searched bool
	tokens   []int                 // of each choice so far
	began    time.Time             // first token, whoever gets it
	timed    bool                  // First and Last are by the engine's clock
	prompt   func() batcher.Timing // of the first prompt; nil: its sequence is yet to be opened
}

// record holds the figures of a request that the log line and the metrics report.
type record struct {
	id      string
	start   time.Time
	route   string
	key     *admission.Key          // that the client has shown; nil: none was asked for
	account atomic.Pointer[account] // of its answer; nil: no model took part
	err     error
	waiting *waiting // what a stream began with, before it had anything to say; nil: nothing
}

type recordKey struct{}

// note takes in an event of an answer.
func (a *account) note(e tts.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Usage.Count(e); a.began.IsZero() && a.Usage.Completion+a.Usage.Cancelled > 0 {
		a.began = time.Now()
	}
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
		if !a.searched && !w.Timing.First.IsZero() {
			a.sampled(&w.Timing)
		}
		if e.Choice == 0 {
			a.Finish, a.Timing = w.Finish, w.Timing
		}
	}
}

// opened takes in the sequence of a prompt.
func (a *account) opened(timing func() batcher.Timing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.prompt == nil {
		a.prompt = timing
	}
}

// read notes the tokens of texts that were read.
func (a *account) read(tokens int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Usage.Prompt = tokens
}

// finished notes how an answer has ended.
func (a *account) finished(f tts.Finish) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Finish = f
}

// stages returns when the first prompt's computation and the first token came. Zero: not yet,
// or nobody knows. Locked.
func (a *account) stages() (started, first time.Time) {
	if a.prompt == nil {
		return started, first
	}
	t := a.prompt()
	if first = t.FirstToken; first.IsZero() { // forks have it
		first = a.began
	}
	return t.Started, first
}

// gained notes that the reader gets something.
func (a *account) gained() {
	a.Last = time.Now()
	if a.First.IsZero() {
		a.First = a.Last
	}
}

// sampled takes in when the tokens of a choice that has ended were sampled. The goroutine that reads
// them, by which First and Last go until then, may run much later.
func (a *account) sampled(t *tts.Timing) {
	if !a.timed || t.First.Before(a.First) {
		a.First = t.First
	}
	if !a.timed || t.Last.After(a.Last) {
		a.Last = t.Last
	}
	a.timed = true
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

// answeredBy notes that a model takes part in the answer.
func (r *record) answeredBy(a *account) { r.account.Store(a) }

// recordOf returns the record of the request that ctx belongs to.
func recordOf(ctx context.Context) *record { return ctx.Value(recordKey{}).(*record) }
