package batcher

import (
	"fmt"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models"
)

// step is the step under way: what was planned, and what becomes of it.
type step struct {
	StepStats
	began    time.Time
	withheld bool          // background sequences are left out, for want of credit
	waited   time.Duration // part of Duration in which nothing but constraints was worked on
	spans    []span
	shares   shares
}

// span is one sequence's part of a step.
type span struct {
	s        *Sequence
	n        int       // tokens
	out      int       // rows of logits
	row      int       // the first of them
	draw     int       // index of its first draw, or -1
	leader   *Sequence // the equal sequence that is computed in its place; nil: none
	followed bool      // others take over what it computes

	asked   bool    // s.by holds guesses for this step
	drafter int     // who made the best ones
	offered int     // how many these are
	draft   []int32 // those that are computed, behind the n tokens

	forced    int  // draft is so many tokens that have to come, instead of guesses
	unsampled int  // rows that these do without
	late      bool // no row could be sampled in time
}

// shares are the tokens of a step by what they are for.
type shares struct {
	streams  int
	guesses  int // of streams
	accounts [schedule.Accounts]int
}

// probeInterval: of so many steps with streams one has nothing else, to measure how
// long streams take alone.
const probeInterval = 64

// drain takes in what callers have posted.
func (e *Engine) drain() {
	news, interactive := e.box.take()
	e.tenant.noteArrival(interactive)
	for _, s := range news {
		e.admission.settle(s)
	}
}

// plan decides what the step computes, and makes room for it in the KV cache.
func (e *Engine) plan() {
	st := &e.step
	st.withheld = e.tenant.holdsBackground(e.admission.interactive())
	if e.bounds.recurrent {
		for _, s := range e.admission.active {
			if !s.awaitsMask() {
				e.holdUnprepared(s)
			}
		}
	}
	e.duplicates.pair(e.admission.active, st.withheld)
	d := e.planner.gather(e.admission.active, st.withheld)
	l := e.planner.limits
	l.Policy = e.terms(d)
	st.spans = e.planner.plan(st.spans[:0], l)
	e.duplicates.cutToBlock(st.spans, e.kv.BlockLen())
	e.extendForced(st.spans, &l)
	e.drafts.extend(st.spans, &l)
	if st.Budget = l.Tokens; d.streams > 0 {
		room, _ := l.Room(d.streams, l.Credit[schedule.Prefill], l.Tokens)
		st.Budget = d.streams + room
	}
	st.spans, st.Preempted = e.admission.reserve(st.spans)
}

// terms are what the step may do beside others, of an engine with so much to do.
func (e *Engine) terms(d workload) schedule.Policy {
	if n := e.admission.takeGranted(); n > 0 {
		e.tenant.grantPrefill(e.planner.cost.Time(d.streams+n) - e.planner.cost.Time(d.streams))
	}
	t := e.tenant.setDemand(d)
	if d.streams > 0 && e.stats.counts.Steps%probeInterval == 0 {
		t.Credit = [schedule.Accounts]float64{}
	}
	return t
}

// stepBatch is what the model computes in one step.
type stepBatch struct {
	models.Batch
	outputs int     // numbers a row of logits
	tokens  []int32 // scratch
}

// row is a row of the step's logits.
func (b *stepBatch) row(i int) []float32 { return b.Logits[i*b.outputs : (i+1)*b.outputs] }

// add adds a span behind the others.
func (b *stepBatch) add(p *span) {
	s := p.s
	b.tokens = append(append(b.tokens[:0], s.content.tokens[s.task.demand.Computed:s.task.demand.Computed+p.n]...), p.draft...)
	b.Add(s.task.kv, s.task.demand.Computed, p.out, b.tokens...)
}

