// Package cpulimit bounds how many goroutines do heavy work while the engines need the
// cores: reading long requests, rendering and encoding long prompts.
//
//	Enter ──▶ work ──Pause──▶ work ──▶ leave
//
// Waiting goroutines are served in order, and long work lets others go first now and
// then: short work never waits for the end of long work. Long work of several requests is done one
// request after the other, in the order in which they came. Requests that have had much time come
// after all others. Work that would wait in line for too long fails with ErrBusy.
//
// Together they take a quarter of the process's cores. With fewer than four cores there
// is one place, which rests after each piece of work so that a quarter of the time is
// used. The rest passes whether or not anybody waits for it, and is bounded however long a
// piece took.
//
// A place is for computing. Whoever has one waits for nothing that another goroutine or
// process must do first: no semaphore, no channel, no lock that is held during long work, no
// network. Two that wait for each other, one for the lock and one for a place, would hold up
// all work beside the engines. OnWait finds whoever breaks this.
package cpulimit

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limiter lets a number of goroutines work at once.
type Limiter struct {
	places *semaphore.Weighted
	rest   float64 // how long a place rests, as a multiple of the time worked there
	queue  queue
	line   *line // in which long work waits before it waits for a place; nil: there is none

	// With rest there is one place, and these are its holder's.
	owed time.Duration // of rest, when the place was left
	left time.Time
}

const share = 4 // one core in four

// places returns how many places there are for a number of cores.
func places(cores int) int { return max(1, cores/share) }

// New makes a limiter for a number of cores, with no bound on waiting.
func New(cores int) *Limiter {
	l := &Limiter{places: semaphore.NewWeighted(int64(places(cores)))}
	l.rest = max(0, share/float64(cores)-1)
	return l
}

// withLine adds a line for long work, one request for each place.
func (l *Limiter) withLine(cores int) *Limiter {
	l.line = &line{free: places(cores)}
	return l
}

// shared is the process's.
var shared = New(runtime.GOMAXPROCS(0)).withLine(runtime.GOMAXPROCS(0))

// Formats limits the work of compiling formats and of finding their masks. It has places of its own,
// since that work takes them while it has locked a grammar. It has no line, since the owner of that
// lock must not give up in the middle.
var Formats = New(runtime.GOMAXPROCS(0))

// Stuck reports whether work waits for places that nobody gives back.
func Stuck() bool { return shared.queue.stuck() || Formats.queue.stuck() }

// OnWait, unless it is nil, is called when whoever has a place asks when its context ends, as
// everything does that waits. Tests set it before anything else runs.
var OnWait func()

type placeKey struct{}

// Enter waits for a place, which is taken until leave is called. Within the
// context that it returns, further calls of Enter take the same place. Its
// error is ctx's, or ErrBusy.
func Enter(ctx context.Context) (inside context.Context, leave func(), err error) {
	return shared.Enter(ctx)
}

// longText is as much, in bytes, as is read, rendered or encoded in a moment.
const longText = 16 << 10

// EnterForText calls Enter for work on a text of size bytes, if it is long. Short texts need
// no place.
func EnterForText(ctx context.Context, size int) (inside context.Context, leave func(), err error) {
	if size <= longText {
		return ctx, func() {}, nil
	}
	return Enter(ctx)
}

// Enter does as the package's Enter, for this limiter.
func (l *Limiter) Enter(ctx context.Context) (inside context.Context, leave func(), err error) {
	if holds(ctx) != nil {
		return ctx, func() {}, nil
	}
	p := &place{l: l, r: requestOf(ctx)}
	if err := p.take(ctx); err != nil {
		return ctx, func() {}, err
	}
	return within{ctx, p}, p.leave, nil
}

// Pause lets those who wait go first. Long work calls it every few
// milliseconds. It fails when ctx has ended, or with ErrBusy, and then the place is lost and the
// work must end; outside of a place it does nothing else.
func Pause(ctx context.Context) error {
	p := holds(ctx)
	if p == nil {
		return context.Cause(ctx)
	}
	p.rest()
	return p.take(ctx)
}

// within is the context of whoever has a place.
type within struct {
	context.Context
	p *place
}

// Value implements context.Context.
func (c within) Value(key any) any {
	if key == (placeKey{}) {
		return c.p
	}
	return c.Context.Value(key)
}

// Done implements context.Context.
func (c within) Done() <-chan struct{} {
	if OnWait != nil && c.p.taken.Load() {
		OnWait()
	}
	return c.Context.Done()
}

// holds returns the place that is taken within ctx; nil: none is.
func holds(ctx context.Context) *place {
	if p, ok := ctx.Value(placeKey{}).(*place); ok && p.taken.Load() {
		return p
	}
	return nil
}

// place is one goroutine's.
type place struct {
	l      *Limiter
	r      *request
	taken  atomic.Bool
	since  time.Time
	inLine bool // others' long work waits for this one
}

const (
	// leastRest is the shortest rest that is worth waking up from.
	leastRest = 5 * time.Millisecond
	// longestPiece bounds the piece of work for which a place rests, since the process may have been
	// stopped meanwhile.
	longestPiece = 250 * time.Millisecond
)

func (p *place) take(ctx context.Context) error {
	l := p.l
	if ctx.Err() != nil {
		p.leaveLine()
		return context.Cause(ctx)
	}
	if err := p.queue(ctx); err != nil {
		p.leaveLine()
		return err
	}
	l.queue.moved()
	if l.rest > 0 {
		rest := l.resting()
		if rest >= leastRest {
			select {
			case <-time.After(rest):
			case <-ctx.Done():
				l.places.Release(1) // the rest goes on
				p.leaveLine()
				return context.Cause(ctx)
			}
			rest = 0
		}
		l.owed = rest
	}
	p.since = time.Now()
	p.taken.Store(true)
	return nil
}

// queue waits in line, if the request's work is long, and then for a place.
func (p *place) queue(ctx context.Context) error {
	l := p.l
	if l.line != nil {
		rank, left := p.r.rank()
		if p.inLine && l.line.waits(rank, p.r.number) {
			p.leaveLine()
		}
		if rank > 0 && !p.inLine {
			leave := l.queue.enter()
			err := l.line.enter(ctx, p.r, rank, left)
			leave()
			if err != nil {
				return err
			}
			p.inLine = true
		}
	}
	if l.places.TryAcquire(1) {
		return nil
	}
	leave := l.queue.enter()
	defer leave()
	if err := l.places.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// leaveLine lets the next long work go on.
func (p *place) leaveLine() {
	if p.inLine {
		p.inLine = false
		p.l.line.leave()
	}
}

// resting returns how much of the rest is yet to come.
func (l *Limiter) resting() time.Duration {
	return max(0, l.owed-max(0, time.Since(l.left)))
}

func (p *place) leave() {
	p.rest()
	p.leaveLine()
}

// rest gives the place back, but not what others wait for in line.
func (p *place) rest() {
	if !p.taken.Swap(false) {
		return
	}
	l := p.l
	l.queue.moved()
	worked := min(time.Since(p.since), longestPiece)
	p.r.work(worked)
	if l.rest > 0 {
		l.owed, l.left = l.owed+time.Duration(l.rest*float64(worked)), time.Now()
	}
	l.places.Release(1)
}
