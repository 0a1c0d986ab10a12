package batcher

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// loop computes the sequences of an engine, a step at a time. One goroutine at a time runs it,
// and owns all that it has but the mailbox and what is published.
type loop struct {
	model     models.Model
	kv        *kv.Cache
	setup     *setup
	box       *mailbox[*Sequence]
	published *published
	counts    Stats

	admission   admission
	planner     planner
	tenant      *tenant // its part of Options.Arbiter
	duplicates  duplicates
	constraints constraints
	drafts      draftSelector
	batch       stepBatch
	keep        []int // scratch of takeBack
	delivery    delivery
	step        step
}

// init must be called once, before anything else. l must not be copied after.
func (l *loop) init(m models.Model, cache *kv.Cache, c *setup, box *mailbox[*Sequence], p *published) {
	o, b := &c.opt, &c.bounds
	*l = loop{model: m, kv: cache, setup: c, box: box, published: p, duplicates: newDuplicates()}
	l.admission = admission{kv: cache, step: stepRoom(cache, o.StepTokens), undoes: b.ahead > 0, disk: restorer{store: o.Disk, kv: cache}, begun: box.begun, leave: func(s *Sequence) { box.leave(s, s.task.begun) }, freed: 1}
	l.planner.init(o)
	l.constraints = constraints{vocab: b.vocab, recurrent: b.recurrent}
	l.drafts = newDraftSelector(c, cache, &l.planner.cost)
	l.batch.outputs = b.outputs
	if o.Probe != nil {
		shape := m.Config()
		l.batch.width = o.Probe.Width(&shape)
	}
	l.delivery = newDelivery(c, &l.drafts)
	l.tenant = o.Arbiter.join(box, o.Now, slowdown{o.PrefillSlowdown, o.BackgroundSlowdown})
	l.step.Budget = o.StepTokens
	l.publish()
}

// run runs one step. An error has stopped the engine.
func (l *loop) run() (st StepStats, err error) {
	if err := l.box.stopped(); err != nil {
		return st, err
	}
	defer func() { err = l.fail(err, recover()) }()
	l.tenant.take()
	defer l.tenant.give()
	l.step = step{began: l.setup.opt.Now(), spans: l.step.spans}
	l.drain()
	l.admission.admit()
	if pool := l.setup.opt.Pool; pool != nil && len(l.admission.active) > 0 {
		pool.Begin() // workers wake up while the step is planned
		defer pool.End()
	}
	l.plan()
	if err := l.forward(); err != nil {
		return l.step.StepStats, err
	}
	l.sample()
	l.deliver()
	l.account()
	return l.step.StepStats, nil
}

// probes reports whether the step under way shows how long streams take alone.
func (l *loop) probes() bool { return l.counts.Steps%probeInterval == 0 }

// probeInterval is the number of steps with streams of which one has nothing else, to measure how
// long streams take alone.
const probeInterval = 64

// drain takes in what callers have posted.
func (l *loop) drain() {
	news, interactive := l.box.take()
	l.tenant.noteArrival(interactive)
	for _, s := range news {
		l.admission.settle(s)
	}
}

// plan decides what the step computes, and makes room for it in the KV cache.
func (l *loop) plan() {
	st := &l.step
	st.withheld = l.tenant.holdsBackground(l.admission.interactive())
	if l.setup.bounds.recurrent {
		for _, s := range l.admission.active {
			if !s.task.constraint.held() {
				holdUnprepared(s)
			}
		}
	}
	l.duplicates.pair(l.admission.active, st.withheld)
	d := l.planner.gather(l.admission.active, st.withheld)
	limits := l.planner.limits
	limits.Policy = l.policy(d)
	st.spans = l.planner.plan(st.spans[:0], limits)
	l.duplicates.cutToBlock(st.spans, l.kv.BlockLen())
	l.constraints.extend(st.spans, &limits)
	l.drafts.extend(st.spans, &limits, l.probes())
	if st.Budget = limits.Tokens; d.streams > 0 {
		room, _ := limits.Room(d.streams, limits.Credit[schedule.Prefill], limits.Tokens)
		st.Budget = d.streams + room
	}
	st.spans, st.Preempted = l.admission.reserve(st.spans)
}

