package batcher

import (
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/kernels/meter"
)

// delivery samples from what a step has computed, puts the tokens into the
// buffers of their sequences and wakes the readers.
type delivery struct {
	setup     *setup
	gaps      Gaps
	drafts    *draftSelector
	draws     *sampling.Batch
	unflushed []*Sequence // whose readers have not been woken for all that they can read
}

func newDelivery(c *setup, drafts *draftSelector) delivery {
	return delivery{setup: c, drafts: drafts, draws: sampling.NewBatch(c.opt.Pool)}
}

// sample draws tokens from the logits of a step.
func (d *delivery) sample(st *step, b *stepBatch) {
	d.draws.Reset(st.Rows)
	for i := range st.spans {
		d.prepare(&st.spans[i], b)
	}
	pool := d.setup.opt.Pool
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
	s, t := p.s, &p.s.task
	if p.leader == nil {
		t.demand.Computed += p.n
	} else {
		t.copyFrom(p.leader)
	}
	t.reached = max(t.reached, t.demand.Computed)
	p.rows.draw = -1
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed() {
		return // its caller wants something else by now, which admission.settle will see
	}
	if len(p.draft) == 0 {
		t.seal(s.content.tokens)
		t.save(s, false)
	}
	if p.rows.n == 0 && !p.late {
		return
	}
	switch r := &s.request; r.kind {
	case wantLogits, wantFirst:
		r.copyLogits(b.row(p.rows.first))
		s.meet()
	case wantMean:
		r.addRows(p.rows.n, b.row, p.rows.first)
		if t.demand.LogitsFrom = r.summed; r.summed == t.demand.Target {
			s.meet()
		}
	case wantTokens:
		d.drawTokens(p, b)
	case wantScores:
		d.drawScores(p, b)
	}
}

// drawTokens draws from each row as if the guesses before it were right. Locked.
func (d *delivery) drawTokens(p *span, b *stepBatch) {
	s := p.s
	p.rows.draw = d.draws.Len()
	for i := range p.rows.n {
		w, ahead := d.draws.Add(p.rows.first+i, b.row(p.rows.first+i)), p.unsampled+i
		w.Params, w.ID, w.Position, w.Prompt = s.request.params, sampling.Sampled, len(s.content.tokens)+ahead, s.content.prompt
		if at := s.task.constraint.rows; i < len(at) {
			w.Params.Constraint = at[i]
		}
		if id, ok := w.Params.Forced(d.setup.bounds.vocab); ok {
			w.ID = id
		}
		w.Tokens = w.Tokens[:0]
		if w.Params.LooksBack() {
			w.Tokens = append(append(w.Tokens, s.content.tokens...), p.draft[:ahead]...)
		}
	}
}

// drawScores asks of each row about the token that is there already. Locked.
func (d *delivery) drawScores(p *span, b *stepBatch) {
	s, first := p.s, p.s.task.demand.Computed-p.rows.n // the position of the first row
	p.rows.draw = d.draws.Len()
	for i := range p.rows.n {
		w := d.draws.Add(p.rows.first+i, b.row(p.rows.first+i))
		w.Params, w.ID = sampling.Params{Logprobs: true, TopLogprobs: s.request.top}, s.content.tokens[first+i+1]
	}
}

// commit gives a span's tokens to its sequence and returns how many these are, and how
// many of them were forced.
func (d *delivery) commit(p *span, b *stepBatch, now time.Time) (n, forced int) {
	s, t := p.s, &p.s.task
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed() {
		return 0, 0
	}
	if s.request.kind == wantScores {
		d.score(p, b)
		return 0, 0
	}
	n, forced = d.accept(p, b)
	if len(p.draft) > 0 && n > 0 || p.late {
		t.demand.Computed += n - 1
	}
	if s.request.kind == wantTokens {
		if next, ok := s.advance().(sampling.Preparer); ok {
			next.Prepare()
		}
	}
	d.announce(s, now)
	if n > 0 {
		d.stamp(s, now)
	}
	return n, forced
}

