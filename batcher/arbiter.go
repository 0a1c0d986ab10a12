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
// spend it, alongside the streams or in steps of other engines. They are let in
// when there is credit for a piece worth computing, so delays keep to their
// share on average, and everything advances.
//
// Interactive prompts that have no streams alongside them earn credit for
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

// tenant holds one engine's share of an arbiter: its demand and its accounts.
type tenant struct {
	*StepArbiter
	engine         waker
	now            func() time.Time
	slowdown       slowdown
	arrived        bool // interactive callers had posted before the plan under way
	demand         workload
	backgroundPays schedule.Account           // whose credit background work takes, as of the last plan
	credit         [schedule.Accounts]float64 // seconds; below zero: delays not yet paid
	need           [schedule.Accounts]float64 // credit that it was short of in its last plan
}

// waker wakes an engine; its mailbox does.
type waker interface {
	poke()        // wakes the engine
	urgent() bool // interactive sequences have been posted
}

// slowdown bounds the factor by which each waiting prompt, and all background work together, may slow
// streams down on average; 0: no bound.
type slowdown struct{ prefill, background float64 }

// workload counts an engine's active sequences.
type workload struct{ streams, prompts, background int }

// of returns how many sequences draw on an account.
func (d workload) of(k schedule.Account) int {
	return [...]int{schedule.Prefill: d.prompts, schedule.Background: d.background, schedule.BackgroundAhead: d.background}[k]
}

// join adds an engine, whose streams other work may slow down as s says.
func (a *StepArbiter) join(engine waker, now func() time.Time, s slowdown) *tenant {
	t := &tenant{StepArbiter: a, engine: engine, now: now, slowdown: s}
	a.mu.Lock()
	a.tenants = append(a.tenants, t)
	a.mu.Unlock()
	return t
}

// leave takes a stopped engine away.
func (t *tenant) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tenants = slices.DeleteFunc(t.tenants, func(o *tenant) bool { return o == t })
}

// take waits until no other engine steps, give lets the next one step.
func (t *tenant) take() { _ = t.step.Acquire(context.Background(), 1) } // fails with its context only
func (t *tenant) give() { t.step.Release(1) }

// noteArrival notes whether interactive callers have posted, for setDemand.
func (t *tenant) noteArrival(interactive bool) { t.arrived = t.arrived || interactive }

// setDemand says what the engine has to do, and returns what it may do alongside others.
func (t *tenant) setDemand(d workload) (out schedule.Policy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
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
		schedule.Prefill: t.slowdown.prefill, schedule.Background: t.slowdown.background, schedule.BackgroundAhead: t.slowdown.background,
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
			o.engine.poke() // other terms may hold for it now
		}
	}
}

// class returns what matters to other engines: streams, else prompts, else nothing.
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
	return slices.ContainsFunc(t.tenants, func(o *tenant) bool { return o != t && (o.demand.prompts > 0 || o.engine.urgent()) })
}

// shares counts the tokens of a step by purpose.
type shares struct {
	streams  int
	guesses  int // of streams
	accounts [schedule.Accounts]int
}

// usage says what a step has used. Times are in seconds.
type stepUsage struct {
	shares
	tokens              int
	begun               int // prompts that have become streams
	computing, drafting float64
	withheld            bool // background sequences were left out, for want of credit
}

// grantPrefill gives a prompt that has just begun credit for its first tokens: most
// prompts are short, delay streams once and little, and then fill their batch.
func (t *tenant) grantPrefill(credit float64) {
	t.mu.Lock()
	t.credit[schedule.Prefill] += credit
	t.mu.Unlock()
}

// holdsBackground reports whether background work waits for credit alongside what else
// the engine has to do.
func (t *tenant) holdsBackground(d workload) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, beside := t.backgroundAccount(d)
	return beside && t.need[k] > 0 && t.credit[k] < t.need[k]
}

// backgroundAccount returns the account that background work alongside d draws on, and whether there
// is anything that it delays, in any engine. Locked.
func (t *tenant) backgroundAccount(d workload) (k schedule.Account, beside bool) {
	switch {
	case d.streams > 0 || t.otherDecoding():
		return schedule.Background, true
	case d.prompts > 0 || t.otherPrefilling():
		return schedule.BackgroundAhead, true
	}
	return schedule.Background, false
}

// account books what a step has earned and spent. need is the credit that its
// plan was short of; steps without tokens have one too.
func (t *tenant) account(st stepUsage, cost *schedule.CostModel, need [schedule.Accounts]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if st.withheld {
		need[t.backgroundPays] = t.need[t.backgroundPays]
	}
	t.need = need
	// The tokens alongside which other work was let in, and their time alone.
	first := st.streams + st.guesses
	if t.backgroundPays == schedule.BackgroundAhead {
		first = st.accounts[schedule.Prefill]
	}
	alone := cost.Time(first)
	otherDecoding := t.otherDecoding()
	if others := st.tokens - first; others > 0 && (first > 0 || otherDecoding || t.otherPrefilling()) {
		over := st.computing - alone
		over = min(max(0, over), schedule.Outlier*(cost.Time(st.tokens)-alone))
		for k := range t.credit {
			if schedule.Account(k) != schedule.Prefill || st.streams > 0 || otherDecoding {
				t.credit[k] -= over * float64(st.accounts[k]) / float64(others)
			}
		}
	}
	switch {
	case st.streams > 0:
		heldUp := 0.0 // how much longer the step took although it was alone
		if first == st.tokens {
			heldUp = max(0, st.computing-alone)
		}
		t.addCredit(alone+st.drafting, heldUp, t.slowdown)
	case first > 0:
		t.splitCredit(schedule.BackgroundAhead, alone*(t.slowdown.background-1))
	}
	t.showBegun(st.begun)
}

// showBegun makes it known at once that n prompts have become streams: another
// engine may step before the next plan. Locked.
func (t *tenant) showBegun(n int) {
	d := t.demand
	d.streams, d.prompts = d.streams+n, max(0, d.prompts-n)
	t.show(d)
}

// addCredit distributes the credit of a step whose streams alone take the seconds of alone.
// A delay that nothing in the batch explains is charged to background work, whose
// callers use the processors too. Locked.
func (a *StepArbiter) addCredit(alone, heldUp float64, s slowdown) {
	forBackground := alone * (s.background - 1)
	if slices.ContainsFunc(a.tenants, func(t *tenant) bool { return t.demand.prompts > 0 }) {
		forBackground /= 2
	}
	forBackground -= min(heldUp, forBackground*0.9) // something is left in any case
	a.splitCredit(schedule.Background, forBackground)
	// Each prompt has a share of its own. If they had one together, they would wait while the
	// streams end one after the other, and a batch half empty costs the time that all wait for.
	for _, t := range a.tenants {
		t.income(schedule.Prefill, alone*max(0, s.prefill-1)*float64(t.demand.prompts))
	}
}

// splitCredit divides credit among the engines with background work. Locked.
func (a *StepArbiter) splitCredit(k schedule.Account, credit float64) {
	claims := 0
	for _, t := range a.tenants {
		if t.demand.background > 0 {
			claims++
		}
	}
	for _, t := range a.tenants {
		if t.demand.background > 0 {
			t.income(k, credit/float64(claims))
		}
	}
}

// income adds credit, but saves no more than is needed at once, and wakes an
// engine that has waited for it. Locked.
func (t *tenant) income(k schedule.Account, credit float64) {
	had := t.credit[k]
	t.credit[k] = min(had+credit, max(had, t.need[k]+credit, 2*credit))
	if need := t.need[k]; need > 0 && had < need && t.credit[k] >= need {
		t.engine.poke()
	}
}
