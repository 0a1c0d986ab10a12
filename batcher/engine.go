package batcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
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
	model  models.Model
	kv     *kv.Cache
	opt    Options
	bounds bounds
	box    mailbox
	stats  statistics

	// Owned by the step loop.
	admission  admission
	planner    planner
	tenant     *tenant // its part of opt.Arbiter
	duplicates duplicates
	drafts     draftSelector
	batch      stepBatch
	delivery   delivery
	step       step
}

// bounds are what a model and its cache can take.
type bounds struct {
	limit     int // longest sequence in tokens
	vocab     int
	outputs   int // numbers a row of logits
	pooling   models.Pooling
	whole     bool // a sequence is computed in one step
	generates bool // rows of logits are the vocabulary's
	recurrent bool // what has been computed cannot be taken back
}

// New makes an engine; it does nothing until Run or Step is called. Options
// must be valid. Until it has stopped, the engine owns m and kv.
func New(m models.Model, cache *kv.Cache, opt Options) *Engine {
	if err := opt.Validate(); err != nil {
		panic(fmt.Errorf("batcher: %w", err))
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Drafters == nil {
		opt.Drafters = []Drafter{NewLookup()}
	}
	if opt.Arbiter == nil {
		opt.Arbiter = NewStepArbiter()
	}
	if cache.Shape().State > 0 {
		opt.Speculation = SpeculateOff // a recurrent state cannot take guesses back
	}
	cfg := m.Config()
	e := &Engine{model: m, kv: cache, opt: opt, bounds: bounds{limit: cache.Blocks() * cache.BlockLen(), vocab: cfg.Vocab, outputs: cfg.Outputs, pooling: cfg.Pooling, generates: cfg.Generates(), whole: cfg.Bidirectional, recurrent: cache.Shape().State > 0}}
	for _, n := range []int{opt.Context, cfg.Context} {
		if n > 0 {
			e.bounds.limit = min(e.bounds.limit, n)
		}
	}
	e.box.open = map[*Sequence]struct{}{}
	e.box.wake = make(chan struct{}, 1)
	e.batch.outputs = e.bounds.outputs
	e.admission = admission{kv: cache, box: &e.box, counts: &e.stats.counts, freed: 1}
	e.planner.init(&e.opt)
	e.duplicates = newDuplicates()
	e.drafts = newDraftSelector(e)
	e.delivery = newDelivery(e)
	e.tenant = opt.Arbiter.join(&e.box, &e.opt)
	e.step.Budget = opt.StepTokens
	e.publish()
	return e
}

// Limit is the longest sequence in tokens: the context, or what the KV pool holds.
func (e *Engine) Limit() int { return e.bounds.limit }

// KVType is the format of the keys and values that the engine keeps.
func (e *Engine) KVType() kv.Type { return e.kv.Type() }

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
	e.tenant.take()
	defer e.tenant.give()
	e.step = step{began: e.opt.Now(), spans: e.step.spans}
	e.drain()
	e.admission.admit()
	if pool := e.opt.Pool; pool != nil && len(e.admission.active) > 0 {
		pool.Begin() // workers wake up while the step is planned
		defer pool.End()
	}
	e.plan()
	if err := e.forward(); err != nil {
		return e.step.StepStats, err
	}
	e.sample()
	e.deliver()
	e.account()
	return e.step.StepStats, nil
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
	e.tenant.setDemand(workload{})
	seqs := e.box.stop(err)
	for _, s := range seqs {
		s.end(err)
	}
	// After a panic the cache may be in a state that Release cannot handle;
	// nobody computes on it any more.
	defer func() { _ = recover() }()
	for _, s := range seqs {
		e.admission.retire(s)
	}
	e.step = step{}
	e.publish()
}
