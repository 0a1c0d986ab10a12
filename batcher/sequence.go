package batcher

import (
	"context"
	"math"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models/kv"
)

// Sequence is a caller's handle on tokens in the engine. Its methods are for
// one goroutine at a time, Close, Len and Timing for any. Inside a loop over
// Generate they act on the tokens read so far, and generation goes on from
// what they leave.
//
// It has two sides: task is the step loop's alone, shared is its caller's too.
type Sequence struct {
	ticket
	shared
	box    *mailbox[*Sequence]
	unhook func() bool
	task   task
	fork   *fork // guarded by mu
}

// fork asks for copies of the first at tokens.
type fork struct {
	at       int
	children []*Sequence
}

// newSequence makes one of tokens, whose engine has to enter it into its mailbox.
func newSequence(c *setup, box *mailbox[*Sequence], tokens []int32, background bool, salt kv.Salt) *Sequence {
	s := &Sequence{box: box, ticket: ticket{background: background, salt: salt}}
	s.setup, s.post = c, func() { box.post(s) }
	s.content = content{tokens: tokens, prompt: len(tokens), known: len(tokens), cutAt: math.MaxInt}
	s.cond.L = &s.mu
	s.task.demand.Background = background
	s.timing.Opened = c.opt.Now()
	return s
}

// closeWith closes s when ctx ends.
func (s *Sequence) closeWith(ctx context.Context) {
	s.unhook = context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
}

// Close frees the sequence at the next step. It may be called at any time, more than once.
func (s *Sequence) Close() {
	s.unhook()
	s.end(ErrClosed)
}

// Len returns the number of tokens that the caller has appended or read.
func (s *Sequence) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content.known
}

// Unread returns the number of generated tokens that the caller can read without waiting.
func (s *Sequence) Unread() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.content.unread)
}

// CachedPrompt returns how many prompt tokens the prefix cache saved; a fork has its parent's.
func (s *Sequence) CachedPrompt() int { return s.Timing().CachedPrompt }

// Timing returns the times of the stages that the sequence has reached.
func (s *Sequence) Timing() Timing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timing
}

// Append adds tokens after the ones so far (generated ones included). What
// cannot be appended (ErrTooLong, ErrToken) fails the next call that computes.
func (s *Sequence) Append(tokens ...int32) { s.add(tokens, false) }

// Adopt adds tokens that another engine has generated, as if Generate had yielded
// them here: what follows is sampled alike. Faults are reported as Append's are.
func (s *Sequence) Adopt(tokens ...int32) { s.add(tokens, true) }

// changed reports whether the caller has changed tokens or request since the loop last
// looked. Locked.
func (s *Sequence) changed() bool { return s.epoch != s.task.seen }

// generates reports whether the loop is to generate tokens, as it last saw. Locked.
func (s *Sequence) generates() bool { return !s.changed() && s.request.kind == wantTokens }

// ahead returns how many tokens after the next one the sequence has room for. Locked.
func (s *Sequence) ahead() int {
	return min(s.request.left, s.setup.bounds.limit-len(s.content.tokens), s.setup.opt.Unread-len(s.content.unread)) - 1
}

// advance returns where the completion of a sequence that generates stands in its constraint, nil
// if it has none. Locked.
func (s *Sequence) advance() sampling.Constraint {
	return s.task.constraint.advance(s.request.params.Constraint, s.content.tokens, s.content.prompt)
}

// nextDemand translates the caller's request. Locked.
func (s *Sequence) nextDemand() schedule.Demand {
	n := len(s.content.tokens)
	w := schedule.Demand{Computed: s.task.demand.Computed, Target: s.task.demand.Computed, LogitsFrom: schedule.NoRows, Background: s.background, Whole: s.setup.bounds.whole}
	switch {
	case s.fork != nil:
		w.Target = s.fork.at - 1
	case s.request.kind == wantTokens && !s.stalled, s.request.kind == wantLogits:
		w.Target, w.LogitsFrom = n, n-1
	case s.request.kind == wantScores:
		w.Target, w.LogitsFrom = n-1, s.request.from+len(s.request.scored)
	case s.request.kind == wantMean:
		w.Target, w.LogitsFrom = n, s.request.summed
	case s.request.kind == wantFirst:
		w.Target, w.LogitsFrom = n, 0
	}
	return w
}
