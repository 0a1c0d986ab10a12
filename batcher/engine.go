package batcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models"
)

// Errors a caller can meet.
var (
	// ErrBusy says that the waiting queue is full; try again later.
	ErrBusy = errors.New("batcher: queue full")
	// ErrClosed says that the sequence was closed, or that the engine is draining or has stopped.
	ErrClosed = errors.New("batcher: closed")
	// ErrTooLong says that a prompt does not fit the context or the KV pool.
	ErrTooLong = errors.New("batcher: prompt longer than the context")
	// ErrToken says that a token id is outside the model's vocabulary, or that there is no token at all.
	ErrToken = errors.New("batcher: bad token")
)

// Engine runs sequences over one model.
type Engine struct {
	model models.Model
	kv    *models.KVCache
	opt   Options
	cfg   models.Config
	limit int // longest sequence in tokens
	box   mailbox

	// Owned by the step loop.
	waiting   []*Sequence // have work and no blocks; oldest first
	active    []*Sequence // have work and blocks; oldest first
	idle      []*Sequence // have blocks and no work; longest idle first
	freed     int         // counts events that may have freed blocks
	fresh     int         // tokens of interactive prompts begun since the last plan, as far as they are lent
	scheduler schedule.Scheduler
	cost      schedule.CostModel
	draftsPay bool    // guesses have to be worth their time
	share     *member // of opt.Turns
	wants     []schedule.Want
	leads     []*Sequence // whose wants they are
	twins     map[likeness]*Sequence
	riders    []*Sequence // who have a lead in the step under way
	held      []*Sequence // whose readers have not been woken for all that they can read
	drafts    int         // guesses a stream and step at most
	sources   []source
	asks      []*Guess
	bets      []bet
	taken     []int         // indexes of bets, in the order of their guesses
	drafting  time.Duration // of the step under way
	later     bool          // the step under way leaves background sequences out, for want of credit
	batch     models.Batch
	tokens    []int32 // scratch
	spans     []span
	draws     *sampling.Batch

	counts Stats

	shown sync.Mutex
	stats Stats // counts as of the last step
}

// New makes an engine; it does nothing until Run or Step is called. Options
// must be valid. Until it has stopped, the engine owns m and kv.
func New(m models.Model, kv *models.KVCache, opt Options) *Engine {
	if err := opt.Validate(); err != nil {
		panic(fmt.Errorf("batcher: %w", err))
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	e := &Engine{
		model: m, kv: kv, opt: opt, cfg: m.Config(),
		limit: kv.Blocks() * kv.BlockLen(),
		draws: sampling.NewBatch(opt.Pool),
	}
	for _, n := range []int{opt.Context, e.cfg.Context} {
		if n > 0 {
			e.limit = min(e.limit, n)
		}
	}
	e.twins = map[likeness]*Sequence{}
	e.box.open = map[*Sequence]struct{}{}
	e.box.wake = make(chan struct{}, 1)
	e.drafts, e.draftsPay, _ = opt.Speculation.limit()
	if opt.Drafters == nil {
		opt.Drafters = []Drafter{NewLookup()}
	}
	for _, d := range opt.Drafters {
		e.sources = append(e.sources, source{Drafter: d, rate: rateAtFirst[d.Kind()], dear: 1})
	}
	if opt.Turns == nil {
		opt.Turns = NewTurns()
	}
	e.share = opt.Turns.join(e.box.poke, e.box.urgent)
	e.freed = 1
	e.publish(&StepStats{Budget: opt.StepTokens})
	return e
}

// Limit is the longest sequence in tokens: the context, or what the KV pool holds.
func (e *Engine) Limit() int { return e.limit }

// Run steps until ctx ends, then stops all sequences with ErrClosed and
// returns nil. It parks when there is no work. A step that fails or panics
// stops all sequences with a *FailedError, which Run returns.
func (e *Engine) Run(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			e.stop(ErrClosed)
			return nil
		}
		st, err := e.Step()
		if err != nil {
			return err
		}
		if st.Tokens > 0 || st.Preempted > 0 {
			continue
		}
		// Nothing to do, or nothing that streams of other engines leave time
		// for, or all that was planned has just been changed by callers, who
		// post it.
		select {
		case <-e.box.wake:
		case <-ctx.Done():
		}
	}
}

