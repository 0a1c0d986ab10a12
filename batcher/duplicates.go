package batcher

import (
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
)

// duplicates finds active sequences that hold equal tokens, so that each step
// computes them once.
//
// Candidates of one request often agree for a while, and some to their end.
// Sequences with equal tokens would compute equal numbers, since neighbours
// never change them: so a step computes one of them, the leader, and the
// others follow. They take over a fork of its blocks, and sample from its
// logits with their own parameters. Nothing but the work changes: a follower
// that samples another token than its leader goes on by itself.
type duplicates struct {
	leaders   map[dedupKey]*Sequence
	followers []*Sequence // have a leader in the step under way
}

func newDuplicates() duplicates { return duplicates{leaders: map[dedupKey]*Sequence{}} }

// dedupState is what duplicates know of a sequence.
type tokenHash struct {
	sum    uint64    // hash of the first summed tokens
	length int       // Target, between steps
	leader *Sequence // in the step under way: who is computed in its place
	span   int       // in the step under way: a leader's span, or -1
}

// dedupKey is equal for duplicates, and seldom for others.
type dedupKey struct {
	sum  uint64
	want schedule.Demand
}

// digest makes the hash cover what the caller wants computed. Locked.
func (s *Sequence) extendHash() {
	s.resetHash(s.task.demand.Target)
	for ; s.task.hash.length < s.task.demand.Target; s.task.hash.length++ {
		s.task.hash.sum = sampling.Mix(s.task.hash.sum + uint64(s.content.tokens[s.task.hash.length]))
	}
}

// forget begins the hash anew when tokens from n on are others by now.
func (s *Sequence) resetHash(n int) {
	if n < s.task.hash.length {
		s.task.hash.sum, s.task.hash.length = 0, 0
	}
}

// pair gives each active sequence its leader: the oldest one that is equal to
// it, or none. Background sequences that are withheld are left as they are.
func (d *duplicates) pair(active []*Sequence, withheld bool) {
	clear(d.leaders)
	d.followers = d.followers[:0]
	for _, s := range active {
		if s.task.demand.Background && withheld || s.awaitsMask() {
			continue
		}
		s.task.hash.leader, s.task.hash.span = nil, -1
		key := dedupKey{s.task.hash.sum, s.task.demand}
		leader := d.leaders[key]
		switch {
		case leader == nil:
			d.leaders[key] = s
		case s.equals(leader):
			s.task.hash.leader = leader
			d.followers = append(d.followers, s)
		}
	}
}

// equals reports whether both want the same tokens computed.
func (s *Sequence) equals(leader *Sequence) bool {
	leader.mu.Lock()
	defer leader.mu.Unlock()
	s.mu.Lock() // the step loop alone holds two of these
	defer s.mu.Unlock()
	return s.epoch == s.task.seen && leader.epoch == leader.task.seen && slices.Equal(s.content.tokens[:s.task.demand.Target], leader.content.tokens[:s.task.demand.Target])
}

// trim takes from the followers of planned leaders their share of the block
// that is about to be written: it would have to be copied. Should their leader
// drop out of the step, they compute that little again.
func (d *duplicates) cutToBlock(spans []span, blockLen int) {
	for i := range spans {
		spans[i].s.task.hash.span = i
	}
	for _, s := range d.followers {
		if s.task.hash.leader.task.hash.span >= 0 {
			spans[s.task.hash.leader.task.hash.span].followed = true
			s.cut(s.task.demand.Computed / blockLen * blockLen)
		}
	}
}

// follow appends the spans of followers to those of their leaders.
func (d *duplicates) follow(spans []span, st *step, now func() time.Time) []span {
	for _, s := range d.followers {
		s.task.hash.leader.task.hash.span = -1 // it may have dropped out since the plan
	}
	for i, p := range spans {
		p.s.task.hash.span = i
	}
	for _, s := range d.followers {
		leader := s.task.hash.leader
		if s.task.hash.leader = nil; leader.task.hash.span < 0 || s.task.list != active {
			continue
		}
		p := spans[leader.task.hash.span]
		s.mu.Lock()
		if s.epoch == s.task.seen {
			if s.timing.Started.IsZero() {
				s.timing.Started = now()
			}
			spans = append(spans, span{s: s, out: p.out, row: p.row, leader: leader})
			st.Saved += p.n
		}
		s.mu.Unlock()
	}
	return spans
}

// adopt takes over what leader has computed.
func (s *Sequence) copyFrom(leader *Sequence) {
	s.task.kv.Become(leader.task.kv)
	s.task.demand.Computed = leader.task.demand.Computed
}
