package batcher

import "github.com/lutra-lm/lutra/batcher/schedule"

// This half of StepArbiter keeps the accounts: steps with interactive streams
// earn credit, and work that delays streams spends it.

// lend gives a prompt that has just begun credit for its first tokens: most
// prompts are short, delay streams once and little, and then fill their batch.
func (t *tenant) grantPrefill(credit float64) {
	t.mu.Lock()
	t.credit[schedule.Prefill] += credit
	t.mu.Unlock()
}

// withholds reports whether background work waits for credit beside what else
// the engine has to do.
func (t *tenant) holdsBackground(d workload) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, beside := t.backgroundAccount(d)
	return beside && t.need[k] > 0 && t.credit[k] < t.need[k]
}

// payer is the account that background work beside d draws on, and whether there
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
func (t *tenant) account(st *step, cost *schedule.CostModel, need [schedule.Accounts]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if st.withheld {
		need[t.backgroundPays] = t.need[t.backgroundPays]
	}
	t.need = need
	// The tokens beside which other work was let in, and their time alone.
	first := st.shares.streams + st.shares.guesses
	if t.backgroundPays == schedule.BackgroundAhead {
		first = st.shares.accounts[schedule.Prefill]
	}
	alone := cost.Time(first)
	otherDecoding := t.otherDecoding()
	if others := st.Tokens - first; others > 0 && (first > 0 || otherDecoding || t.otherPrefilling()) {
		over := st.computing() - alone
		over = min(max(0, over), schedule.Outlier*(cost.Time(st.Tokens)-alone))
		for k := range t.credit {
			if schedule.Account(k) != schedule.Prefill || st.shares.streams > 0 || otherDecoding {
				t.credit[k] -= over * float64(st.shares.accounts[k]) / float64(others)
			}
		}
	}
	switch {
	case st.shares.streams > 0:
		heldUp := 0.0 // how much longer the step took although it was alone
		if first == st.Tokens {
			heldUp = max(0, st.computing()-alone)
		}
		t.addCredit(alone+st.Drafting.Seconds(), heldUp, st.shares.streams, t.opt)
	case first > 0:
		t.splitCredit(schedule.BackgroundAhead, alone*(t.opt.BackgroundSlowdown-1))
	}
	t.showBegun(st.spans)
}

// showBegun makes it known at once that prompts have become streams: another
// engine may step before the next plan. Locked.
func (t *tenant) showBegun(spans []span) {
	d := t.demand
	for _, p := range spans {
		if !p.s.task.demand.Background && p.n > 1 && p.s.task.demand.Left() == 1 {
			d.streams++
			d.prompts = max(0, d.prompts-1)
		}
	}
	t.show(d)
}

// earn distributes the credit of a step whose streams alone take so many seconds.
// A delay that nothing in the batch explains is charged to background work, whose
// callers use the processors too. Locked.
func (a *StepArbiter) addCredit(alone, heldUp float64, streams int, opt *Options) {
	prompts := 0
	for _, t := range a.tenants {
		prompts += t.demand.prompts
	}
	forBackground := alone * (opt.BackgroundSlowdown - 1)
	if prompts > 0 {
		forBackground /= 2
	}
	forBackground -= min(heldUp, forBackground*0.9) // something is left in any case
	a.splitCredit(schedule.Background, forBackground)
	// One prompt must not stop many streams, nor one stream many prompts.
	forPrompts := max(opt.PrefillSlowdown-1, float64(prompts-1)/float64(streams))
	for _, t := range a.tenants {
		if n := t.demand.prompts; n > 0 {
			t.income(schedule.Prefill, alone*forPrompts*float64(n)/float64(prompts))
		}
	}
}

// divide divides credit among the engines with background work. Locked.
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
		t.box.poke()
	}
}
