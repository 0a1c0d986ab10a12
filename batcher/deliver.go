package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/kernels/meter"
)

// delivery samples from what a step has computed, puts the tokens into the
// buffers of their sequences and wakes the readers.
type delivery struct {
	opt       *Options
	bounds    bounds
	counts    *Stats
	drafts    *draftSelector
	draws     *sampling.Batch
	unflushed []*Sequence // whose readers have not been woken for all that they can read
}

func newDelivery(e *Engine) delivery {
	return delivery{opt: &e.opt, bounds: e.bounds, counts: &e.stats.counts, drafts: &e.drafts, draws: sampling.NewBatch(e.opt.Pool)}
}

// sample draws tokens from the logits of a step.
func (d *delivery) sample(st *step, b *stepBatch) {
	d.draws.Reset(st.Rows)
	for i := range st.spans {
		d.prepare(&st.spans[i], b)
	}
	pool := d.opt.Pool
	if pool == nil {
		d.draws.Run()
		return
	}
	m := pool.Meter()
	start := m.Start()
	d.draws.Run()
	m.Stop(meter.Sampling, start, pool.Threads(), 0, 0)
}

// prepare notes the progress of a span and copies what sampling its rows
// needs, so that no lock is held while sampling.
func (d *delivery) prepare(p *span, b *stepBatch) {
	s := p.s
	if p.leader == nil {
		s.task.demand.Computed += p.n
	} else {
		s.copyFrom(p.leader)
	}
	first := s.task.demand.Computed - p.out // position of the first row
	s.task.reached = max(s.task.reached, s.task.demand.Computed)
	p.draw = -1
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != s.task.seen {
		s.cut(s.task.demand.Computed) // without guesses
		return                        // its caller wants something else by now, which settle will see
	}
	if len(p.draft) == 0 {
		s.seal()
	}
	if p.out == 0 && !p.late {
		return
	}
	switch s.request.kind {
	case wantLogits:
		s.copyLogits(b.row(p.row))
	case wantMean:
		s.addRows(p.out, b.row, p.row)
	case wantFirst:
		s.copyLogits(b.row(p.row))
	case wantTokens:
		p.draw = d.draws.Len()
		for i := range p.out { // each row as if the guesses before it were right
			w, ahead := d.draws.Add(p.row+i, b.row(p.row+i)), p.unsampled+i
			w.Params, w.ID, w.Position, w.Prompt = s.request.params, sampling.Sampled, len(s.content.tokens)+ahead, s.content.prompt
			if i < len(s.task.constraint.rows) {
				w.Params.Constraint = s.task.constraint.rows[i]
			}
			if id, ok := w.Params.Forced(d.bounds.vocab); ok {
				w.ID = id
			}
			w.Tokens = w.Tokens[:0]
			if w.Params.LooksBack() {
				w.Tokens = append(append(w.Tokens, s.content.tokens...), p.draft[:ahead]...)
			}
		}
	case wantScores:
		p.draw = d.draws.Len()
		for i := range p.out {
			w := d.draws.Add(p.row+i, b.row(p.row+i))
			w.Params, w.ID = sampling.Params{Logprobs: true, TopLogprobs: s.request.top}, s.content.tokens[first+i+1]
		}
	}
}

// copyLogits fulfils an order for logits. Locked.
func (s *Sequence) copyLogits(row []float32) {
	o := &s.request
	if len(o.ids) == 0 {
		copy(o.row, row)
	}
	for i, id := range o.ids {
		o.row[i] = row[id]
	}
	o.kind = nothing
	s.cond.Broadcast()
}

// commit gives a span's tokens to its sequence and returns how many these are, and how
// many of them were forced.
func (d *delivery) commit(p *span, now time.Time) (n, forced int) {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != s.task.seen {
		s.cut(s.task.demand.Computed)
		return 0, 0
	}
	if s.request.kind == wantScores {
		for i := range p.out {
			s.request.scored = append(s.request.scored, d.draws.At(p.draw+i).Token)
		}
		s.task.demand.LogitsFrom = len(s.request.scored)
		if s.task.demand.LogitsFrom == s.task.demand.Target {
			s.request.kind = nothing
			s.cond.Broadcast()
		}
		return 0, 0
	}
	n, forced = d.accept(p)
	if len(p.draft) > 0 || p.late {
		if n > 0 || p.late {
			s.task.demand.Computed += n - 1
		}
		s.cut(s.task.demand.Computed)
		s.task.reached = max(s.task.reached, s.task.demand.Computed)
		s.seal()
	}
	if s.request.kind == wantTokens {
		if next, ok := s.stand().(sampling.Preparer); ok {
			next.Prepare()
		}
	}
	d.announce(s, now)
	if n == 0 {
		return 0, 0
	}
	if !s.background && !s.timing.LastToken.IsZero() {
		d.counts.Gaps.add(now.Sub(s.timing.LastToken))
	}
	s.timing.LastToken = now
	if s.timing.FirstToken.IsZero() {
		s.timing.FirstToken = now
	}
	return n, forced
}

// accept pushes the forced tokens of a span and those sampled from its rows, as long as
// the guesses before them are right, and returns how many it pushed, and how many of
// them were forced. Locked.
func (d *delivery) accept(p *span) (n, forced int) {
	s := p.s
	for n < p.unsampled {
		d.push(s, sampling.Token{ID: p.draft[n]})
		if n++; s.request.kind != wantTokens || s.stalled {
			return n, n
		}
	}
	forced = n
	for i := range p.out {
		w := d.draws.At(p.draw + i)
		if w.Err != nil {
			s.err = w.Err
			s.epoch++
			return n, forced
		}
		d.push(s, w.Token)
		if w.ID != sampling.Sampled {
			forced++
		}
		if p.asked {
			d.drafts.judge(p, i, w.Token.ID)
		}
		if n++; n > len(p.draft) || w.Token.ID != p.draft[n-1] || s.request.kind != wantTokens || s.stalled {
			break
		}
	}
	return n, forced
}

// push adds a sampled token and sees whether the sequence goes on. Locked.
func (d *delivery) push(s *Sequence, tok sampling.Token) {
	o := &s.request
	s.content.tokens = append(s.content.tokens, tok.ID)
	o.left--
	switch {
	case !o.params.IgnoreEOS && o.params.Stop.Has(tok.ID):
		tok.Finish = sampling.FinishStop
	case o.left <= 0 || len(s.content.tokens) >= d.bounds.limit:
		tok.Finish = sampling.FinishLength
	}
	s.content.unread = append(s.content.unread, tok)
	switch {
	case tok.Finish != sampling.Unfinished:
		o.kind = nothing
	case len(s.content.unread) >= d.opt.Unread:
		s.stalled = true
	default:
		s.task.demand.Target, s.task.demand.LogitsFrom = s.task.demand.Target+1, s.task.demand.LogitsFrom+1
		s.extendHash()
	}
}
