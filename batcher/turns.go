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

// Turns is what the engines of one machine share: they step in turn, so that a
// step is as long as it would be alone, and whatever delays interactive
// streams, in whichever engine, is paid from one account.
//
// A step with interactive streams earns credit in proportion to what it would
// have taken without anything else: as much as they may be delayed for it.
// Prompts and background work spend it, beside the streams or in steps of
// other engines, and are let in when there is enough for a piece worth
// computing. So the delays keep to their share on average, and everything
// advances. Likewise interactive prompts that have no streams beside them earn
// for background work, on an account of its own: what a prompt has allowed is
// no licence to delay the few tokens that answer it.
type Turns struct {
	step *semaphore.Weighted // held during a step; first come, first served

	mu      sync.Mutex
	members []*member
	front   time.Time // when there last was an interactive sequence to compute
}

// expecting: for so long after an interactive sequence steps without one are
// kept short, since the next one may arrive during any of them.
const expecting = time.Second

// NewTurns makes turns for engines to share.
func NewTurns() *Turns { return &Turns{step: semaphore.NewWeighted(1)} }

// member is one engine's share.
type member struct {
	*Turns
	poke   func()      // makes the engine step
	urgent func() bool // tells whether interactive callers have posted what no step has seen
	heard  bool        // news that were urgent are part of the plan under way
	demand demands
	back   schedule.Account           // the account of background work, as of the last plan
	credit [schedule.Accounts]float64 // seconds; below zero: delays not yet paid
	need   [schedule.Accounts]float64 // credit that it was short of in its last plan
}

// demands counts an engine's active sequences.
type demands struct{ streams, prompts, background int }

// of tells how many demand a kind of work.
func (d demands) of(k schedule.Account) int {
	return [...]int{schedule.Prefill: d.prompts, schedule.Background: d.background, schedule.BackgroundAhead: d.background}[k]
}

// parts are the tokens of a step.
type parts struct {
	streams int
	guesses int // of streams
	work    [schedule.Accounts]int
}

// join adds an engine.
func (t *Turns) join(poke func(), urgent func() bool) *member {
	m := &member{Turns: t, poke: poke, urgent: urgent}
	t.mu.Lock()
	t.members = append(t.members, m)
	t.mu.Unlock()
	return m
}

// take waits for the turn to step, give ends it.
func (m *member) take() { _ = m.step.Acquire(context.Background(), 1) } // fails with its context only
func (m *member) give() { m.step.Release(1) }

// lend gives a prompt that has just begun credit for its first tokens: most
// prompts are short, delay streams once and little, and then fill their batch.
func (m *member) lend(credit float64) {
	m.mu.Lock()
	m.credit[schedule.Prefill] += credit
	m.mu.Unlock()
}

// withholds tells whether background work waits for credit beside what else
// the engine has to do.
func (m *member) withholds(d demands) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, beside := m.account(d)
	return beside && m.need[k] > 0 && m.credit[k] < m.need[k]
}

// account is the one that background work beside d draws on, and whether there
// is anything that it delays, in any engine. Locked.
func (m *member) account(d demands) (k schedule.Account, beside bool) {
	switch {
	case d.streams > 0 || m.guests():
		return schedule.Background, true
	case d.prompts > 0 || m.awaited():
		return schedule.BackgroundAhead, true
	}
	return schedule.Background, false
}

// declare says what the engine has to do, and returns on what terms.
func (m *member) declare(d demands, opt *Options) (t schedule.Terms) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := opt.Now()
	if d.streams+d.prompts > 0 {
		m.front = now
	}
	m.show(d)
	var beside bool
	m.back, beside = m.account(d)
	t = schedule.Terms{BackgroundPays: m.back, OtherDecoding: m.guests(), Brief: !m.front.IsZero() && now.Sub(m.front) < expecting}
	t.OtherPrefilling = t.OtherDecoding || m.awaited()
	streams := beside && m.back == schedule.Background
	for k := range m.credit {
		switch {
		case !t.Brief, schedule.Account(k) == schedule.Prefill && !streams:
			m.credit[k] = 0 // nobody to delay
		case !beside || d.of(schedule.Account(k)) == 0:
			m.credit[k] = min(m.credit[k], 0)
		}
	}
	t.Credit = m.credit
	for k, stretch := range [...]float64{schedule.Prefill: opt.PromptStretch, schedule.Background: opt.SearchStretch, schedule.BackgroundAhead: opt.SearchStretch} {
		if stretch == 0 {
			t.Credit[k] = math.Inf(1)
		}
	}
	return t
}

