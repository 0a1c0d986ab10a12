package residency

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/server/registry"
)

// entry is a source with what has become of it. Set.mu guards it.
type entry struct {
	Source
	resident *Resident       // nil: it is not in memory
	cards    []registry.Card // of its names, as they were when it was last in memory
	leases   int
	used     uint64         // when it was last leased, by Set.clock
	leaving  bool           // it takes no more leases, and goes with the last
	going    bool           // it is being unloaded
	dropped  bool           // it is no source of the set any more: what is in memory goes with the last lease
	keep     *time.Duration // in place of Source.KeepAlive, as the latest request has it
	expires  time.Time
	timer    *time.Timer // until then
	load     *load       // under way
	failed   *LoadError  // of the last load
}

// load is an attempt to load a model.
type load struct {
	ctx     context.Context
	cancel  context.CancelFunc
	waiters int
	asked   bool          // it goes on without waiters
	done    chan struct{} // closed when err is there
	err     error

	read, total atomic.Int64
}

// progress returns which part of the file has been read.
func (l *load) progress() float64 {
	if total := l.total.Load(); total > 0 {
		return min(1, float64(l.read.Load())/float64(total))
	}
	return 0
}

// status tells where the model is.
func (e *entry) status() Status {
	switch {
	case e.load != nil:
		return Loading
	case e.resident != nil:
		return Loaded
	}
	return Unloaded
}

// stays tells whether the model may not go.
func (e *entry) stays() bool { return e.Pinned || e.resident != nil && e.resident.Unload == nil }

// task returns what the model does, as far as that is known.
func (e *entry) task() string {
	if e.resident != nil {
		return e.resident.Task()
	}
	return e.About.Task
}

// keepAlive returns how long the model stays after its last request; negative: as long as
// there is room.
func (e *entry) keepAlive(otherwise time.Duration) time.Duration {
	switch {
	case e.stays():
		return -1
	case e.keep != nil:
		return *e.keep
	case e.KeepAlive != nil:
		return *e.KeepAlive
	}
	return otherwise
}

// refused says why a model is not loaded now; nil: it is.
func (e *entry) refused(closed bool) error {
	switch {
	case closed:
		return ErrClosed
	case e.load == nil && e.failed != nil && time.Now().Before(e.failed.Retry):
		return e.failed
	}
	return nil
}
