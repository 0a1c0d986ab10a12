package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/kernels"
)

// deliver hands the results of a step to their callers.
func (e *Engine) deliver(st *StepStats) {
	e.draws.Reset(st.Rows)
	for i := range e.spans {
		e.prepare(&e.spans[i])
	}
	if pool := e.opt.Pool; pool != nil {
		meter := pool.Meter()
		start := meter.Start()
		e.draws.Run()
		meter.Stop(kernels.KernelSampling, start, pool.Threads(), 0, 0)
	} else {
		e.draws.Run()
	}
	now := e.opt.Now()
	for i := range e.spans {
		p := &e.spans[i]
		if p.turn >= 0 {
			n := e.commit(p, now)
			st.Sampled += n
			if len(p.draft) > 0 {
				st.Accepted[e.sources[p.by].Kind()] += min(max(0, n-1), len(p.draft))
			}
		}
		if p.s.want.Left() == 0 {
			e.settle(p.s)
		}
	}
	e.counts.GeneratedTokens += int64(st.Sampled)
}

// prepare notes the progress of a span and copies what sampling its rows
// needs, so that no lock is held while sampling.
func (e *Engine) prepare(p *span) {
	s := p.s
	if p.lead == nil {
		s.want.Have += p.n
	} else {
		s.adopt(p.lead)
	}
	first := s.want.Have - p.out // position of the first row
	s.reached = max(s.reached, s.want.Have)
	p.turn = -1
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != s.seen {
		s.kv.Truncate(s.want.Have) // without guesses
		return                     // its caller wants something else by now; settle sorts it out
	}
	if len(p.draft) == 0 {
		s.seal()
	}
	if p.out == 0 {
		return
	}
	switch s.order.kind {
	case wantLogits:
		e.copyLogits(s, e.row(p.row))
	case wantTokens:
		p.turn = e.draws.Len()
		for i := range p.out { // each as if the guesses before it were right
			d := e.draws.Add(p.row+i, e.row(p.row+i))
			d.Params, d.ID, d.Position, d.Prompt = s.order.params, sampling.Sampled, len(s.tokens)+i, s.prompt
			d.Tokens = d.Tokens[:0]
			if d.Params.LooksBack() {
				d.Tokens = append(append(d.Tokens, s.tokens...), p.draft[:i]...)
			}
		}
	case wantScores:
		p.turn = e.draws.Len()
		for i := range p.out {
			d := e.draws.Add(p.row+i, e.row(p.row+i))
			d.Params, d.ID = sampling.Params{Logprobs: true, TopLogprobs: s.order.top}, s.tokens[first+i+1]
		}
	}
}

// row is a row of the step's logits.
func (e *Engine) row(i int) []float32 {
	return e.batch.Logits[i*e.cfg.Outputs : (i+1)*e.cfg.Outputs]
}

// copyLogits fulfils an order for logits. Locked.
func (e *Engine) copyLogits(s *Sequence, row []float32) {
	o := &s.order
	if len(o.ids) == 0 {
		copy(o.row, row)
	}
	for i, id := range o.ids {
		o.row[i] = row[id]
	}
	o.kind = nothing
	s.cond.Broadcast()
}

// commit gives a span's tokens to its sequence and returns how many were sampled.
func (e *Engine) commit(p *span, now time.Time) int {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != s.seen {
		s.kv.Truncate(s.want.Have)
		return 0
	}
	if s.order.kind == wantScores {
		for i := range p.out {
			s.order.scored = append(s.order.scored, e.draws.At(p.turn+i).Token)
		}
		s.want.OutFrom = len(s.order.scored)
		if s.want.OutFrom == s.want.Target {
			s.order.kind = nothing
			s.cond.Broadcast()
		}
		return 0
	}
	n := e.accept(p)
	if len(p.draft) > 0 {
		s.want.Have += max(0, n-1)
		s.kv.Truncate(s.want.Have)
		s.reached = max(s.reached, s.want.Have)
		s.seal()
	}
	e.announce(s, now)
	if n == 0 {
		return 0
	}
	if !s.quiet && !s.timing.LastToken.IsZero() {
		e.counts.Gaps.add(now.Sub(s.timing.LastToken))
	}
	s.timing.LastToken = now
	if s.timing.FirstToken.IsZero() {
		s.timing.FirstToken = now
	}
	return n
}

// accept pushes what a span's rows have been sampled to, as far as the guesses
// that they follow are right, and returns how many tokens that were. Locked.
func (e *Engine) accept(p *span) int {
	s := p.s
	for i := range p.out {
		d := e.draws.At(p.turn + i)
		if d.Err != nil {
			s.err = d.Err
			s.epoch++
			return i
		}
		e.push(s, d.Token)
		if p.asked {
			e.judge(p, i, d.Token.ID)
		}
		if i == len(p.draft) || d.Token.ID != p.draft[i] || s.order.kind != wantTokens || s.stalled {
			return i + 1
		}
	}
	return p.out
}

// push adds a sampled token and sees whether the sequence goes on. Locked.
func (e *Engine) push(s *Sequence, tok sampling.Token) {
	o := &s.order
	s.tokens = append(s.tokens, tok.ID)
	o.left--
	switch {
	case !o.params.IgnoreEOS && o.params.Stop.Has(tok.ID):
		tok.Finish = sampling.FinishStop
	case o.left <= 0 || len(s.tokens) >= e.limit:
		tok.Finish = sampling.FinishLength
	}
	s.unread = append(s.unread, tok)
	switch {
	case tok.Finish != sampling.Unfinished:
		o.kind = nothing
	case len(s.unread) >= e.opt.Unread:
		s.stalled = true
	default:
		s.want.Target, s.want.OutFrom = s.want.Target+1, s.want.OutFrom+1
		s.digest()
	}
}