// show makes the engine's demand known to the others, and wakes those that it
// concerns. Locked.
func (m *member) show(d demands) {
	changed := m.heard || m.demand.front() != d.front()
	m.demand, m.heard = d, false
	if !changed {
		return
	}
	for _, o := range m.members {
		if o != m && o.demand != (demands{}) {
			o.poke() // other terms may hold for it now
		}
	}
}

// front is what the others have to mind: streams, else prompts, else nothing.
func (d demands) front() int {
	switch {
	case d.streams > 0:
		return 2
	case d.prompts > 0:
		return 1
	}
	return 0
}

// guests tells whether streams of other engines run. Locked.
func (m *member) guests() bool {
	return slices.ContainsFunc(m.members, func(o *member) bool { return o != m && o.demand.streams > 0 })
}

// awaited tells whether prompts of other engines wait, known to their plans or not. Locked.
func (m *member) awaited() bool {
	return slices.ContainsFunc(m.members, func(o *member) bool { return o != m && (o.demand.prompts > 0 || o.urgent()) })
}

// account settles what a step has earned and spent. It is told of steps
// without tokens too, for what they lacked.
func (e *Engine) account(part parts, st *StepStats) {
	m := e.share
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.later {
		e.scheduler.Need[m.back] = m.need[m.back]
	}
	m.need = e.scheduler.Need
	// What the others were let in beside, and would have taken without them.
	first := part.streams + part.guesses
	if m.back == schedule.BackgroundAhead {
		first = part.work[schedule.Prefill]
	}
	alone := e.cost.Time(first)
	guests := m.guests()
	if others := st.Tokens - first; others > 0 && (first > 0 || guests || m.awaited()) {
		over := st.computing() - alone
		over = min(max(0, over), schedule.Outlier*(e.cost.Time(st.Tokens)-alone))
		for k := range m.credit {
			if schedule.Account(k) != schedule.Prefill || part.streams > 0 || guests {
				m.credit[k] -= over * float64(part.work[k]) / float64(others)
			}
		}
	}
	switch {
	case part.streams > 0:
		heldUp := 0.0 // what the step took longer though it was alone
		if first == st.Tokens {
			heldUp = max(0, st.computing()-alone)
		}
		m.earn(alone+st.Drafting.Seconds(), heldUp, part.streams, &e.opt)
	case first > 0:
		m.share(schedule.BackgroundAhead, alone*(e.opt.SearchStretch-1))
	}
	m.begun(e.spans)
}

// begun makes it known at once that prompts have become streams: the turn of
// another engine may come before the next plan. Locked.
func (m *member) begun(spans []span) {
	d := m.demand
	for _, p := range spans {
		if !p.s.want.Background && p.n > 1 && p.s.want.Left() == 1 {
			d.streams++
			d.prompts = max(0, d.prompts-1)
		}
	}
	m.show(d)
}

// earn gives the credit of a step whose streams alone take so many seconds to
// those who delay them. What it has been held up for by nothing in the batch
// is put down to background work, whose callers use the processors too. Locked.
func (t *Turns) earn(alone, heldUp float64, streams int, opt *Options) {
	prompts := 0
	for _, m := range t.members {
		prompts += m.demand.prompts
	}
	forBackground := alone * (opt.SearchStretch - 1)
	if prompts > 0 {
		forBackground /= 2
	}
	forBackground -= min(heldUp, forBackground*0.9) // something is left in any case
	t.share(schedule.Background, forBackground)
	// One prompt must not stop many streams, nor one stream many prompts.
	forPrompts := max(opt.PromptStretch-1, float64(prompts-1)/float64(streams))
	for _, m := range t.members {
		if n := m.demand.prompts; n > 0 {
			m.income(schedule.Prefill, alone*forPrompts*float64(n)/float64(prompts))
		}
	}
}

// share divides credit among the engines with background work. Locked.
func (t *Turns) share(k schedule.Account, credit float64) {
	claims := 0
	for _, m := range t.members {
		if m.demand.background > 0 {
			claims++
		}
	}
	for _, m := range t.members {
		if m.demand.background > 0 {
			m.income(k, credit/float64(claims))
		}
	}
}

// income adds credit, of which no more is saved than what is needed at once,
// and wakes an engine that has waited for it. Locked.
func (m *member) income(k schedule.Account, credit float64) {
	had := m.credit[k]
	m.credit[k] = min(had+credit, max(had, m.need[k]+credit, 2*credit))
	if need := m.need[k]; need > 0 && had < need && m.credit[k] >= need {
		m.poke()
	}
}
