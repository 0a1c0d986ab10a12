package batcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// Engine runs sequences over one model.
type Engine struct {
	setup     *setup
	box       *mailbox[*Sequence]
	published *published
	loop      *loop
}

// New makes an engine; it does nothing until Run or Step is called. Options
// must be valid. Until it has stopped, the engine owns m and kv.
func New(m models.Model, cache *kv.Cache, opt Options) *Engine {
	if err := opt.Validate(); err != nil {
		panic(fmt.Errorf("batcher: %w", err))
	}
	if least := StepResiduals(opt.StepTokens, cache.BlockLen()); scarce(cache) && cache.Residuals() < least {
		panic(fmt.Errorf("batcher: a cache of %d residuals, a step takes up to %d", cache.Residuals(), least))
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
	b := newBounds(m, cache, opt.Context)
	if b.ahead == 0 {
		opt.Speculation = SpeculateOff
	}
	e := &Engine{setup: &setup{opt: opt, bounds: b}, box: newMailbox[*Sequence](opt.Sequences, opt.Queue), published: new(published), loop: new(loop)}
	e.loop.init(m, cache, e.setup, e.box, e.published)
	return e
}

// With returns the same engine, whose sequences v computes when they are opened by way of it:
// they run in the steps of all others. nil is the model as it is.
func (e *Engine) With(v *models.Variant) *Engine {
	with, setup := *e, *e.setup
	setup.variant, with.setup = v, &setup
	return &with
}

// Limit returns the longest sequence in tokens: the context, or what the KV pool holds.
func (e *Engine) Limit() int { return e.setup.bounds.limit }

// Streams returns how many sequences can advance in one step.
func (e *Engine) Streams() int { return e.setup.opt.StepRows }

// KVType returns the format of the keys and values that the engine keeps.
func (e *Engine) KVType() kv.Type { return e.loop.kv.Type() }

// Stats returns a snapshot for metrics, as of the last step.
func (e *Engine) Stats() Stats { return e.published.get() }

// StepTime returns how long a step of n tokens takes, as far as steps have shown; 0: there
// were none.
func (e *Engine) StepTime(n int) time.Duration {
	p := e.published.getPace()
	return seconds(p.cost.Time(n))
}

// Pace returns how long a token is expected to take of each of rows background sequences that
// come to those that run; 0: there have been no steps. It counts what this engine has to do, as
// of its last step, and not what others on the machine have.
func (e *Engine) Pace(rows int) time.Duration {
	p := e.published.getPace()
	return seconds(p.background(rows))
}

// Busy reports whether there is work: sequences that the last step has left, or that callers
// have posted since.
func (e *Engine) Busy() bool {
	st := e.Stats()
	return st.Running+st.Waiting > 0 || e.box.posted()
}

// Open queues a sequence whose prompt is computed when it is first needed.
// The sequence is closed when ctx ends. Errors: ErrTooLong, ErrToken, ErrBusy,
// ErrClosed, ctx's own.
func (e *Engine) Open(ctx context.Context, prompt []int32) (*Sequence, error) {
	return e.open(ctx, prompt, false)
}

// OpenBackground opens a sequence for work that may slow others' streams down, such as the candidates of a search.
// The sequence and its forks yield to Open's sequences as far as Options.BackgroundSlowdown demands, though never
// for good.
func (e *Engine) OpenBackground(ctx context.Context, prompt []int32) (*Sequence, error) {
	return e.open(ctx, prompt, true)
}

// backgroundKey is the key of WithBackground.
type backgroundKey struct{}

// WithBackground returns a context of work that gives way to all other: Open opens as OpenBackground does.
func WithBackground(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

// InBackground tells whether ctx is of such work.
func InBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }

// saltKey is the key of WithSalt.
type saltKey struct{}

// WithSalt returns a context of work that shares computed prefixes with work of the same salt alone: in the prefix cache,
// and in steps.
func WithSalt(ctx context.Context, salt string) context.Context {
	return context.WithValue(ctx, saltKey{}, salt)
}

// Salt returns the salt of work; empty: none.
func Salt(ctx context.Context) string {
	salt, _ := ctx.Value(saltKey{}).(string)
	return salt
}

func (e *Engine) open(ctx context.Context, prompt []int32, background bool) (*Sequence, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	background = background || InBackground(ctx)
	if err := e.setup.bounds.checkTokens(0, prompt); err != nil {
		return nil, err
	}
	s := newSequence(e.setup, e.box, slices.Clone(prompt), background, kv.NewSalt(Salt(ctx)))
	if err := e.box.enter(1, s); err != nil {
		return nil, err
	}
	s.closeWith(ctx)
	return s, nil
}

// Run steps until ctx ends, then stops all sequences with ErrClosed and
// returns nil. It parks when there is no work. A step that fails or panics
// stops all sequences with a *FailedError, which Run returns.
func (e *Engine) Run(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			e.loop.stop(ErrClosed)
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
func (e *Engine) Step() (StepStats, error) { return e.loop.run() }

// Drain refuses new sequences and returns when the open ones have been closed or ctx ends.
func (e *Engine) Drain(ctx context.Context) error {
	select {
	case <-e.box.drain():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Failed returns the failure that has stopped the engine; nil: none has. It may be
// called by any goroutine.
func (e *Engine) Failed() *FailedError {
	var failed *FailedError
	_ = errors.As(e.box.stopped(), &failed)
	return failed
}
