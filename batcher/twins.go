package batcher

import (
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
)

// twinship is what the step loop knows of sequences that hold equal tokens.
//
// Candidates of one request often agree for a while, and some to their end.
// Sequences with equal tokens would compute equal numbers, since neighbours
// never change them: so a step computes one of them, the lead, and the others
// ride along. They take over a fork of its blocks, and sample from its logits
// with their own parameters. Nothing but the work changes: a rider that
// samples another token than its lead goes on by itself.
type twinship struct {
	sum    uint64    // hash of the first summed tokens
	summed int       // target, between steps
	lead   *Sequence // in the step under way: who is computed in its place
	slot   int       // in the step under way: a lead's span, or -1
}

// likeness is equal for twins, and seldom for others.
type likeness struct {
	sum  uint64
	want schedule.Want
}

// digest makes the hash cover what the caller wants computed. Locked.
func (s *Sequence) digest() {
	s.forget(s.want.Target)
	for ; s.summed < s.want.Target; s.summed++ {
		s.sum = sampling.Mix(s.sum + uint64(s.tokens[s.summed]))
	}
}

// forget begins the hash anew when tokens from n on are others by now.
func (s *Sequence) forget(n int) {
	if n < s.summed {
		s.sum, s.summed = 0, 0
	}
}

// pair gives each active sequence its lead: the oldest one that is like it,
// or none.
func (e *Engine) pair() {
	clear(e.twins)
	e.riders = e.riders[:0]
	for _, s := range e.active {
		if s.want.Background && e.later {
			continue
		}
		s.lead, s.slot = nil, -1
		key := likeness{s.sum, s.want}
		lead := e.twins[key]
		switch {
		case lead == nil:
			e.twins[key] = s
		case s.equals(lead):
			s.lead = lead
			e.riders = append(e.riders, s)
		}
	}
}

// equals tells whether both want the same tokens computed.
func (s *Sequence) equals(lead *Sequence) bool {
	lead.mu.Lock()
	defer lead.mu.Unlock()
	s.mu.Lock() // the step loop alone holds two of these
	defer s.mu.Unlock()
	return s.epoch == s.seen && lead.epoch == lead.seen && slices.Equal(s.tokens[:s.want.Target], lead.tokens[:s.want.Target])
}

// lighten takes from the riders of planned leads their share of the block that
// is about to be written: it would have to be copied. Should their lead drop
// out of the step, they compute that little again.
func (e *Engine) lighten() {
	for i := range e.spans {
		e.spans[i].s.slot = i
	}
	for _, s := range e.riders {
		if s.lead.slot >= 0 {
			e.spans[s.lead.slot].ridden = true
			s.cut(s.want.Have / e.kv.BlockLen() * e.kv.BlockLen())
		}
	}
}

// ride adds the spans of riders to those of their leads.
func (e *Engine) ride(st *StepStats) {
	for _, s := range e.riders {
		s.lead.slot = -1 // it may have dropped out since the plan
	}
	for i, p := range e.spans {
		p.s.slot = i
	}
	for _, s := range e.riders {
		lead := s.lead
		if s.lead = nil; lead.slot < 0 || s.list != active {
			continue
		}
		p := e.spans[lead.slot]
		s.mu.Lock()
		if s.epoch == s.seen {
			if s.timing.Started.IsZero() {
				s.timing.Started = e.opt.Now()
			}
			e.spans = append(e.spans, span{s: s, out: p.out, row: p.row, lead: lead})
			st.Spared += p.n
		}
		s.mu.Unlock()
	}
}

// adopt takes over what lead has computed.
func (s *Sequence) adopt(lead *Sequence) {
	s.kv.Become(lead.kv)
	s.want.Have = lead.want.Have
}
