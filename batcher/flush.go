package batcher

import (
	"slices"
	"time"
)

// Waking a reader costs more than computing a token does where tokens take a
// tenth of a millisecond: its goroutine, and the client behind it, use the
// processors that the next step needs. So readers are woken immediately for the
// first and the last token, and every few milliseconds for those between.

// flushState is when a sequence's reader is woken.
type flushState struct {
	woken     time.Time // when the reader was, last
	unflushed bool      // it is among delivery.unflushed
}

// announce wakes the reader of s for its new tokens, now or in flush. Locked.
func (d *delivery) announce(s *Sequence, now time.Time) {
	o := &s.request
	switch {
	case s.err != nil || o.kind == nothing || s.stalled:
	case o.params.FlushEvery > 0:
		if len(s.content.unread) < o.params.FlushEvery {
			return
		}
	case now.Sub(s.task.flush.woken) < d.opt.FlushInterval && len(s.content.unread) <= d.opt.Unread/4: // the reader shall not be far behind
		if !s.task.flush.unflushed {
			s.task.flush.unflushed = true
			d.unflushed = append(d.unflushed, s)
		}
		return
	}
	s.task.flush.woken = now
	s.cond.Broadcast()
}

// flush wakes the readers that would have to wait for too long if they were not
// woken before a step of n tokens, which takes so many seconds; all of them
// before no step.
func (d *delivery) flush(n int, seconds float64) {
	if len(d.unflushed) == 0 {
		return
	}
	now := d.opt.Now()
	end := now.Add(time.Duration(seconds * float64(time.Second)))
	d.unflushed = slices.DeleteFunc(d.unflushed, func(s *Sequence) bool {
		if n > 0 && end.Sub(s.task.flush.woken) < d.opt.FlushInterval {
			return false
		}
		s.task.flush.woken, s.task.flush.unflushed = now, false
		s.cond.Broadcast()
		return true
	})
}