// Step runs one step. It is for tests and for callers with a loop of their
// own; like Run it must be called from one goroutine at a time. An error has
// stopped the engine.
func (e *Engine) Step() (st StepStats, err error) {
	if err := e.box.stopped(); err != nil {
		return st, err
	}
	defer func() { err = e.failure(err, recover()) }()
	e.share.take()
	defer e.share.give()
	start := e.opt.Now()
	news, hot := e.box.take()
	e.share.heard = e.share.heard || hot
	for _, s := range news {
		e.settle(s)
	}
	e.admit()
	if pool := e.opt.Pool; pool != nil && len(e.active) > 0 {
		pool.Begin() // workers wake up while the step is planned
		defer pool.End()
	}
	st.Budget = e.plan()
	st.Preempted = e.reserve()
	part := e.assemble(&st)
	e.handOver(st.Tokens)
	if len(e.spans) > 0 {
		begin := e.opt.Now()
		if err := e.model.Forward(&e.batch, e.kv); err != nil {
			return st, fmt.Errorf("batcher: step of %d tokens: %w", len(e.batch.Tokens), err)
		}
		st.Forward = e.opt.Now().Sub(begin)
		e.deliver(&st)
		st.Duration, st.Drafting = e.opt.Now().Sub(start), e.drafting
		e.cost.Observe(st.Tokens, st.computing())
		e.settleUp(&st, part.streams)
	}
	e.account(part, &st)
	e.publish(&st)
	return st, nil
}

