package cpulimit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ErrBusy says that other requests' long work has taken all the time that this one's could wait for.
var ErrBusy = errors.New("cpulimit: the work of other requests takes all the time beside the engines")

const (
	// shortWork is the time of a request's work after which its work is long.
	shortWork = 50 * time.Millisecond
	// muchWork is the time of a request's work after which all others' work goes first.
	muchWork = 8 * time.Second
	// mostWait is the time that a request waits, all in all, for others' long work. One that has lived
	// for more than twice as long waits for half of its life.
	mostWait = 30 * time.Second
)

// RetryAfter is when to try again after ErrBusy.
const RetryAfter = mostWait

// requests counts the requests, for their order.
var requests atomic.Uint64

// request holds what the places of a request share.
type request struct {
	number uint64 // in the order in which they came
	began  time.Time

	mu     sync.Mutex    // guards what follows
	worked time.Duration // in places
	waited time.Duration // in line
}

func newRequest() *request { return &request{number: requests.Add(1), began: time.Now()} }

type requestKey struct{}

// Request returns a context within which all work is one request's. Elsewhere each call of Enter begins
// a request of its own.
func Request(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, newRequest())
}

// requestOf returns the request of a context.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return newRequest()
}

// work adds time in a place.
func (r *request) work(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.worked += d
}

// wait adds time in line.
func (r *request) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waited += d
}

// rank returns how the request's work goes on: 0, short work, needs not wait in line; lower ranks go
// first. left is how long it still waits.
func (r *request) rank() (rank int, left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.worked >= muchWork:
		rank = 2
	case r.worked >= shortWork:
		rank = 1
	}
	return rank, max(mostWait, time.Since(r.began)/2) - r.waited
}

// line lets the long work of a few requests at once compete with short work for places: what is begun
// first ends first. Were all long work to take turns, it would all end late.
type line struct {
	mu      sync.Mutex // guards what follows
	free    int        // how many may still leave the line
	waiting []*inLine
}

// inLine is a goroutine's place in line.
type inLine struct {
	rank   int
	number uint64
	turn   chan struct{} // closed when it has left the line, and counts among those that have
}

// enter waits in line for a request's work of a rank, for left at most.
func (l *line) enter(ctx context.Context, r *request, rank int, left time.Duration) error {
	l.mu.Lock()
	if l.free > 0 {
		l.free--
		l.mu.Unlock()
		return nil
	}
	me := &inLine{rank, r.number, make(chan struct{})}
	l.waiting = append(l.waiting, me)
	l.mu.Unlock()

	began := time.Now()
	late := time.NewTimer(left)
	defer late.Stop()
	var err error
	select {
	case <-me.turn:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
		err = ErrBusy
	}
	r.wait(time.Since(began))
	if err != nil {
		l.giveUp(me)
	}
	return err
}

// giveUp takes a goroutine out of the line.
func (l *line) giveUp(me *inLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, me); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.next() // it was its turn just now
}

// leave lets the next one go on.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next()
}

// waits reports whether work waits that goes before work of a rank and a request's number.
func (l *line) waits(rank int, number uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.waiting, func(w *inLine) bool { return w.before(rank, number) })
}

// before reports whether it goes before work of a rank and a request's number.
func (w *inLine) before(rank int, number uint64) bool {
	return w.rank < rank || w.rank == rank && w.number < number
}

// next gives what has become free to whoever goes first. The caller has locked l.
func (l *line) next() {
	if len(l.waiting) == 0 {
		l.free++
		return
	}
	first := 0
	for i, w := range l.waiting {
		if b := l.waiting[first]; w.before(b.rank, b.number) {
			first = i
		}
	}
	close(l.waiting[first].turn)
	l.waiting = slices.Delete(l.waiting, first, first+1)
}