// policy returns what the step may do alongside others, of an engine with the workload d.
func (l *loop) policy(d workload) schedule.Policy {
	if n := l.admission.takeGranted(); n > 0 {
		l.tenant.grantPrefill(l.planner.cost.Time(d.streams+n) - l.planner.cost.Time(d.streams))
	}
	t := l.tenant.setDemand(d)
	if d.streams > 0 && l.probes() {
		t.Credit = [schedule.Accounts]float64{}
	}
	return t
}

// forward computes the planned spans.
func (l *loop) forward() error {
	st := &l.step
	l.assemble()
	l.delivery.flush(st.Tokens, l.planner.cost.Time(st.Tokens))
	if len(st.spans) == 0 {
		return nil
	}
	began := l.setup.opt.Now()
	if err := l.model.Forward(&l.batch.Batch, l.kv); err != nil {
		return fmt.Errorf("batcher: step of %d tokens: %w", len(l.batch.Tokens), err)
	}
	st.Forward = l.setup.opt.Now().Sub(began)
	return nil
}

// assemble fills the batch from the spans. It drops spans whose caller has changed
// tokens or request since the plan.
func (l *loop) assemble() {
	st := &l.step
	l.batch.Reset()
	l.batch.Probe = l.setup.opt.Probe
	_, follower := l.drafts.follower()
	l.batch.KeepStates = follower != nil
	kept := st.spans[:0]
	for _, p := range st.spans {
		s := p.s
		s.mu.Lock()
		if s.changed() {
			s.mu.Unlock()
			s.task.cut(s.task.demand.Computed)
			continue
		}
		if s.timing.Started.IsZero() {
			s.timing.Started = l.setup.opt.Now()
		}
		p.rows = rows{first: st.Rows, n: s.task.demand.Rows(p.n) + len(p.draft) - p.unsampled, draw: -1}
		l.batch.add(&p)
		prompt := s.content.prompt
		s.mu.Unlock()
		if n := len(p.draft) - p.forced; n > 0 {
			st.Drafted[l.drafts.kind(&p)] += n
		}
		l.count(&p, prompt)
		kept = append(kept, p)
	}
	st.Tokens = len(l.batch.Tokens)
	st.spans = l.duplicates.follow(kept, st, l.setup.opt.Now)
	prepareMasks(st.spans)
	st.Lanes = schedule.WholeTiles(st.Tokens)
	l.batch.Logits = slices.Grow(l.batch.Logits[:0], st.Rows*l.batch.outputs)
}

// count notes what the tokens of a span are for. prompt is the length of its
// sequence's prompt.
func (l *loop) count(p *span, prompt int) {
	st, w := &l.step, &p.s.task.demand
	switch {
	case w.Background:
		st.shares.accounts[l.tenant.backgroundPays] += p.n + len(p.draft)
	case w.Left() > 1:
		st.shares.accounts[schedule.Prefill] += p.n
	default:
		st.shares.streams++
		st.shares.guesses += len(p.draft)
	}
	l.counts.PromptTokens += int64(max(0, min(w.Computed+p.n, prompt)-max(w.Computed, p.s.task.reached)))
	st.Rows += p.rows.n
}

// sample draws tokens from the logits.
func (l *loop) sample() {
	if len(l.step.spans) > 0 {
		began := l.setup.opt.Now()
		awaitMasks(l.step.spans, l.step.Forward)
		l.step.waited = l.setup.opt.Now().Sub(began)
		l.delivery.sample(&l.step, &l.batch)
	}
}

// deliver gives the step's results to their callers.
func (l *loop) deliver() {
	st := &l.step
	if len(st.spans) == 0 {
		return
	}
	now := l.setup.opt.Now()
	for i := range st.spans {
		p := &st.spans[i]
		if p.rows.draw >= 0 {
			n, forced := l.delivery.commit(p, &l.batch, now)
			st.Sampled += n
			st.Forced += forced
			if len(p.draft) > p.forced {
				st.Accepted[l.drafts.kind(p)] += min(max(0, n-1), len(p.draft))
			}
		}
	}
	l.takeBack()
	l.drafts.follow(st.spans, &l.batch.Batch)
	for i := range st.spans {
		p := &st.spans[i]
		l.delivery.settle(p)
		if p.s.task.demand.Left() == 0 {
			l.admission.settle(p.s)
		}
	}
	l.counts.GeneratedTokens += int64(st.Sampled)
	l.counts.ForcedTokens += int64(st.Forced)
}