// Drain refuses new sequences and returns when the open ones have been closed or ctx ends.
func (e *Engine) Drain(ctx context.Context) error {
	select {
	case <-e.box.drain():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends all sequences with err and gives their blocks back.
func (e *Engine) stop(err error) {
	e.share.declare(demands{}, &e.opt)
	seqs := e.box.stop(err)
	for _, s := range seqs {
		s.end(err)
	}
	// After a panic the cache may be in a state that Release cannot handle;
	// nobody computes on it any more.
	defer func() { _ = recover() }()
	for _, s := range seqs {
		e.retire(s)
	}
	e.publish(&StepStats{})
}

// plan asks the scheduler for the next step, into spans, and returns the lanes it allowed.
func (e *Engine) plan() (lanes int) {
	e.wants, e.leads, e.spans = e.wants[:0], e.leads[:0], e.spans[:0]
	e.later = e.share.withholds(e.front())
	e.pair()
	var d demands
	for _, s := range e.active {
		switch {
		case s.want.Background:
			d.background++
			if e.later {
				continue
			}
		case s.lead != nil:
		case s.want.Left() > 1:
			d.prompts++
		default:
			d.streams++
		}
		if s.lead == nil {
			e.leads = append(e.leads, s)
			e.wants = append(e.wants, s.want)
		}
	}
	l := schedule.Limits{Tokens: e.opt.StepTokens, Rows: e.opt.StepRows, Longest: e.opt.StepTime.Seconds(), Time: e.cost.Time, Optimistic: e.cost.Optimistic}
	if e.fresh > 0 {
		e.share.lend(e.cost.Time(d.streams+e.fresh) - e.cost.Time(d.streams))
		e.fresh = 0
	}
	l.Terms = e.share.declare(d, &e.opt)
	if d.streams > 0 && e.counts.Steps%probe == 0 {
		l.Credit = [schedule.Accounts]float64{}
	}
	for i, n := range e.scheduler.Plan(e.wants, l) {
		if n > 0 {
			e.spans = append(e.spans, span{s: e.leads[i], n: n})
		}
	}
	e.lighten()
	e.drafting = 0
	if e.speculate(&l); d.streams == 0 {
		return l.Tokens
	}
	room, _ := l.Room(d.streams, l.Credit[schedule.Prefill], l.Tokens)
	return d.streams + room
}

// front counts the interactive sequences to compute.
func (e *Engine) front() (d demands) {
	for _, s := range e.active {
		switch {
		case s.want.Background:
		case s.want.Left() > 1:
			d.prompts++
		default:
			d.streams++
		}
	}
	return d
}

// probe: one step in so many that has streams has nothing else, so that it
// stays known how long they would take alone.
const probe = 64

// span is one sequence's part of a step.
type span struct {
	s    *Sequence
	n    int       // tokens
	out  int       // rows of logits
	row  int       // the first of them
	turn int       // index among draws, or -1
	lead *Sequence // the twin that is computed in its place; nil: none

	ridden bool    // it is a lead
	asked  bool    // s.by holds guesses for this step
	by     int     // whose are the best
	most   int     // how many these are
	draft  []int32 // those that are computed, behind the n tokens
}

// reserve grows the caches of the planned sequences, oldest first, and takes
// blocks from the others when there are none left.
func (e *Engine) reserve() (preempted int) {
	for i := 0; i < len(e.spans); i++ {
		s := e.spans[i].s
		for s.kv.Grow(e.spans[i].n+len(e.spans[i].draft)) != nil {
			if len(e.spans[i].draft) > 0 { // nobody loses blocks to a guess
				e.spans[i].draft = nil
				continue
			}
			if e.evict() {
				continue
			}
			// The youngest loses what it has. Being behind s in age or s
			// itself, it has not been passed by this loop, so nothing planned
			// for it needs undoing but the plan.
			victim := e.active[len(e.active)-1]
			e.preempt(victim)
			preempted++
			if at := slices.IndexFunc(e.spans, func(p span) bool { return p.s == victim }); at >= 0 {
				e.spans = slices.Delete(e.spans, at, at+1)
			}
			if victim == s {
				i--
				break
			}
		}
	}
	return preempted
}

// assemble fills the batch from the spans, and drops spans whose caller has
// changed its mind since the plan. It returns what of the batch is whose.
func (e *Engine) assemble(st *StepStats) (part parts) {
	e.batch.Reset()
	kept := e.spans[:0]
	for _, p := range e.spans {
		s := p.s
		s.mu.Lock()
		if s.epoch != s.seen {
			s.mu.Unlock()
			s.kv.Truncate(s.want.Have)
			continue
		}
		if s.timing.Started.IsZero() {
			s.timing.Started = e.opt.Now()
		}
		p.out, p.row = s.want.Rows(p.n)+len(p.draft), st.Rows
		e.tokens = append(append(e.tokens[:0], s.tokens[s.want.Have:s.want.Have+p.n]...), p.draft...)
		e.batch.Add(s.kv, s.want.Have, p.out, e.tokens...)
		if len(p.draft) > 0 {
			st.Drafted[e.sources[p.by].Kind()] += len(p.draft)
		}
		prompt := s.prompt
		s.mu.Unlock()
		switch {
		case s.want.Background:
			part.work[e.share.back] += p.n + len(p.draft)
		case s.want.Left() > 1:
			part.work[schedule.Prefill] += p.n
		default:
			part.streams++
			part.guesses += len(p.draft)
		}
		if s.want.Left() == 1 && s.want.Have >= prompt {
			st.Decode++
		} else {
			st.Prefill += p.n
		}
		e.counts.PromptTokens += int64(max(0, min(s.want.Have+p.n, prompt)-max(s.want.Have, s.reached)))
		st.Rows += p.out
		kept = append(kept, p)
	}
	e.spans = kept
	st.Spans, st.Tokens = len(kept), len(e.batch.Tokens)
	e.ride(st)
	st.Lanes = schedule.WholeTiles(st.Tokens)
	e.batch.Logits = slices.Grow(e.batch.Logits[:0], st.Rows*e.cfg.Outputs)
	return part
}
