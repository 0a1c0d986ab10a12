package batcher

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
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
// advances.
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
	poke   func() // makes the engine step
	demand demands
	credit [works]float64 // seconds; below zero: delays not yet paid
	need   [works]float64 // credit that it was short of in its last plan
}

// demands counts an engine's active sequences.
type demands struct{ streams, prompts, background int }

// of tells how many demand a kind of work.
func (d demands) of(k work) int {
	return [...]int{workPrompts: d.prompts, workBackground: d.background}[k]
}

// parts are the tokens of a step.
type parts struct {
	streams int
	guesses int // of streams
	work    [works]int
}

// join adds an engine.
func (t *Turns) join(poke func()) *member {
	m := &member{Turns: t, poke: poke}
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
	m.credit[workPrompts] += credit
	m.mu.Unlock()
}

// affords tells whether there is the credit that the last plan was short of.
func (m *member) affords(k work) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.credit[k] >= m.need[k]
}

// declare says what the engine has to do, and returns what credit it has for
// it, whether streams of other engines run, and whether interactive sequences
// are to be expected.
func (m *member) declare(d demands, opt *Options) (credit [works]float64, guests, expected bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := opt.Now()
	if d.streams+d.prompts > 0 {
		m.front = now
	}
	ended := m.demand.streams > 0 && d.streams == 0
	m.demand = d
	guests = m.guests()
	for k := range m.credit {
		switch {
		case d.streams == 0 && !guests && (d.prompts == 0 || work(k) == workPrompts):
			m.credit[k] = 0 // nobody to delay
		case d.of(work(k)) == 0:
			m.credit[k] = min(m.credit[k], 0)
		}
	}
	if ended {
		for _, o := range m.members {
			if o != m && !o.guests() {
				o.poke()
			}
		}
	}
	credit = m.credit
	for k, stretch := range [...]float64{workPrompts: opt.PromptStretch, workBackground: opt.SearchStretch} {
		if stretch == 0 {
			credit[k] = math.Inf(1)
		}
	}
	return credit, guests, !m.front.IsZero() && now.Sub(m.front) < expecting
}

// guests tells whether streams of other engines run. Locked.
func (m *member) guests() bool {
	for _, o := range m.members {
		if o != m && o.demand.streams > 0 {
			return true
		}
	}
	return false
}

// account settles what a step has earned and spent. It is told of steps
// without tokens too, for what they lacked.
func (e *Engine) account(part parts, st *StepStats) {
	m := e.share
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.later {
		e.sched.need[workBackground] = m.need[workBackground]
	}
	m.need = e.sched.need
	// What the others were let in beside, and would have taken without them.
	first := part.streams + part.guesses
	if first == 0 && !m.guests() {
		first = part.work[workPrompts]
	}
	alone := e.pace.time(first)
	if others := st.Tokens - first; others > 0 && (first > 0 || m.guests()) {
		over := st.computing() - alone
		over = min(max(0, over), outlie*(e.pace.time(st.Tokens)-alone))
		for k := range m.credit {
			if work(k) == workBackground || part.streams > 0 || m.guests() {
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
		m.earn(alone, heldUp, part.streams, &e.opt)
	case first > 0:
		m.income(workBackground, alone*(e.opt.SearchStretch-1))
	}
}

// earn gives the credit of a step whose streams alone take so many seconds to
// those who delay them. What it has been held up for by nothing in the batch
// is put down to background work, whose callers use the processors too. Locked.
func (t *Turns) earn(alone, heldUp float64, streams int, opt *Options) {
	var sum demands
	claims := 0 // engines with background work
	for _, m := range t.members {
		sum.prompts += m.demand.prompts
		if m.demand.background > 0 {
			claims++
		}
	}
	forBackground := alone * (opt.SearchStretch - 1)
	if sum.prompts > 0 {
		forBackground /= 2
	}
	forBackground -= min(heldUp, forBackground*0.9) // something is left in any case
	// One prompt must not stop many streams, nor one stream many prompts.
	forPrompts := max(opt.PromptStretch-1, float64(sum.prompts-1)/float64(streams))
	for _, m := range t.members {
		if n := m.demand.prompts; n > 0 {
			m.income(workPrompts, alone*forPrompts*float64(n)/float64(sum.prompts))
		}
		if m.demand.background > 0 {
			m.income(workBackground, forBackground/float64(claims))
		}
	}
}

// income adds credit, of which no more is saved than what is needed at once,
// and wakes an engine that has waited for it. Locked.
func (m *member) income(k work, credit float64) {
	had := m.credit[k]
	m.credit[k] = min(had+credit, max(had, m.need[k]+credit, 2*credit))
	if need := m.need[k]; need > 0 && had < need && m.credit[k] >= need {
		m.poke()
	}
}
