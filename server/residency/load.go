package residency

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/server/registry"
)

// retryAfter is the time for which requests for a model that could not be loaded get the error of the last
// attempt, before they cause another.
const retryAfter = 5 * time.Second

// begin returns the load of a model, which it begins unless one is under way. It needs mu.
func (s *Set) begin(e *entry) *load {
	if l := e.load; l != nil && l.ctx.Err() == nil {
		return l
	}
	l := &load{done: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	before, src := e.load, e.Source // before: one that everybody has left
	e.load = l
	s.jobs.Go(func() {
		defer l.cancel()
		if before != nil {
			<-before.done
		}
		select {
		case s.turn <- struct{}{}: // until the next one can see what has come
			defer func() { <-s.turn }()
		case <-l.ctx.Done():
		}
		r, err := s.fetch(e, &src, l)
		s.came(e, l, r, err)
	})
	return l
}

// fetch makes room and loads a model.
func (s *Set) fetch(e *entry, src *Source, l *load) (r *Resident, err error) {
	err = parallel.Try(func() (err error) {
		if err = s.makeRoom(l.ctx, e, src); err != nil {
			return err
		}
		if s.opt.Changed != nil {
			s.opt.Changed(src.Name, Loading, nil)
		}
		r, err = src.Load(l.ctx, func(done, total int64) { l.read.Store(done); l.total.Store(total) })
		if err == nil && r.Fingerprint == "" {
			r.Fingerprint, err = registry.Fingerprint(r.Model)
		}
		return err
	})
	switch {
	case err == nil:
		return r, nil
	case r != nil:
		_ = r.unload() // the load's error is told
	}
	return nil, cmp.Or(l.ctx.Err(), err)
}

// came ends a load, and gives each who waits for it a lease. What comes of a load that has been
// cancelled goes again: nobody waits for it, and its source may have left the set.
func (s *Set) came(e *entry, l *load, r *Resident, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		e.resident = r
		if err = l.ctx.Err(); err == nil && slices.Contains(s.entries, e) { // else Update's
			err = s.rebuild() // an error: two models want one name
		}
		if err != nil {
			e.resident = nil
			s.mu.Unlock()
			_ = r.unload() // the load's error is told
			s.mu.Lock()
		}
	}
	if e.load == l {
		e.load = nil
	}
	var room *RoomError
	switch {
	case err == nil:
		e.failed, e.leases = nil, e.leases+l.waiters
		if e.leases == 0 && e.keepAlive(s.opt.KeepAlive) != 0 { // else it stays for the first request
			s.idle(e)
		}
	case l.ctx.Err() != nil && s.closed:
		err = ErrClosed
	case l.ctx.Err() != nil || errors.As(err, &room):
	default:
		e.failed = &LoadError{Model: e.Name, Err: err, Retry: time.Now().Add(retryAfter)}
		err = e.failed
	}
	l.err = err
	close(l.done)
	s.changes.ring()
	if s.opt.Changed != nil && l.ctx.Err() == nil {
		status := Loaded
		if err != nil {
			status = Unloaded
		}
		s.mu.Unlock()
		s.opt.Changed(e.Name, status, err)
		s.mu.Lock()
	}
}

// makeRoom unloads models until e fits, and waits for those that must end their requests.
func (s *Set) makeRoom(ctx context.Context, e *entry, src *Source) error {
	for ctx.Err() == nil {
		s.mu.Lock()
		changed := s.changes.rung
		s.mu.Unlock()
		need, room := int64(0), int64(0)
		if s.opt.Room != nil {
			var err error
			if need, err = src.Need(); err != nil {
				return err
			}
			room = s.opt.Room()
		}
		s.mu.Lock()
		switch busy := s.busyBefore(e); {
		case busy:
		case need <= room:
			s.mu.Unlock()
			return nil
		case changed != s.changes.rung: // there may be more by now
		case need > room+s.freeable():
			room += s.freeable()
			s.mu.Unlock()
			return &RoomError{Model: src.Name, Need: need, Room: room}
		default:
			v := s.oldest()
			v.leaving = true
			if v.leases == 0 {
				s.unload(v)
				s.mu.Unlock()
				continue
			}
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
