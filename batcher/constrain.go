package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
)

// What may come next of a constrained sequence is found out beside the steps, by
// goroutines of the constraint. Where it leaves no choice, the tokens that have to come
// are computed behind the stream's last one in the same step, like guesses that are
// always right:
//
//	plan ── forced tokens ──▶ forward ── what may come behind them? ──▶ sample
//	                             │                │ not known in time: the token waits
//	                             └── meanwhile ───┘ for a later step
//
// Whether a token is forced depends on the completion alone. So tokens are the same
// whatever is known when, and however many lanes a step has for them.

// constrained is what the step loop knows of a sequence whose tokens are constrained.
type constraint struct {
	initial sampling.Constraint // of an empty completion; nil: at is not known
	state   sampling.Constraint // behind the first stood tokens
	pos     int                 // tokens of the sequence, its prompt among them
	start   int                 // where the completion begins

	forced    []int32               // tokens that have to come, in the step under way
	rows      []sampling.Constraint // where the tokens stand that its rows are for
	maskReady <-chan struct{}       // the sequence is not planned before this is closed; nil: it may be
}

// stand is where the completion of a sequence that generates stands in its constraint,
// nil if it has none. It looks at the tokens that are new since the last call. Locked.
func (s *Sequence) stand() sampling.Constraint {
	c := s.request.params.Constraint
	if c == nil {
		return nil
	}
	if s.task.constraint.initial != c || s.task.constraint.start != s.content.prompt {
		s.task.constraint.initial, s.task.constraint.state, s.task.constraint.pos, s.task.constraint.start = c, c, s.content.prompt, s.content.prompt
	}
	for ; s.task.constraint.pos < len(s.content.tokens); s.task.constraint.pos++ {
		s.task.constraint.state = s.task.constraint.state.Next(s.content.tokens[s.task.constraint.pos])
	}
	return s.task.constraint.state
}

// retract forgets where a completion stands if tokens from n on are others by now.
func (c *constraint) cutTo(n int) {
	if n < c.pos {
		c.initial = nil
	}
}

// inherit is what a fork with n tokens knows from the sequence that it is a fork of.
func (c *constraint) fork(n int) constraint {
	if c.pos > n {
		return constraint{}
	}
	return constraint{initial: c.initial, state: c.state, pos: c.pos, start: c.start}
}

// delayed reports whether s waits for what may come next.
func (s *Sequence) awaitsMask() bool {
	if s.task.constraint.maskReady != nil && sampling.Ready(s.task.constraint.maskReady) {
		s.task.constraint.maskReady = nil
	}
	return s.task.constraint.maskReady != nil
}

// delay keeps s out of the steps until c is closed.
func (e *Engine) holdForMask(s *Sequence, c <-chan struct{}) {
	s.task.constraint.maskReady = c
	go func() {
		<-c
		e.box.post(s)
	}()
}

// foresight waits for what constraints find out, for so long in all.
type maskWait struct {
	budget time.Duration
	timer  *time.Timer // nil: it has not waited yet
	over   bool
}

// knows waits for c and reports whether it is closed.
func (f *maskWait) waitFor(c <-chan struct{}) bool {
	if f.over || sampling.Ready(c) {
		return sampling.Ready(c)
	}
	if f.timer == nil {
		f.timer = time.NewTimer(f.budget)
	}
	select {
	case <-c:
		return true
	case <-f.timer.C:
		f.over = true
		return false
	}
}

func (f *maskWait) stop() {
	if f.timer != nil {
		f.timer.Stop()
	}
}

// How long a step waits for constraints. A mask takes tens of microseconds, seldom a
// millisecond, and most are known from other sequences and earlier texts.
const (
	forcedBudget = 100 * time.Microsecond // for whether tokens are forced
	leastBudget  = 300 * time.Microsecond // for what may come next, beside other sequences
	aloneBudget  = 2 * time.Millisecond   // likewise if nobody else waits
	budgetShare  = 8                      // one part in so many of the model's time, if that is longer
)

