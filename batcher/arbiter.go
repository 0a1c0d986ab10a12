package batcher

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/lutra-lm/lutra/batcher/schedule"
)

// StepArbiter decides which of the engines of one machine steps next, and how
// much other work may delay interactive streams. One engine steps at a time, so
// that a step takes as long as it would alone.
//
// A step with interactive streams earns credit: seconds, in proportion to the
// time that its streams alone would have taken. Prompts and background work
// spend it, beside the streams or in steps of other engines. They are let in
// when there is credit for a piece worth computing, so delays keep to their
// share on average, and everything advances.
//
// Interactive prompts that have no streams beside them earn credit for
// background work too, on a separate account: that credit must not delay the
// few tokens that follow the prompt.
type StepArbiter struct {
	step *semaphore.Weighted // held during a step; first come, first served

	mu          sync.Mutex
	tenants     []*tenant
	interactive time.Time // when there last was an interactive sequence to compute
}

// expecting is for how long after an interactive sequence steps without one are kept
// short: the next may arrive during any of them.
const expecting = time.Second

// NewStepArbiter makes an arbiter for engines to share.
func NewStepArbiter() *StepArbiter { return &StepArbiter{step: semaphore.NewWeighted(1)} }

// tenant is one engine's share of an arbiter.
type tenant struct {
	*StepArbiter
	box            *mailbox // of the engine
	opt            *Options
	arrived        bool // interactive callers had posted before the plan under way
	demand         workload
	backgroundPays schedule.Account           // whose credit background work takes, as of the last plan
	credit         [schedule.Accounts]float64 // seconds; below zero: delays not yet paid
	need           [schedule.Accounts]float64 // credit that it was short of in its last plan
}

// demands counts an engine's active sequences.
type workload struct{ streams, prompts, background int }

// of is how many sequences draw on an account.
func (d workload) of(k schedule.Account) int {
	return [...]int{schedule.Prefill: d.prompts, schedule.Background: d.background, schedule.BackgroundAhead: d.background}[k]
}

// join adds an engine. Its mailbox wakes it.
func (a *StepArbiter) join(box *mailbox, opt *Options) *tenant {
	t := &tenant{StepArbiter: a, box: box, opt: opt}
	a.mu.Lock()
	a.tenants = append(a.tenants, t)
	a.mu.Unlock()
	return t
}

// take waits until no other engine steps, give lets the next one step.
func (t *tenant) take() { _ = t.step.Acquire(context.Background(), 1) } // fails with its context only
func (t *tenant) give() { t.step.Release(1) }

// hear notes whether interactive callers have posted, for declare.
func (t *tenant) noteArrival(interactive bool) { t.arrived = t.arrived || interactive }

// declare says what the engine has to do, and returns on what terms.
func (t *tenant) setDemand(d workload) (out schedule.Policy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opt.Now()
	if d.streams+d.prompts > 0 {
		t.interactive = now
	}
	t.show(d)
	var beside bool
	t.backgroundPays, beside = t.backgroundAccount(d)
	out = schedule.Policy{
		BackgroundPays: t.backgroundPays, OtherDecoding: t.otherDecoding(),
		ShortSteps: !t.interactive.IsZero() && now.Sub(t.interactive) < expecting,
	}
	out.OtherPrefilling = out.OtherDecoding || t.otherPrefilling()
	streams := beside && t.backgroundPays == schedule.Background
	for k := range t.credit {
		switch {
		case !out.ShortSteps, schedule.Account(k) == schedule.Prefill && !streams:
			t.credit[k] = 0 // nobody to delay
		case !beside || d.of(schedule.Account(k)) == 0:
			t.credit[k] = min(t.credit[k], 0)
		}
	}
	out.Credit = t.credit
	for k, slowdown := range [...]float64{
		schedule.Prefill: t.opt.PrefillSlowdown, schedule.Background: t.opt.BackgroundSlowdown, schedule.BackgroundAhead: t.opt.BackgroundSlowdown,
	} {
		if slowdown == 0 {
			out.Credit[k] = math.Inf(1)
		}
	}
	return out
}

// show makes the engine's demand known to the others, and wakes those that it
// concerns. Locked.
func (t *tenant) show(d workload) {
	changed := t.arrived || t.demand.class() != d.class()
	t.demand, t.arrived = d, false
	if !changed {
		return
	}
	for _, o := range t.tenants {
		if o != t && o.demand != (workload{}) {
			o.box.poke() // other terms may hold for it now
		}
	}
}

// class is what matters to other engines: streams, else prompts, else nothing.
func (d workload) class() int {
	switch {
	case d.streams > 0:
		return 2
	case d.prompts > 0:
		return 1
	}
	return 0
}

// otherDecoding reports whether streams of other engines run. Locked.
func (t *tenant) otherDecoding() bool {
	return slices.ContainsFunc(t.tenants, func(o *tenant) bool { return o != t && o.demand.streams > 0 })
}

// otherPrefilling reports whether prompts of other engines wait, known to their plans or not. Locked.
func (t *tenant) otherPrefilling() bool {
	return slices.ContainsFunc(t.tenants, func(o *tenant) bool { return o != t && (o.demand.prompts > 0 || o.box.urgent()) })
}
