package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
)

// What may come next of a constrained sequence is found out alongside the steps, by
// goroutines of the constraint. Where it leaves no choice, the tokens that have to come
// are computed after the stream's last one in the same step, like guesses that are
// always right:
//
//	plan ── forced tokens ──▶ forward ── what may come after them? ───▶ sample
//	                             │                │ not known in time: the token waits
//	                             └── meanwhile ───┘ for a later step
//
// Whether a token is forced depends on the completion alone. So tokens are the same
// whatever is known when, and however many lanes a step has for them.

// constraints finds the tokens of streams that leave no choice, and waits for what may come
// next.
type constraints struct {
	vocab     int
	recurrent bool
}

// holdForMask keeps s out of the steps until ready is closed.
func holdForMask(s *Sequence, ready <-chan struct{}) {
	s.task.constraint.maskReady = ready
	go func() {
		<-ready
		s.post()
	}()
}

// extend puts after the last tokens of the planned streams those that have to
// come, as far as they find lanes in the tiles that the step begins anyway.
func (c *constraints) extend(spans []span, l *schedule.Limits) {
	n, rows := 0, 0
	for _, p := range spans {
		n, rows = n+p.n, rows+p.s.task.demand.Rows(p.n)
	}
	room := min(schedule.WholeTiles(n), l.Tokens) - n
	wait := maskWait{budget: forcedBudget}
	defer wait.stop()
	for i := range spans {
		if p := &spans[i]; room > 0 && p.n == 1 && p.s.task.demand.Left() == 1 && !p.followed {
			c.force(p, room, l.Rows-rows, &wait)
			room -= p.forced
			rows += p.forced - p.unsampled
		}
	}
}

// force gives a span the tokens that have to come after it. room bounds them, and rows bounds the rows of
// logits if log-probabilities are wanted.
func (c *constraints) force(p *span, room, rows int, wait *maskWait) {
	s, own := p.s, &p.s.task.constraint
	s.mu.Lock()
	if !s.generates() {
		s.mu.Unlock()
		return
	}
	at, params := s.advance(), s.request.params
	room = min(room, s.ahead())
	s.mu.Unlock()
	if params.Reports() {
		room = min(room, rows)
	}
	own.forced = own.forced[:0]
	for {
		next, ok := at.(sampling.Preparer)
		if !ok || room < 1 {
			return
		}
		prepared := next.Prepare()
		if wait.waitFor(prepared.Forced) && len(own.forced) < room {
			params.Constraint = at
			if id, ok := params.Forced(c.vocab); ok {
				own.forced = append(own.forced, id)
				at = at.Next(id)
				continue
			}
		}
		if c.recurrent && !sampling.Ready(prepared.Allowed) {
			return // it could not wait with what may come after them
		}
		break
	}
	p.draft, p.forced = own.forced, len(own.forced)
	if !params.Reports() {
		p.unsampled = p.forced
	}
}

// prepareMasks begins to find out, alongside the model's step, what may come at each row of the
// spans.
func prepareMasks(spans []span) {
	for i := range spans {
		p := &spans[i]
		s, own := p.s, &p.s.task.constraint
		s.mu.Lock()
		if own.rows = own.rows[:0]; p.rows.n > 0 && s.generates() {
			if at := s.advance(); at != nil {
				own.rows = rowsAfter(own.rows, at, p)
			}
		}
		s.mu.Unlock()
	}
}

// rowsAfter appends where the tokens of a span's rows stand, of a sequence that stands
// at a constraint.
func rowsAfter(rows []sampling.Constraint, at sampling.Constraint, p *span) []sampling.Constraint {
	for i := 0; ; i++ {
		if i >= p.unsampled {
			if c, ok := at.(sampling.Preparer); ok {
				c.Prepare()
			}
			rows = append(rows, at)
		}
		if i == len(p.draft) {
			return rows
		}
		at = at.Next(p.draft[i])
	}
}

// awaitMasks waits for the masks of the rows of the spans, for as long as a maskWait lets it. Rows whose mask
// is not known then are not sampled. forward is the time that the model took.
func awaitMasks(spans []span, forward time.Duration) {
	wait := maskWait{budget: max(aloneBudget, forward)}
	defer wait.stop()
	for i := range spans {
		if own := &spans[i].s.task.constraint; own.certain() == len(own.rows) {
			wait.budget = max(leastBudget, forward/budgetShare)
			break
		}
	}
	for i := range spans {
		p := &spans[i]
		for row, at := range p.s.task.constraint.rows {
			c, ok := at.(sampling.Preparer)
			if !ok {
				continue
			}
			if allowed := c.Prepare().Allowed; !wait.waitFor(allowed) {
				if p.rows.n = row; row == 0 {
					p.late = true
					holdForMask(p.s, allowed)
				}
				break
			}
		}
	}
}

// holdUnprepared keeps a constrained sequence out of the steps until its next mask is known, since its model's
// states cannot go back to the row that it would wait with.
func holdUnprepared(s *Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.generates() {
		return
	}
	if c, ok := s.advance().(sampling.Preparer); ok {
		if allowed := c.Prepare().Allowed; !sampling.Ready(allowed) {
			holdForMask(s, allowed)
		}
	}
}