// forward computes the planned spans.
func (e *Engine) forward() error {
	st := &e.step
	e.assemble()
	e.delivery.flush(st.Tokens, e.planner.cost.Time(st.Tokens))
	if len(st.spans) == 0 {
		return nil
	}
	began := e.opt.Now()
	if err := e.model.Forward(&e.batch.Batch, e.kv); err != nil {
		return fmt.Errorf("batcher: step of %d tokens: %w", len(e.batch.Tokens), err)
	}
	st.Forward = e.opt.Now().Sub(began)
	return nil
}

// assemble fills the batch from the spans. It drops spans whose caller has changed
// tokens or order since the plan.
func (e *Engine) assemble() {
	st := &e.step
	e.batch.Reset()
	kept := st.spans[:0]
	for _, p := range st.spans {
		s := p.s
		s.mu.Lock()
		if s.epoch != s.task.seen {
			s.mu.Unlock()
			s.cut(s.task.demand.Computed)
			continue
		}
		if s.timing.Started.IsZero() {
			s.timing.Started = e.opt.Now()
		}
		p.out, p.row = s.task.demand.Rows(p.n)+len(p.draft)-p.unsampled, st.Rows
		e.batch.add(&p)
		prompt := s.content.prompt
		s.mu.Unlock()
		if n := len(p.draft) - p.forced; n > 0 {
			st.Drafted[e.drafts.kind(&p)] += n
		}
		e.count(&p, prompt)
		kept = append(kept, p)
	}
	st.Tokens = len(e.batch.Tokens)
	st.spans = e.duplicates.follow(kept, st, e.opt.Now)
	e.prepareMasks(st.spans)
	st.Lanes = schedule.WholeTiles(st.Tokens)
	e.batch.Logits = slices.Grow(e.batch.Logits[:0], st.Rows*e.batch.outputs)
}

// count notes what the tokens of a span are for. prompt is the length of its
// sequence's prompt.
func (e *Engine) count(p *span, prompt int) {
	st, w := &e.step, &p.s.task.demand
	switch {
	case w.Background:
		st.shares.accounts[e.tenant.backgroundPays] += p.n + len(p.draft)
	case w.Left() > 1:
		st.shares.accounts[schedule.Prefill] += p.n
	default:
		st.shares.streams++
		st.shares.guesses += len(p.draft)
	}
	e.stats.counts.PromptTokens += int64(max(0, min(w.Computed+p.n, prompt)-max(w.Computed, p.s.task.reached)))
	st.Rows += p.out
}

// sample draws tokens from the logits.
func (e *Engine) sample() {
	if len(e.step.spans) > 0 {
		began := e.opt.Now()
		e.awaitMasks(e.step.spans, e.step.Forward)
		e.step.waited = e.opt.Now().Sub(began)
		e.delivery.sample(&e.step, &e.batch)
	}
}

// deliver gives the step's results to their callers.
func (e *Engine) deliver() {
	st := &e.step
	if len(st.spans) == 0 {
		return
	}
	now := e.opt.Now()
	for i := range st.spans {
		p := &st.spans[i]
		if p.draw >= 0 {
			n, forced := e.delivery.commit(p, now)
			st.Sampled += n
			st.Forced += forced
			if len(p.draft) > p.forced {
				st.Accepted[e.drafts.kind(p)] += min(max(0, n-1), len(p.draft))
			}
		}
		if p.s.task.demand.Left() == 0 {
			e.admission.settle(p.s)
		}
	}
	e.stats.counts.GeneratedTokens += int64(st.Sampled)
	e.stats.counts.ForcedTokens += int64(st.Forced)
}

// account learns from what the step took, and settles what it has earned and
// spent. Steps without tokens count too, for what they lacked.
func (e *Engine) account() {
	st := &e.step
	if len(st.spans) > 0 {
		st.Duration, st.Drafting = e.opt.Now().Sub(st.began), e.drafts.spent
		e.planner.cost.Observe(st.Tokens, st.computing()-st.waited.Seconds())
		e.drafts.settle(st)
	}
	e.tenant.account(st, &e.planner.cost, e.planner.scheduler.Need)
	e.publish()
}
