package residency

import (
	"context"
	"slices"

	"github.com/lutra-lm/lutra/server/registry"
)

// Load begins to load a model that nobody has asked for yet. Errors: *registry.NotFoundError,
// ErrLoaded, *LoadError, ErrClosed.
func (s *Set) Load(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(name, nil)
	switch {
	case e == nil:
		return &registry.NotFoundError{Name: name}
	case e.load != nil || e.resident != nil && !e.leaving && !e.going:
		return ErrLoaded
	}
	if err := e.refused(s.closed); err != nil {
		return err
	}
	s.begin(e).asked = true
	return nil
}

// Unload takes a model away, at once or when its requests have ended: it takes no more. Errors:
// *registry.NotFoundError, ErrAbsent, ErrPinned.
func (s *Set) Unload(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(name, nil)
	switch {
	case e == nil:
		return &registry.NotFoundError{Name: name}
	case e.load != nil && e.load.waiters == 0: // that Load has begun
		e.load.cancel()
		return nil
	case e.resident == nil:
		return ErrAbsent
	case e.stays():
		return ErrPinned
	}
	s.let(e)
	return nil
}

// let has a model go when its requests have ended. It needs mu.
func (s *Set) let(e *entry) {
	if e.resident == nil {
		return
	}
	if e.leaving = true; e.leases == 0 {
		s.unload(e)
	}
}

// Update has the set consist of these sources. What is the same stays as it is; what is new and
// pinned is loaded before anything goes. After an error the set is as it was. residents are
// models in memory by the names of their sources. Update is not for two goroutines at once.
func (s *Set) Update(ctx context.Context, sources []Source, residents map[string]*Resident) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next, err := s.successors(sources, residents)
	if err != nil {
		return err
	}
	u := &update{Set: s, before: s.entries, next: next, pinned: s.pin(next, sources)}
	for _, e := range next {
		if err := u.hasCome(ctx, e); err != nil {
			u.revert()
			return err
		}
	}
	s.entries = next
	if err := s.rebuild(); err != nil {
		s.entries = u.before
		u.revert()
		return err
	}
	for i, e := range next { // of those that stay, what may change
		e.Source, e.Pinned = sources[i], sources[i].Pinned || i == 0
		if e.resident != nil && e.leases == 0 && e.timer == nil && e.keepAlive(s.opt.KeepAlive) > 0 {
			s.idle(e)
		}
	}
	u.drop(u.before, next)
	s.changes.ring()
	return nil
}

// update is one change of the sources. Its methods need mu.
type update struct {
	*Set
	before, next []*entry
	pinned       []*entry // from now on
}

// revert has the set be as it was.
func (u *update) revert() {
	for _, e := range u.pinned { // it goes again when nobody asks for it
		if e.Pinned = false; e.resident != nil && e.leases == 0 && !e.going {
			u.idle(e)
		}
	}
	u.drop(u.next, u.before)
}

// drop takes entries out of the set, except the ones among others. It ends the loading of one, and a model in
// memory goes when its requests have ended.
func (u *update) drop(entries, others []*entry) {
	for _, e := range entries {
		if slices.Contains(others, e) {
			continue
		}
		e.Pinned, e.dropped = false, true
		if e.load != nil {
			e.load.cancel()
		}
		if e.resident != nil && !e.stays() {
			u.dropped = append(u.dropped, e)
			u.let(e)
		}
	}
}

// hasCome loads a model that must be in memory, unless it is. It gives up mu meanwhile.
func (u *update) hasCome(ctx context.Context, e *entry) error {
	if !e.Pinned || e.resident != nil && !e.leaving && !e.going {
		return nil
	}
	l := u.begin(e)
	l.asked = true
	u.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	u.mu.Lock()
	select {
	case <-l.done:
		return l.err
	default:
	}
	if l.asked = false; l.waiters == 0 {
		l.cancel()
	}
	return context.Cause(ctx)
}