// takeBack has the model undo the guesses that were wrong, of sequences that can go back no other way.
func (l *loop) takeBack() {
	b := &l.batch.Batch
	l.keep = l.keep[:0]
	wrong := false
	for i := range b.Spans {
		p := &l.step.spans[i]
		keep := p.n + len(p.draft)
		if t := &p.s.task; t.kv.Guesses() > 0 {
			if n := keep - (t.kv.Len() - t.demand.Computed); n >= p.n && n < keep {
				keep, wrong = n, true
			}
		}
		l.keep = append(l.keep, keep)
	}
	if wrong {
		l.model.TakeBack(b, l.keep)
	}
}

// account learns from what the step took, and settles what it has earned and
// spent. Steps without tokens count too, for what they lacked.
func (l *loop) account() {
	st := &l.step
	if len(st.spans) > 0 {
		st.Duration, st.Drafting = l.setup.opt.Now().Sub(st.began), l.drafts.spent
		l.drafts.settle(st)
		l.planner.cost.Observe(st.Tokens, st.computing()-st.waited.Seconds())
	}
	l.tenant.account(st.usage(), &l.planner.cost, l.planner.scheduler.Need)
	l.publish()
}

// fail ends the engine for the error, or the panic, of a step; its sequences alone
// if the model goes on without the backend that has failed.
func (l *loop) fail(err error, panicked any) error {
	if p := parallel.Caught(panicked); p != nil {
		err = fmt.Errorf("%w: %v\n%s", ErrPanic, p.Value, p.Stack)
	}
	if err == nil {
		return nil
	}
	var fault *models.FaultError
	if panicked == nil && errors.As(err, &fault) && fault.Spare {
		l.recover(fault)
		return nil
	}
	failed := &FailedError{Model: l.setup.opt.Name, Err: err}
	l.stop(failed)
	return failed
}

// recover ends all sequences and empties the cache: what the backend computed before
// it failed is not to be trusted.
func (l *loop) recover(fault *models.FaultError) {
	failed := &FaultError{Model: l.setup.opt.Name, Err: fault.Err}
	if l.setup.opt.OnFault != nil {
		l.setup.opt.OnFault(failed)
	}
	for _, s := range l.box.all() {
		s.end(failed)
	}
	l.step = step{}
	l.drain() // which takes their blocks
	l.kv.Forget()
	l.publish()
}

// stop ends all sequences with err and gives their blocks back.
func (l *loop) stop(err error) {
	l.tenant.setDemand(workload{})
	l.tenant.leave()
	seqs := l.box.stop(err)
	for _, s := range seqs {
		s.end(err)
	}
	// After a panic the cache may be in a state that Release cannot handle;
	// nobody computes on it any more.
	defer func() { _ = recover() }()
	for _, s := range seqs {
		l.admission.retire(s)
	}
	l.step = step{}
	l.publish()
}

// publish counts the step under way and shows the result to other goroutines.
func (l *loop) publish() {
	st, c := &l.step.StepStats, &l.counts
	c.RunningRequests, c.WaitingRequests = l.admission.requests()
	c.Running, c.Waiting, c.Idle = len(l.admission.active), len(l.admission.waiting), len(l.admission.idle)
	c.RunningAdapters, c.WaitingAdapters = adapters(l.admission.active), adapters(l.admission.waiting)
	c.Blocks, c.Used, c.BlockLen = l.kv.Blocks(), l.kv.Blocks()-l.kv.Free(), l.kv.BlockLen()
	c.States, c.Held, c.Kept = l.kv.States(), l.kv.States()-l.kv.FreeStates(), l.kv.Checkpoints()
	c.Budget = st.Budget
	if st.Tokens > 0 {
		c.Steps++
		c.BatchTokens += int64(st.Tokens)
		c.SavedTokens += int64(st.Saved)
		for k := range DraftKinds {
			c.DraftTokens[k] += int64(st.Drafted[k])
			c.DraftAccepted[k] += int64(st.Accepted[k])
		}
		c.DraftTime += st.Drafting
		c.BatchLanes += int64(st.Lanes)
		c.StepTime += st.Duration
	}
	a := &l.admission.counts
	c.PrefixQueries, c.PrefixHits, c.Preemptions, c.Evictions = a.prefixQueries, a.prefixHits, a.preemptions, a.evictions
	c.Gaps = l.delivery.gaps
	l.published.set(*c, pace{cost: l.planner.cost, load: l.admission.load(), slowdown: l.setup.opt.BackgroundSlowdown})
	if st.Tokens > 0 && l.setup.opt.OnStep != nil {
		l.setup.opt.OnStep(*st)
	}
}
