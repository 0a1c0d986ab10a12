package residency

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lutra-lm/lutra/server/registry"
)

// Set is the models that a server can answer with. Its methods may be called by any
// goroutine.
type Set struct {
	opt Options

	ctx  context.Context // of loads
	stop context.CancelFunc
	jobs sync.WaitGroup // loads, and unloads that no caller does
	turn chan struct{}  // holds one element while a model loads

	mu sync.Mutex
	roster
	waiting int // requests that wait for loads
	changes bell
	closed  bool
}

// New makes a set of no models.
func New(opt Options, settings *registry.Settings) *Set {
	s := &Set{opt: opt, roster: roster{settings: settings}, turn: make(chan struct{}, 1), changes: bell{make(chan struct{})}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Of makes a set of models that are in memory as long as the process.
func Of(settings *registry.Settings, served ...registry.Served) (*Set, error) {
	s := New(Options{}, settings)
	for i := range served {
		s.entries = append(s.entries, &entry{Source: Source{Name: served[i].Model.Name, Aliases: served[i].Aliases, Adapters: adaptersOf(&served[i]), Pinned: true}, resident: &Resident{Served: served[i], Bytes: served[i].Model.Config.Bytes}})
	}
	return s, s.rebuild()
}

// bell wakes those who wait for a change.
type bell struct{ rung chan struct{} }

// ring wakes whoever waits for rung to be closed.
func (b *bell) ring() {
	close(b.rung)
	b.rung = make(chan struct{})
}

// Lease holds a model in memory until Release.
type Lease struct {
	Registry *registry.Registry // of the models that are in memory, this one too
	set      *Set
	entry    *entry // nil: nothing is held
	once     sync.Once
}

// Wait is told of a request that waits: progress returns which part of the model has been read.
type Wait func(model string, progress func() float64)

// Hold leases the model of a name, which a preset or another word may follow after a "+", and
// waits until it is in memory. Without a name, or by "default", it is the first model, or with
// tasks the first that does one of them, tried in that order. wait, unless it is nil, is called
// before it waits. Errors: *registry.NotFoundError, *LoadError, *RoomError, ErrQueue, ErrClosed,
// and the cause of the end of ctx.
func (s *Set) Hold(ctx context.Context, name string, wait Wait, tasks ...string) (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var waits atomic.Pointer[load] // what it waits for
	for {
		e := s.find(name, tasks)
		if e == nil { // the registry has the words for it
			return &Lease{Registry: s.Registry()}, nil
		}
		if e.resident != nil && !e.leaving && !e.going {
			s.use(e, 1)
			return newLease(s, e), nil
		}
		if err := e.refused(s.closed); err != nil {
			return nil, err
		}
		if s.waiting >= s.opt.Queue {
			return nil, ErrQueue
		}
		l := s.begin(e)
		if waits.Swap(l) != nil {
			wait = nil // it has been told
		}
		err := s.await(ctx, l, func() {
			if wait != nil {
				wait(e.Name, func() float64 { return waits.Load().progress() })
			}
		})
		switch {
		case err == nil && ctx.Err() == nil && !e.dropped:
			s.use(e, 0) // it was counted when the model came
			return newLease(s, e), nil
		case err == nil:
			s.release(e)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !e.dropped { // else another source may have the name
			return nil, err
		}
	}
}

// await waits for a load and returns its error, or ctx's if that ends first. It needs mu, which it gives up
// meanwhile.
func (s *Set) await(ctx context.Context, l *load, meanwhile func()) error {
	l.waiters++
	s.waiting++
	s.mu.Unlock()
	meanwhile()
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.waiting--
	select {
	case <-l.done:
		return l.err
	default:
	}
	if l.waiters--; l.waiters == 0 && !l.asked {
		l.cancel()
	}
	return ctx.Err()
}

// newLease returns a lease that has been counted. It needs mu.
func newLease(s *Set, e *entry) *Lease { return &Lease{Registry: s.Registry(), set: s, entry: e} }

// KeepAlive has the model stay for d after its last request; negative: until room is wanted.
func (l *Lease) KeepAlive(d time.Duration) {
	if l.entry == nil {
		return
	}
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.entry.keep = &d
}

// Release ends the lease. It unloads a model that was to go.
func (l *Lease) Release() {
	if l.entry == nil {
		return
	}
	l.once.Do(func() {
		l.set.mu.Lock()
		defer l.set.mu.Unlock()
		l.set.release(l.entry)
	})
}

// release ends a lease of e. It needs mu.
func (s *Set) release(e *entry) {
	if e.leases--; e.leases == 0 {
		s.idle(e)
	}
}

// idle says when a model without leases goes. It needs mu.
func (s *Set) idle(e *entry) {
	switch keep := e.keepAlive(s.opt.KeepAlive); {
	case e.leaving || keep == 0:
		s.unload(e)
	case keep > 0:
		e.expires = time.Now().Add(keep)
		e.timer = time.AfterFunc(keep, func() { s.expire(e) })
	}
	s.changes.ring()
}

// rest stops the clock that says when the model goes. It needs mu.
func (e *entry) rest() {
	if e.timer != nil {
		e.timer.Stop()
	}
	e.timer, e.expires = nil, time.Time{}
}

// expire unloads a model that nobody has asked for in time.
func (s *Set) expire(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.timer == nil || e.leases > 0 || time.Now().Before(e.expires) {
		return
	}
	s.unload(e)
}

// unload takes a model away that nobody has leased. It needs mu, which it gives up meanwhile.
func (s *Set) unload(e *entry) {
	if e.resident == nil || e.going || e.resident.Unload == nil || s.closed {
		return
	}
	if e.leases > 0 {
		panic(fmt.Sprintf("residency: %s is unloaded with %d leases", e.Name, e.leases))
	}
	e.rest()
	e.going, e.cards = true, s.cardsOf(e)
	if !e.dropped { // the registry has it
		if err := s.rebuild(); err != nil { // the first model stays, so there is one
			e.going = false
			return
		}
	}
	s.jobs.Add(1) // Close waits
	defer s.jobs.Done()
	s.mu.Unlock()
	err := e.resident.unload()
	if s.opt.Changed != nil {
		s.opt.Changed(e.Name, Unloaded, err)
	}
	s.mu.Lock()
	e.resident, e.going, e.leaving, e.keep = nil, false, false, nil
	s.dropped = slices.DeleteFunc(s.dropped, func(o *entry) bool { return o == e })
	s.changes.ring()
}

// Close ends loads and waits for them. Models that are in memory stay there, for their owner
// to free.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	for _, e := range s.entries {
		e.rest()
	}
	s.changes.ring()
	s.mu.Unlock()
	s.stop()
	s.jobs.Wait()
}
