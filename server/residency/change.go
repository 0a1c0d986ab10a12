package residency

import (
	"context"
	"fmt"
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
	if err := s.refused(e); err != nil {
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
	next, err := s.successors(sources, residents)
	if err != nil {
		return err
	}
	pinned := s.pin(next, sources)
	for _, e := range next {
		if err := s.hasCome(ctx, e); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.unpin(pinned)
			s.drop(next, s.entries)
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.entries
	s.entries = next
	if err := s.rebuild(); err != nil {
		s.entries = before
		s.unpin(pinned)
		s.drop(next, before)
		return err
	}
	for i, e := range next { // of those that stay, what may change
		e.Source, e.Pinned = sources[i], sources[i].Pinned || i == 0
		if e.resident != nil && e.leases == 0 && e.timer == nil && e.keepAlive(s.opt.KeepAlive) > 0 {
			s.idle(e)
		}
	}
	s.drop(before, next)
	s.tell()
	return nil
}

// pin has the entries of pinned sources stay in memory from now on: none makes room for the next.
// It returns those that were not pinned before.
func (s *Set) pin(next []*entry, sources []Source) (pinned []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range next {
		if (sources[i].Pinned || i == 0) && !e.Pinned {
			e.Pinned = true
			e.rest()
			pinned = append(pinned, e)
		}
	}
	return pinned
}

// unpin has entries go again when nobody asks for them. It needs mu.
func (s *Set) unpin(pinned []*entry) {
	for _, e := range pinned {
		if e.Pinned = false; e.resident != nil && e.leases == 0 && !e.going {
			s.idle(e)
		}
	}
}

// drop takes entries out of the set, except the ones among others. It ends the loading of one, and a model in
// memory goes when its requests have ended. It needs mu.
func (s *Set) drop(entries, others []*entry) {
	for _, e := range entries {
		if slices.Contains(others, e) {
			continue
		}
		e.Pinned, e.dropped = false, true
		if e.load != nil {
			e.load.cancel()
		}
		if e.resident != nil && !e.stays() {
			s.dropped = append(s.dropped, e)
			s.let(e)
		}
	}
}

// successors returns the entries of sources, old ones where they are the same.
func (s *Set) successors(sources []Source, residents map[string]*Resident) ([]*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next []*entry
	names := map[string]bool{}
	for i, src := range sources {
		for _, name := range append([]string{src.Name}, src.Aliases...) {
			if names[name] || name == "" || name == registry.DefaultName {
				return nil, fmt.Errorf("residency: a model cannot be named %q, or two are", name)
			}
			names[name] = true
		}
		at := slices.IndexFunc(s.entries, func(e *entry) bool { return e.Name == src.Name })
		if at >= 0 && s.entries[at].Key == src.Key {
			next = append(next, s.entries[at])
			continue
		}
		e := &entry{Source: src, resident: residents[src.Name]}
		e.Pinned = src.Pinned || i == 0
		next = append(next, e)
	}
	return next, nil
}

// hasCome loads a model that must be in memory, unless it is.
func (s *Set) hasCome(ctx context.Context, e *entry) error {
	s.mu.Lock()
	if !e.Pinned || e.resident != nil && !e.leaving && !e.going {
		s.mu.Unlock()
		return nil
	}
	l := s.begin(e)
	l.asked = true
	s.mu.Unlock()
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.asked = false; l.waiters == 0 {
			l.cancel()
		}
		return context.Cause(ctx)
	}
}
