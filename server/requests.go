package server

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/tts"
)

// mostRecent is the number of ended requests that are remembered.
const mostRecent = 256

// requests lists the requests that have a place of Options.MaxRequests, and the last ones that had a place.
type requests struct {
	mu     sync.Mutex
	begun  map[*record]struct{}
	recent [mostRecent]requestState // a ring
	ended  int                      // how many have been put into it
}

// requestState is a request as /debug/requests shows it: never what it asks or is answered.
// Times are of its first prompt and answer. The time of a stage that is under way goes on.
type requestState struct {
	ID         string    `json:"id"`
	Key        string    `json:"key,omitempty"`
	Path       string    `json:"path"`
	Model      string    `json:"model,omitempty"`
	Strategy   string    `json:"strategy,omitempty"` // single, or a search's plan
	State      string    `json:"state"`
	Arrived    time.Time `json:"arrived"`
	Prompt     int       `json:"prompt_tokens"`
	Cached     int       `json:"cached_tokens"`
	Completion int       `json:"completion_tokens"`
	Cancelled  int       `json:"cancelled_tokens,omitempty"` // of candidates that a search has not taken in, or not yet
	Age        float64   `json:"age_ms"`
	Queue      float64   `json:"queue_ms"` // until the prompt was begun: the body, a model's load, the engine's queue
	Prefill    float64   `json:"prefill_ms"`
	Decode     float64   `json:"decode_ms"`

	Status int        `json:"status,omitempty"` // of one that has ended
	Finish tts.Finish `json:"finish_reason,omitempty"`
	Code   string     `json:"code,omitempty"` // of its error
}

// The states of a request.
const (
	stateWaiting = "waiting" // for its model, or in the engine's queue
	statePrefill = "prefill"
	stateDecode  = "decode"
	stateEnded   = "ended"
)

// enter takes in a request that has a place, until leave.
func (q *requests) enter(rec *record, path string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begun == nil {
		q.begun = map[*record]struct{}{}
	}
	rec.route = path
	q.begun[rec] = struct{}{}
}

// leave remembers a request that has ended, if it had a place.
func (q *requests) leave(rec *record, status int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.begun[rec]; !ok {
		return
	}
	delete(q.begun, rec)
	st := rec.state(time.Now())
	st.State, st.Status = stateEnded, status
	if rec.err != nil {
		st.Code = toFault(rec.err).Code
	}
	q.recent[q.ended%mostRecent] = st
	q.ended++
}

// list returns the requests under way, the oldest first, and those that have ended, the latest
// first.
func (q *requests) list() (underWay, recent []requestState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for rec := range q.begun {
		underWay = append(underWay, rec.state(now))
	}
	slices.SortFunc(underWay, func(a, b requestState) int {
		return cmp.Or(a.Arrived.Compare(b.Arrived), cmp.Compare(a.ID, b.ID))
	})
	for i := q.ended - 1; i >= max(0, q.ended-mostRecent); i-- {
		recent = append(recent, q.recent[i%mostRecent])
	}
	return underWay, recent
}

// state returns where a request stands.
func (r *record) state(now time.Time) requestState {
	ms := func(from, to time.Time) float64 { return float64(to.Sub(from).Microseconds()) / 1000 }
	st := requestState{ID: r.id, Path: r.route, State: stateWaiting, Arrived: r.start.Round(0), Age: ms(r.start, now), Queue: ms(r.start, now)}
	if r.key != nil {
		st.Key = r.key.Name
	}
	a := r.account.Load()
	if a == nil {
		return st
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	st.Model, st.Strategy, st.Finish = a.Model, a.strategy, a.Finish
	st.Prompt, st.Cached, st.Completion, st.Cancelled = a.Usage.Prompt, a.Usage.Cached, a.Usage.Completion, a.Usage.Cancelled
	started, first := a.stages()
	if started.IsZero() {
		return st
	}
	st.State, st.Queue, st.Prefill = statePrefill, ms(r.start, started), ms(started, now)
	if !first.IsZero() {
		st.State, st.Prefill, st.Decode = stateDecode, ms(started, first), ms(first, now)
	}
	return st
}
