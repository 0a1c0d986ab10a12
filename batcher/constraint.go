package batcher

import "github.com/lutra-lm/lutra/batcher/sampling"

// constraint tracks where a sequence stands whose tokens are constrained.
type constraint struct {
	initial sampling.Constraint // of an empty completion; nil: state is not known
	state   sampling.Constraint // after the first pos tokens
	pos     int                 // tokens of the sequence, its prompt among them
	start   int                 // where the completion begins

	forced    []int32               // tokens that have to come, in the step under way
	rows      []sampling.Constraint // where the tokens stand that its rows are for
	maskReady <-chan struct{}       // the sequence is not planned before this is closed; nil: it may be
}

// cutTo forgets where a completion stands if tokens from n on are others by now.
func (c *constraint) cutTo(n int) {
	if n < c.pos {
		c.initial = nil
	}
}

// fork returns what a fork with n tokens knows from the sequence that it is a fork of.
func (c *constraint) fork(n int) constraint {
	if c.pos > n {
		return constraint{}
	}
	return constraint{initial: c.initial, state: c.state, pos: c.pos, start: c.start}
}

// advance returns where a completion stands in the constraint from, nil if that is. The completion
// is tokens from start on, of which those are looked at that are new since the last call.
func (c *constraint) advance(from sampling.Constraint, tokens []int32, start int) sampling.Constraint {
	if from == nil {
		return nil
	}
	if c.initial != from || c.start != start {
		c.initial, c.state, c.pos, c.start = from, from, start, start
	}
	for ; c.pos < len(tokens); c.pos++ {
		c.state = c.state.Next(tokens[c.pos])
	}
	return c.state
}

// held reports whether the sequence waits for what may come next.
func (c *constraint) held() bool {
	if c.maskReady != nil && sampling.Ready(c.maskReady) {
		c.maskReady = nil
	}
	return c.maskReady != nil
}

// certain returns how many of the first rows can be sampled without waiting.
func (c *constraint) certain() int {
	for i, at := range c.rows {
		if p, ok := at.(sampling.Preparer); ok && !sampling.Ready(p.Prepare().Allowed) {
			return i
		}
	}
	return len(c.rows)
}
