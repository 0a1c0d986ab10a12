package cpulimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// queue notices when places are waited for that nobody gives back. It looks whenever somebody
// begins to wait or gives up, and whenever it is asked.
type queue struct {
	moves atomic.Int64 // places that were taken or left

	mu      sync.Mutex // guards what follows
	waiting int        // goroutines
	seen    int64      // moves, at the last look
	still   time.Duration
	last    time.Time // look
}

const (
	// stuckAfter is longer than any piece of work goes on without a pause.
	stuckAfter = 30 * time.Second
	// mostBetween bounds how much the time between two looks counts: a process that was stopped
	// meanwhile has not waited.
	mostBetween = 10 * time.Second
)

// moved notes that a place was taken or left.
func (q *queue) moved() { q.moves.Add(1) }

// enter counts a goroutine that waits until leave is called.
func (q *queue) enter() (leave func()) {
	q.look(1)
	return func() { q.look(-1) }
}

// stuck reports whether somebody has waited for long and nothing has moved.
func (q *queue) stuck() bool { return q.look(0) >= stuckAfter }

// look returns how long nothing has moved while somebody waited, before more goroutines wait.
func (q *queue) look(more int) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, moves := time.Now(), q.moves.Load()
	switch {
	case moves != q.seen:
		q.seen, q.still = moves, 0
	case q.waiting > 0:
		q.still += min(max(0, now.Sub(q.last)), mostBetween)
	}
	q.last = now
	q.waiting += more
	return q.still
}
