// Package budget bounds the cost of a grammar: steps of work while it is compiled and while it finds what may follow,
// and bytes for as long as it is kept. Work and memory are charged first:
//
//	Work(steps) ──▶ error: too much, or whoever asked has gone
//	Hold(bytes) ──▶ error: too much          Release(bytes)
//
// A step is about as much as a look into a table. Bytes are estimates of the heap's growth; tests compare them with it.
package budget

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// The bounds of a grammar that nobody else bounds.
const (
	Steps = 1 << 24  // of one task, such as to compile
	Bytes = 64 << 20 // of one grammar
)

// Error says which bound a grammar has met.
type Error struct {
	Task  string // that met a bound of steps; empty: it is the bound of bytes
	Limit int64
}

func (e *Error) Error() string {
	if e.Task != "" {
		return fmt.Sprintf("it is too complex: to %s takes more than %d steps", e.Task, e.Limit)
	}
	if e.Limit < 1<<20 {
		return fmt.Sprintf("it is too large: it needs more than %d KiB of memory", e.Limit>>10)
	}
	return fmt.Sprintf("it is too large: it needs more than %d MiB of memory", e.Limit>>20)
}

// ErrBusy says that other grammars have the bytes: nothing is wrong with this one.
var ErrBusy = errors.New("grammar: the grammars in use take all the memory for grammars")

// Account gives several budgets their bytes. Take is told of bytes before
// they are used and of ones that are not used any more, n < 0, and may refuse the
// former, such as with ErrBusy. It is called by any number of goroutines.
type Account interface{ Take(n int64) error }

// portion bytes are drawn from a budget's account at once.
const portion = 64 << 10

// Budget bounds one grammar's steps and bytes. Steps are for one goroutine at a time, bytes
// for any number.
type Budget struct {
	bytes   int64 // that it may hold
	held    atomic.Int64
	drawn   atomic.Int64 // from the account: held in whole portions
	account Account

	ctx   context.Context
	task  string
	steps int64  // that the task may take
	left  int64  // of them
	check int64  // left at the next look around
	rest  func() // called then, or nil
	err   error  // of the task
}

// New makes a budget of bytes at most, drawn from account unless that is nil, whose first
// task is to compile in at most steps, until ctx ends.
func New(ctx context.Context, steps, bytes int64, account Account) *Budget {
	b := &Budget{bytes: bytes, account: account}
	b.Begin(ctx, "compile it", steps, nil)
	return b
}

// Default returns a budget of Steps and Bytes.
func Default() *Budget { return New(context.Background(), Steps, Bytes, nil) }

// Begin begins another task, named by a verb, which may take steps at most, until ctx ends.
// rest, if it is not nil, is called now and then.
func (b *Budget) Begin(ctx context.Context, task string, steps int64, rest func()) {
	b.ctx, b.task, b.steps, b.left, b.rest, b.err = ctx, task, steps, steps, rest, nil
	b.check = steps - lookAfter
}

// OnRest calls rest now and then during the task at hand.
func (b *Budget) OnRest(rest func()) { b.rest = rest }

// lookAfter steps are done between checks of other work.
const lookAfter = 1 << 12

// Fail ends the task at hand with err, for which rest may have a reason.
func (b *Budget) Fail(err error) { b.err = err }

// Work charges steps before they are done. Its error ends the task: an *Error, the
// context's, or one that Fail was given.
func (b *Budget) Work(steps int) error {
	if b.err != nil {
		return b.err
	}
	b.left -= int64(steps)
	if b.left > b.check && b.left >= 0 {
		return nil
	}
	return b.look()
}

// look sees whether the task is to go on.
func (b *Budget) look() error {
	b.check = b.left - lookAfter
	if b.rest != nil {
		b.rest()
	}
	switch {
	case b.err != nil:
	case b.ctx.Err() != nil:
		b.err = context.Cause(b.ctx)
	case b.left < 0:
		b.err = &Error{Task: b.task, Limit: b.steps}
	}
	return b.err
}

// Apart begins a part of the task that may fail alone. What it holds is given back by end,
// and what it has done is charged to b.
func (b *Budget) Apart() (part *Budget, end func()) {
	part = &Budget{bytes: b.bytes, account: b.account}
	part.Begin(b.ctx, b.task, max(b.left, 0), b.rest)
	part.steps = b.steps // as errors say it
	spent := part.left
	return part, func() {
		part.Release(int(part.Held()))
		_ = b.Work(int(spent - part.left))
	}
}

// Spent returns how many steps the task at hand has taken.
func (b *Budget) Spent() int64 { return b.steps - b.left }

// Err returns why the task at hand has ended too early, if it has.
func (b *Budget) Err() error { return b.err }

// Hold charges bytes before they are kept. It returns an *Error or the account's error;
// the bytes count all the same, until they are released.
func (b *Budget) Hold(bytes int) error {
	held := b.held.Add(int64(bytes))
	err := b.draw(held)
	if held > b.bytes {
		return &Error{Limit: b.bytes}
	}
	return err
}

// Release gives back bytes.
func (b *Budget) Release(bytes int) { _ = b.draw(b.held.Add(-int64(bytes))) }

// draw takes from the account what is held, in whole portions.
func (b *Budget) draw(held int64) error {
	want := (held + portion - 1) / portion * portion
	if b.account == nil || want == b.drawn.Load() {
		return nil
	}
	return b.account.Take(want - b.drawn.Swap(want))
}

// Held returns how many bytes are held.
func (b *Budget) Held() int64 { return b.held.Load() }

// Bytes returns how many bytes may be held.
func (b *Budget) Bytes() int64 { return b.bytes }
