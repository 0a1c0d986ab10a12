package batcher

import (
	"slices"
	"time"

	"github.com/lutra-lm/lutra/kernels/meter"
)

// deliver hands the results of a step to their callers.
func (e *Engine) deliver(st *StepStats) {
	e.draws, e.firsts = e.draws[:0], e.firsts[:0]
	e.lasts = slices.Grow(e.lasts[:0], st.Rows)[:st.Rows]
	clear(e.lasts)
	for i := range e.spans {
		e.prepare(&e.spans[i])
	}
	if pool := e.opt.Pool; pool != nil {
		m := pool.Meter()
		start := m.Start()
		pool.Run((*sampling)(e), len(e.firsts))
		m.Stop(meter.Sampling, start, pool.Threads(), 0, 0)
	} else {
		for i := range e.firsts {
			(*sampling)(e).Do(0, i)
		}
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
		if p.s.left() == 0 {
			e.settle(p.s)
		}
	}
	e.counts.GeneratedTokens += int64(st.Sampled)
}

// sampling is an Engine whose draws a worker pool runs.
type sampling Engine

// Do runs the draws from one row.
func (e *sampling) Do(worker, i int) {
	s, d := &e.workers[worker], &e.draws[e.firsts[i]]
	d.shared = d.next > 0
	s.run(d)
	for d.next > 0 {
		d = &e.draws[d.next]
		d.shared = true
		s.again(d)
	}
}

// prepare notes the progress of a span and copies what sampling its rows
// needs, so that no lock is held while sampling.
func (e *Engine) prepare(p *span) {
	s := p.s
	if p.lead == nil {
		s.have += p.n
	} else {
		s.adopt(p.lead)
	}
	first := s.have - p.out // position of the first row
	s.reached = max(s.reached, s.have)
	p.turn = -1
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != s.seen {
		s.kv.Truncate(s.have) // without guesses
		return                // its caller wants something else by now; settle sorts it out
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
		p.turn = len(e.draws)
		for i := range p.out { // each as if the guesses before it were right
			d := e.nextDraw(p.row + i)
			d.params, d.id, d.position, d.prompt = s.order.params, sampled, len(s.tokens)+i, s.prompt
			d.tokens = d.tokens[:0]
			if d.params.looksBack() {
				d.tokens = append(append(d.tokens, s.tokens...), p.draft[:i]...)
			}
		}
	case wantScores:
		p.turn = len(e.draws)
		for i := range p.out {
			d := e.nextDraw(p.row + i)
			d.params, d.id = Params{Logprobs: true, TopLogprobs: s.order.top}, s.tokens[first+i+1]
		}
	}
}

// row is a row of the step's logits.
func (e *Engine) row(i int) []float32 {
	return e.batch.Logits[i*e.cfg.Outputs : (i+1)*e.cfg.Outputs]
}

// nextDraw adds a draw from a row, behind the others from it, and keeps the
// memory of the one that was there.
func (e *Engine) nextDraw(row int) *draw {
	n := len(e.draws)
	e.draws = slices.Grow(e.draws, 1)[:n+1]
	if last := e.lasts[row] - 1; last >= 0 {
		e.draws[last].next = n
	} else {
		e.firsts = append(e.firsts, n)
	}
	e.lasts[row] = n + 1
	d := &e.draws[n]
	d.row, d.next, d.err = e.row(row), 0, nil
	return d
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
		s.kv.Truncate(s.have)
		return 0
	}
	if s.order.kind == wantScores {
		for i := range p.out {
			s.order.scored = append(s.order.scored, e.draws[p.turn+i].tok)
		}
		s.outFrom = len(s.order.scored)
		if s.outFrom == s.target {
			s.order.kind = nothing
			s.cond.Broadcast()
		}
		return 0
	}
	n := e.accept(p)
	if len(p.draft) > 0 {
		s.have += max(0, n-1)
		s.kv.Truncate(s.have)
		s.reached = max(s.reached, s.have)
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
		d := &e.draws[p.turn+i]
		if d.err != nil {
			s.err = d.err
			s.epoch++
			return i
		}
		e.push(s, d.tok)
		if p.asked {
			e.judge(p, i, d.tok.ID)
		}
		if i == len(p.draft) || d.tok.ID != p.draft[i] || s.order.kind != wantTokens || s.stalled {
			return i + 1
		}
	}
	return p.out
}

// push adds a sampled token and sees whether the sequence goes on. Locked.
func (e *Engine) push(s *Sequence, tok Token) {
	o := &s.order
	s.tokens = append(s.tokens, tok.ID)
	o.left--
	switch {
	case !o.params.IgnoreEOS && o.params.Stop.Has(tok.ID):
		tok.Finish = FinishStop
	case o.left <= 0 || len(s.tokens) >= e.limit:
		tok.Finish = FinishLength
	}
	s.unread = append(s.unread, tok)
	switch {
	case tok.Finish != Unfinished:
		o.kind = nothing
	case len(s.unread) >= e.opt.Unread:
		s.stalled = true
	default:
		s.target, s.outFrom = s.target+1, s.outFrom+1
		s.digest()
	}
}