// extendForced puts behind the last tokens of the planned streams those that have to
// come, as far as they find lanes in the tiles that the step begins anyway.
func (e *Engine) extendForced(spans []span, l *schedule.Limits) {
	n, rows := 0, 0
	for _, p := range spans {
		n, rows = n+p.n, rows+p.s.task.demand.Rows(p.n)
	}
	room := min(schedule.WholeTiles(n), l.Tokens) - n
	f := maskWait{budget: forcedBudget}
	defer f.stop()
	for i := range spans {
		if p := &spans[i]; room > 0 && p.n == 1 && p.s.task.demand.Left() == 1 && !p.followed {
			e.force(p, room, l.Rows-rows, &f)
			room -= p.forced
			rows += p.forced - p.unsampled
		}
	}
}

// force gives a span the tokens that have to come behind it, at most as many as there is
// room for tokens, and for rows of logits where log-probabilities are wanted.
func (e *Engine) force(p *span, room, rows int, f *maskWait) {
	s := p.s
	s.mu.Lock()
	o := &s.request
	if s.epoch != s.task.seen || o.kind != wantTokens {
		s.mu.Unlock()
		return
	}
	at, params := s.stand(), o.params
	room = min(room, o.left-1, e.bounds.limit-len(s.content.tokens)-1, e.opt.Unread-len(s.content.unread)-1)
	s.mu.Unlock()
	if params.Reports() {
		room = min(room, rows)
	}
	s.task.constraint.forced = s.task.constraint.forced[:0]
	for {
		c, ok := at.(sampling.Preparer)
		if !ok || room < 1 {
			return
		}
		prepared := c.Prepare()
		if f.waitFor(prepared.Forced) && len(s.task.constraint.forced) < room {
			params.Constraint = at
			if id, ok := params.Forced(e.bounds.vocab); ok {
				s.task.constraint.forced = append(s.task.constraint.forced, id)
				at = at.Next(id)
				continue
			}
		}
		if e.bounds.recurrent && !sampling.Ready(prepared.Allowed) {
			return // it could not wait with what may come behind them
		}
		break
	}
	p.draft, p.forced = s.task.constraint.forced, len(s.task.constraint.forced)
	if !params.Reports() {
		p.unsampled = p.forced
	}
}

// foresee begins to find out, beside the model's step, what may come at each row of the
// spans.
func (e *Engine) prepareMasks(spans []span) {
	for i := range spans {
		p := &spans[i]
		s := p.s
		s.mu.Lock()
		if s.task.constraint.rows = s.task.constraint.rows[:0]; p.out > 0 && s.epoch == s.task.seen && s.request.kind == wantTokens {
			if at := s.stand(); at != nil {
				s.task.constraint.rows = rowsBehind(s.task.constraint.rows, at, p)
			}
		}
		s.mu.Unlock()
	}
}

// rowsBehind appends where the tokens of a span's rows stand, of a sequence that stands
// at a constraint.
func rowsBehind(rows []sampling.Constraint, at sampling.Constraint, p *span) []sampling.Constraint {
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

// await waits until it is known what may come at the rows of the spans, though not for
// long: rows of which it is not known then are not sampled. forward is the time that the
// model took.
func (e *Engine) awaitMasks(spans []span, forward time.Duration) {
	f := maskWait{budget: max(aloneBudget, forward)}
	defer f.stop()
	for i := range spans {
		if p := &spans[i]; p.s.certain() == len(p.s.task.constraint.rows) {
			f.budget = max(leastBudget, forward/budgetShare)
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
			if allowed := c.Prepare().Allowed; !f.waitFor(allowed) {
				if p.out = row; row == 0 {
					p.late = true
					e.holdForMask(p.s, allowed)
				}
				break
			}
		}
	}
}

// certain is how many of the first rows of s can be sampled without waiting.
func (s *Sequence) certain() int {
	for i, at := range s.task.constraint.rows {
		if c, ok := at.(sampling.Preparer); ok && !sampling.Ready(c.Prepare().Allowed) {
			return i
		}
	}
	return len(s.task.constraint.rows)
}

// prepareFirst keeps a constrained sequence out of the steps until it is known what may
// come next: its model's states cannot go back to the row that it would wait with.
func (e *Engine) holdUnprepared(s *Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != s.task.seen || s.request.kind != wantTokens {
		return
	}
	if c, ok := s.stand().(sampling.Preparer); ok {
		if allowed := c.Prepare().Allowed; !sampling.Ready(allowed) {
			e.holdForMask(s, allowed)
		}
	}
}
