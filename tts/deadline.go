package tts

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// ends returns when the work of a search has to end for its answer to be there at the
// deadline, which counts from the request's arrival; the search itself began at begun. The
// step under way does not matter: nobody waits for it. What is left is for the choice and for
// writing the answer.
func (s *Search) ends(begun time.Time, p *scaling.Plan) time.Time {
	start := s.Start
	if start.IsZero() {
		start = begun
	}
	return start.Add(p.Deadline - min(mostHandover, p.Deadline/4))
}

// mostHandover is the most time that is kept for what follows the work of a search: on a busy
// machine whoever waits for a processor to do it has to wait.
const mostHandover = 50 * time.Millisecond

// outOfTime tells whether an error says no more than that the time for the work is over.
func (r *searchRun) outOfTime(err error) bool {
	cause := context.Cause(r.work)
	return r.ctx.Err() == nil && (cause == errTime || cause == errDeadline) && (errors.Is(err, cause) || errors.Is(err, context.DeadlineExceeded))
}

// settle notes what has ended the work. Of a search whose time was over before it had any
// candidate, root is one: what has been written behind the prompt, if anything.
func (r *searchRun) settle(root *beam) {
	if len(r.tree.done) == 0 {
		r.steps = cmp.Or(r.steps, 1)
		r.tree.record(root, r.steps)
		r.retire(root)
	}
	switch context.Cause(r.work) {
	case errTime:
		r.reason = StopBudgetTime
	case errDeadline:
		r.reason = StopDeadline
	}
}
