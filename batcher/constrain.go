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
type constrained struct {
	origin sampling.Constraint // of an empty completion; nil: at is not known
	at     sampling.Constraint // behind the first stood tokens
	stood  int                 // tokens of the sequence, its prompt among them
	begins int                 // where the completion begins

	forced []int32               // tokens that have to come, in the step under way
	rows   []sampling.Constraint // where the tokens stand that its rows are for
	late   <-chan struct{}       // the sequence is not planned before this is closed; nil: it may be
}

// stand is where the completion of a sequence that generates stands in its constraint,
// nil if it has none. It looks at the tokens that are new since the last call. Locked.
func (s *Sequence) stand() sampling.Constraint {
	c := s.order.params.Constraint
	if c == nil {
		return nil
	}
	if s.origin != c || s.begins != s.prompt {
		s.origin, s.at, s.stood, s.begins = c, c, s.prompt, s.prompt
	}
	for ; s.stood < len(s.tokens); s.stood++ {
		s.at = s.at.Next(s.tokens[s.stood])
	}
	return s.at
}

// retract forgets where a completion stands if tokens from n on are others by now.
func (c *constrained) retract(n int) {
	if n < c.stood {
		c.origin = nil
	}
}

// inherit is what a fork with n tokens knows from the sequence that it is a fork of.
func (c *constrained) inherit(n int) constrained {
	if c.stood > n {
		return constrained{}
	}
	return constrained{origin: c.origin, at: c.at, stood: c.stood, begins: c.begins}
}

// delayed reports whether s waits for what may come next.
func (s *Sequence) delayed() bool {
	if s.late != nil && sampling.Ready(s.late) {
		s.late = nil
	}
	return s.late != nil
}

// delay keeps s out of the steps until c is closed.
func (e *Engine) delay(s *Sequence, c <-chan struct{}) {
	s.late = c
	go func() {
		<-c
		e.box.post(s)
	}()
}

// foresight waits for what constraints find out, for so long in all.
type foresight struct {
	patience time.Duration
	timer    *time.Timer // nil: it has not waited yet
	over     bool
}

// knows waits for c and reports whether it is closed.
func (f *foresight) knows(c <-chan struct{}) bool {
	if f.over || sampling.Ready(c) {
		return sampling.Ready(c)
	}
	if f.timer == nil {
		f.timer = time.NewTimer(f.patience)
	}
	select {
	case <-c:
		return true
	case <-f.timer.C:
		f.over = true
		return false
	}
}

func (f *foresight) end() {
	if f.timer != nil {
		f.timer.Stop()
	}
}

// How long a step waits for constraints. A mask takes tens of microseconds, seldom a
// millisecond, and most are known from other sequences and earlier texts.
const (
	forcedPatience = 100 * time.Microsecond // for whether tokens are forced
	leastPatience  = 300 * time.Microsecond // for what may come next, beside other sequences
	alonePatience  = 2 * time.Millisecond   // likewise if nobody else waits
	patienceShare  = 8                      // one part in so many of the model's time, if that is longer
)

// extendForced puts behind the last tokens of the planned streams those that have to
// come, as far as they find lanes in the tiles that the step begins anyway.
func (e *Engine) extendForced(spans []span, l *schedule.Limits) {
	n, rows := 0, 0
	for _, p := range spans {
		n, rows = n+p.n, rows+p.s.want.Rows(p.n)
	}
	room := min(schedule.WholeTiles(n), l.Tokens) - n
	f := foresight{patience: forcedPatience}
	defer f.end()
	for i := range spans {
		if p := &spans[i]; room > 0 && p.n == 1 && p.s.want.Left() == 1 && !p.followed {
			e.force(p, room, l.Rows-rows, &f)
			room -= p.forced
			rows += p.forced - p.unsampled
		}
	}
}

// force gives a span the tokens that have to come behind it, at most as many as there is
// room for tokens, and for rows of logits where log-probabilities are wanted.
func (e *Engine) force(p *span, room, rows int, f *foresight) {
	s := p.s
	s.mu.Lock()
	o := &s.order
	if s.epoch != s.seen || o.kind != wantTokens {
		s.mu.Unlock()
		return
	}
	at, params := s.stand(), o.params
	room = min(room, o.left-1, e.limit-len(s.tokens)-1, e.opt.Unread-len(s.unread)-1)
	s.mu.Unlock()
	if params.Reports() {
		room = min(room, rows)
	}
	s.forced = s.forced[:0]
	for {
		c, ok := at.(sampling.Preparer)
		if !ok || room < 1 {
			return
		}
		prepared := c.Prepare()
		if f.knows(prepared.Forced) && len(s.forced) < room {
			params.Constraint = at
			if id, ok := params.Forced(e.vocab); ok {
				s.forced = append(s.forced, id)
				at = at.Next(id)
				continue
			}
		}
		if e.forgetful && !sampling.Ready(prepared.Allowed) {
			return // it could not wait with what may come behind them
		}
		break
	}
	p.draft, p.forced = s.forced, len(s.forced)
	if !params.Reports() {
		p.unsampled = p.forced
	}
}

// foresee begins to find out, beside the model's step, what may come at each row of the
// spans.
func (e *Engine) foresee(spans []span) {
	for i := range spans {
		p := &spans[i]
		s := p.s
		s.mu.Lock()
		if s.rows = s.rows[:0]; p.out > 0 && s.epoch == s.seen && s.order.kind == wantTokens {
			if at := s.stand(); at != nil {
				s.rows = rowsBehind(s.rows, at, p)
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
func (e *Engine) await(spans []span, forward time.Duration) {
	f := foresight{patience: max(alonePatience, forward)}
	defer f.end()
	for i := range spans {
		if p := &spans[i]; p.s.certain() == len(p.s.rows) {
			f.patience = max(leastPatience, forward/patienceShare)
			break
		}
	}
	for i := range spans {
		p := &spans[i]
		for row, at := range p.s.rows {
			c, ok := at.(sampling.Preparer)
			if !ok {
				continue
			}
			if allowed := c.Prepare().Allowed; !f.knows(allowed) {
				if p.out = row; row == 0 {
					p.late = true
					e.delay(p.s, allowed)
				}
				break
			}
		}
	}
}

// certain is how many of the first rows of s can be sampled without waiting.
func (s *Sequence) certain() int {
	for i, at := range s.rows {
		if c, ok := at.(sampling.Preparer); ok && !sampling.Ready(c.Prepare().Allowed) {
			return i
		}
	}
	return len(s.rows)
}

// prepareFirst keeps a constrained sequence out of the steps until it is known what may
// come next: its model's states cannot go back to the row that it would wait with.
func (e *Engine) prepareFirst(s *Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != s.seen || s.order.kind != wantTokens {
		return
	}
	if c, ok := s.stand().(sampling.Preparer); ok {
		if allowed := c.Prepare().Allowed; !sampling.Ready(allowed) {
			e.delay(s, allowed)
		}
	}
}