// settle drops what the step has computed of guesses that were wrong, and takes up those that were right.
func (d *delivery) settle(p *span) {
	s, t := p.s, &p.s.task
	if len(p.draft) == 0 && !p.late {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.cut(t.demand.Computed)
	if !s.changed() {
		t.reached = max(t.reached, t.demand.Computed)
		t.seal(s.content.tokens)
	}
}

// score adds what was asked about tokens to the result of a request. Locked.
func (d *delivery) score(p *span, b *stepBatch) {
	s := p.s
	for i := range p.rows.n {
		tok := d.draws.At(p.rows.draw + i).Token
		tok.Reading = b.reading(p.rows.first + i)
		s.request.scored = append(s.request.scored, tok)
	}
	if s.task.demand.LogitsFrom = s.request.from + len(s.request.scored); s.task.demand.LogitsFrom == s.task.demand.Target {
		s.meet()
	}
}

// stamp notes when tokens were delivered. Locked.
func (d *delivery) stamp(s *Sequence, now time.Time) {
	if !s.background && !s.timing.LastToken.IsZero() {
		d.gaps.add(now.Sub(s.timing.LastToken))
	}
	s.timing.LastToken = now
	if s.timing.FirstToken.IsZero() {
		s.timing.FirstToken = now
	}
}

// accept pushes the forced tokens of a span and the tokens sampled from its rows, as long as the guesses before
// them are right. It returns how many it pushed, and how many of them were forced. Locked.
func (d *delivery) accept(p *span, b *stepBatch) (n, forced int) {
	s := p.s
	reads := s.request.params.Reports()
	for n < p.unsampled {
		d.push(s, sampling.Token{ID: p.draft[n]})
		if n++; s.request.kind != wantTokens || s.stalled {
			return n, n
		}
	}
	forced = n
	for i := range p.rows.n {
		w := d.draws.At(p.rows.draw + i)
		if w.Err != nil {
			s.err = w.Err
			s.epoch++
			return n, forced
		}
		tok := w.Token
		if reads {
			tok.Reading = b.reading(p.rows.first + i)
		}
		d.push(s, tok)
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
	case o.left <= 0 || len(s.content.tokens) >= d.setup.bounds.limit:
		tok.Finish = sampling.FinishLength
	}
	s.content.unread = append(s.content.unread, tok)
	switch {
	case tok.Finish != sampling.Unfinished:
		o.kind = nothing
	case len(s.content.unread) >= d.setup.opt.Unread:
		s.stalled = true
	default:
		s.task.demand.Target, s.task.demand.LogitsFrom = s.task.demand.Target+1, s.task.demand.LogitsFrom+1
		s.task.hash.extend(s.content.tokens, s.task.demand.Target)
	}
}

// Waking a reader costs more than computing a token, if tokens take a tenth of a millisecond: its goroutine, and
// the client after it, use the processors of the next step. So readers are woken immediately for the first and
// the last token, and every few milliseconds between.

// announce wakes the reader of s for its new tokens, now or in flush. Locked.
func (d *delivery) announce(s *Sequence, now time.Time) {
	o := &s.request
	switch {
	case s.err != nil || o.kind == nothing || s.stalled:
	case o.params.FlushEvery > 0:
		if len(s.content.unread) < o.params.FlushEvery {
			return
		}
	case now.Sub(s.task.flush.woken) < d.setup.opt.FlushInterval && len(s.content.unread) <= d.setup.opt.Unread/4: // the reader shall not be far behind
		if !s.task.flush.unflushed {
			s.task.flush.unflushed = true
			d.unflushed = append(d.unflushed, s)
		}
		return
	}
	s.task.flush.woken = now
	s.cond.Broadcast()
}

// flush wakes the readers that would otherwise wait for too long during a step of n tokens, which takes the given
// seconds; all of them if there is no step.
func (d *delivery) flush(n int, seconds float64) {
	if len(d.unflushed) == 0 {
		return
	}
	now := d.setup.opt.Now()
	end := now.Add(time.Duration(seconds * float64(time.Second)))
	d.unflushed = slices.DeleteFunc(d.unflushed, func(s *Sequence) bool {
		if n > 0 && end.Sub(s.task.flush.woken) < d.setup.opt.FlushInterval {
			return false
		}
		s.task.flush.woken, s.task.flush.unflushed = now, false
		s.cond.Broadcast()
		return true
	})
}
