package search

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// ends returns the time at which the work of a search has to end for its answer to be there at the
// deadline. That counts from the request's arrival; the search itself began at begun. The step under way
// does not matter, since nobody waits for it. The remaining time is for the choice and for writing the
// answer.
func (s *Search) ends(begun time.Time, p *scaling.Plan) time.Time {
	start := s.Start
	if start.IsZero() {
		start = begun
	}
	return start.Add(p.Deadline - min(mostHandover, p.Deadline/4))
}

// mostHandover is the most time kept for what follows the work of a search. On a busy machine the
// goroutine that does it waits for a processor.
const mostHandover = 50 * time.Millisecond

// outOfTime tells whether an error says no more than that the time for the work is over.
func (in *searchInput) outOfTime(err error) bool {
	cause := context.Cause(in.work)
	return in.ctx.Err() == nil && (cause == errTime || cause == errDeadline) && (errors.Is(err, cause) || errors.Is(err, context.DeadlineExceeded))
}

// settle returns why the work has ended: for the method's reason, unless its time was over. A search
// whose time was over before it had any candidate gets root as one: what has been written after the
// prompt, if anything.
func (r *searchRun) settle(root *beam, reason tts.StopReason) tts.StopReason {
	if len(r.tree.done) == 0 {
		r.steps = cmp.Or(r.steps, 1)
		r.tree.record(root, r.steps)
		r.tree.retire(root)
	}
	switch context.Cause(r.work) {
	case errTime:
		return tts.StopBudgetTime
	case errDeadline:
		return tts.StopDeadline
	}
	return reason
}
