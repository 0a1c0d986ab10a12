package batcher

import (
	"slices"
	"time"
)

// Waking a reader costs more than computing a token does where tokens take a
// tenth of a millisecond: its goroutine, and the client behind it, use the
// processors that the next step needs. So a reader is woken at once for what
// it waits for most, the first token and the last, and for those between so
// seldom that what has gathered is worth it, and so often that nobody notices.
//
// readership is what the step loop knows of that.
type readership struct {
	woken time.Time // when the reader was, last
	held  bool      // it is among Engine.held
}

// announce wakes the reader of s for its new tokens, now or in handOver. Locked.
func (e *Engine) announce(s *Sequence, now time.Time) {
	o := &s.order
	switch {
	case s.err != nil || o.kind == nothing || s.stalled:
	case o.params.Gather > 0:
		if len(s.unread) < o.params.Gather {
			return
		}
	case now.Sub(s.woken) < e.opt.HandOver && len(s.unread) <= e.opt.Unread/4: // the reader shall not be far behind
		if !s.held {
			s.held = true
			e.held = append(e.held, s)
		}
		return
	}
	s.woken = now
	s.cond.Broadcast()
}

// handOver wakes the readers that would have to wait for too long if they were
// not woken before a step of n tokens; all of them before no step.
func (e *Engine) handOver(n int) {
	if len(e.held) == 0 {
		return
	}
	now := e.opt.Now()
	end := now.Add(time.Duration(e.cost.Time(n) * float64(time.Second)))
	e.held = slices.DeleteFunc(e.held, func(s *Sequence) bool {
		if n > 0 && end.Sub(s.woken) < e.opt.HandOver {
			return false
		}
		s.woken, s.held = now, false
		s.cond.Broadcast()
		return true
	})
}
