// Package cpulimit bounds how many goroutines do heavy work while the engines need the
// cores: reading long requests, rendering and encoding long prompts.
//
//	Enter ──▶ work ──Pause──▶ work ──▶ leave
//
// Waiting goroutines are served in order, and long work lets others go first now and
// then: short work never waits for the end of long work.
//
// Together they take a quarter of the process's cores. With fewer than four cores there
// is one place, which rests after each piece of work so that a quarter of the time is
// used.
package cpulimit

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limiter lets a number of goroutines work at once.
type Limiter struct {
	places *semaphore.Weighted
	rest   float64       // how long a place rests, as a multiple of the time worked there
	owed   time.Duration // of rest; with rest, there is one place, and its holder's this is
}

// New makes a limiter for a number of cores.
func New(cores int) *Limiter {
	const share = 4 // one core in four
	l := &Limiter{places: semaphore.NewWeighted(int64(max(1, cores/share)))}
	l.rest = max(0, share/float64(cores)-1)
	return l
}

// shared is the process's.
var shared = New(runtime.GOMAXPROCS(0))

type placeKey struct{}

// Enter waits for a place, which is taken until leave is called. Within the
// context that it returns, further calls of Enter take the same place. Its
// error is ctx's.
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
	if ctx.Value(placeKey{}) != nil {
		return ctx, func() {}, nil
	}
	p := &place{l: l}
	if err := p.take(ctx); err != nil {
		return ctx, func() {}, err
	}
	return context.WithValue(ctx, placeKey{}, p), p.leave, nil
}

// Pause lets those who wait go first. Long work calls it every few
// milliseconds. It fails when ctx has ended, and then the place is lost;
// outside of a place it does nothing else.
func Pause(ctx context.Context) error {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		return context.Cause(ctx)
	}
	p.leave()
	return p.take(ctx)
}

// place is one goroutine's.
type place struct {
	l     *Limiter
	taken bool
	since time.Time
}

// leastRest is the shortest rest that is worth waking up from.
const leastRest = 5 * time.Millisecond

func (p *place) take(ctx context.Context) error {
	if err := p.l.places.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	if p.l.owed >= leastRest {
		select {
		case <-time.After(p.l.owed):
			p.l.owed = 0
		case <-ctx.Done():
			p.l.places.Release(1)
			return context.Cause(ctx)
		}
	}
	p.taken, p.since = true, time.Now()
	return nil
}

func (p *place) leave() {
	if !p.taken {
		return
	}
	if p.taken = false; p.l.rest > 0 {
		p.l.owed += time.Duration(p.l.rest * float64(time.Since(p.since)))
	}
	p.l.places.Release(1)
}
