package batcher

import (
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
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

// dedupKey is equal for duplicates, and seldom for others.
type dedupKey struct {
	by   *models.Variant
	salt kv.Salt // what other salts compute must not show in the time that a step takes
	sum  uint64
	want schedule.Demand
}

// pair gives each active sequence its leader: the oldest one that is equal to
// it, or none. Background sequences that are withheld are left as they are.
func (d *duplicates) pair(active []*Sequence, withheld bool) {
	clear(d.leaders)
	d.followers = d.followers[:0]
	for _, s := range active {
		if s.task.demand.Background && withheld || s.task.constraint.held() {
			continue
		}
		s.task.leader, s.task.span = nil, -1
		key := dedupKey{s.setup.variant, s.salt, s.task.hash.sum, s.task.demand}
		leader := d.leaders[key]
		switch {
		case leader == nil:
			d.leaders[key] = s
		case equal(s, leader):
			s.task.leader = &leader.task
			d.followers = append(d.followers, s)
		}
	}
}

// equal reports whether both want the same tokens computed.
func equal(s, leader *Sequence) bool {
	leader.mu.Lock()
	defer leader.mu.Unlock()
	s.mu.Lock() // the step loop alone holds two of these
	defer s.mu.Unlock()
	return !s.changed() && !leader.changed() && slices.Equal(s.content.tokens[:s.task.demand.Target], leader.content.tokens[:s.task.demand.Target])
}

// cutToBlock takes from the followers of planned leaders their share of the block
// that is about to be written: it would have to be copied. Should their leader
// drop out of the step, they compute that little again.
func (d *duplicates) cutToBlock(spans []span, blockLen int) {
	for i := range spans {
		spans[i].s.task.span = i
	}
	for _, s := range d.followers {
		if s.task.leader.span >= 0 {
			spans[s.task.leader.span].followed = true
			s.task.cut(s.task.demand.Computed / blockLen * blockLen)
		}
	}
}

// follow appends the followers' spans to their leaders' spans.
func (d *duplicates) follow(spans []span, st *step, now func() time.Time) []span {
	for _, s := range d.followers {
		s.task.leader.span = -1 // it may have dropped out since the plan
	}
	for i, p := range spans {
		p.s.task.span = i
	}
	for _, s := range d.followers {
		leader := s.task.leader
		if s.task.leader = nil; leader.span < 0 || s.task.list != active {
			continue
		}
		p := spans[leader.span]
		s.mu.Lock()
		if !s.changed() {
			if s.timing.Started.IsZero() {
				s.timing.Started = now()
			}
			spans = append(spans, span{s: s, rows: p.rows, leader: leader})
			st.Saved += p.n
		}
		s.mu.Unlock()
	}
	return spans
}
