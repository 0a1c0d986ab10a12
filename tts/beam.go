package tts

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// newBeam makes an empty beam.
func (r *searchRun) newBeam(seq *batcher.Sequence, judge Judge) *beam {
	return &beam{cand: &Candidate{}, seq: seq, judge: judge, dec: newDecoder(r.Model, r.req), shape: r.newShape(), node: -1}
}

// copyTo copies b for forks of its sequence and its judge.
func (b *beam) copyTo(seq *batcher.Sequence, judge Judge) *beam {
	k, c := *b, *b.cand
	c.IDs, c.Tokens, c.StepScores, c.confidences = slices.Clone(c.IDs), slices.Clone(c.Tokens), slices.Clone(c.StepScores), slices.Clone(c.confidences)
	c.Critiques, c.Readings = slices.Clone(c.Critiques), c.Readings.clone()
	k.cand, k.seq, k.judge, k.dec, k.shape, k.text, k.step = &c, seq, judge, b.dec.clone(), b.shape.clone(), slices.Clone(b.text), nil
	return &k
}

// fork returns b and up to n-1 copies of it: fewer when the engines have no
// more room for sequences.
func (r *searchRun) fork(b *beam, n int) ([]*beam, error) {
	ctx := r.ctx
	if b == r.root { // waits for the prompt, at most until the work's end
		ctx = r.work
	}
	beams := []*beam{b}
	seqs, err := halveWhileBusy(n-1, func(n int) ([]*batcher.Sequence, error) { return b.seq.Fork(ctx, n) })
	if err != nil {
		return nil, err
	}
	judges, err := halveWhileBusy(len(seqs), func(n int) ([]Judge, error) { return b.judge.Fork(ctx, n) })
	for i, seq := range seqs {
		if i < len(judges) {
			beams = append(beams, b.copyTo(seq, judges[i]))
		} else {
			seq.Close()
		}
	}
	if len(beams) < n {
		r.degraded.Store(true)
	}
	return beams, err
}

// halveWhileBusy asks for n, then for half as many while the engine is too busy for that.
func halveWhileBusy[T any](n int, ask func(n int) ([]T, error)) ([]T, error) {
	for ; n > 0; n /= 2 {
		got, err := ask(n)
		if !errors.Is(err, batcher.ErrBusy) {
			return got, err
		}
	}
	return nil, nil
}

// tokensPerWake is how many tokens a beam takes in at once: few enough for a budget of
// time to end the work in time.
const tokensPerWake = 16

// begin makes beams ready to be extended, each to the end of its solution step
// or, with whole set, to its own end. Their places among the search's beams begin
// at first; they are part of the randomness.
func (r *searchRun) begin(beams []*beam, first int, whole bool) {
	r.aim(beams, first, whole)
	if r.reporter.partials != nil {
		r.reporter.partials.begin(beams, first)
	}
}

// aim does that without telling the reader.
func (r *searchRun) aim(beams []*beam, first int, whole bool) {
	for i, b := range beams {
		b.limit = len(b.cand.IDs) + r.plan.Step.MaxTokens
		p := r.decoding.params
		p.Candidate, p.Temperature, p.Logprobs, p.Stop = first+i, r.temperature, true, r.decoding.breaks
		if b.whole = whole; whole {
			b.limit, p.Stop = r.longest(), r.decoding.ends
		}
		if len(r.req.Stop) == 0 && r.reporter.partials == nil && r.trusted == 0 && r.plan.Deadline == 0 { // else each token may be the last, or is to be shown
			p.FlushEvery = tokensPerWake
		}
		b.limit = min(b.limit, r.longest())
		b.step, b.stepTokens, b.params = b.step[:0], 0, p
	}
}

// longest returns how many tokens a candidate may have.
func (r *searchRun) longest() int {
	if m := r.req.Sampling.MaxTokens; m > 0 {
		return m
	}
	return math.MaxInt
}

// extend lets beams generate until each has ended, and calls done for each as it
// ends. When the budget of tokens is spent, it leaves the others paused.
//
// What is left of the budget is granted in equal shares, and what the beams
// that end have not used is shared out again when all others have used theirs.
// So where the budget ends depends on the beams' tokens, not on their speed.
func (r *searchRun) extend(ctx context.Context, beams []*beam, done func(b *beam) error) error {
	ctx, end := r.traced(ctx, "search step", len(beams))
	defer end()
	ctx, cancel := context.WithCancelCause(ctx) // the first error ends all
	defer cancel(nil)
	for _, b := range beams {
		b.paused = true
	}
	for len(beams) > 0 && r.budget.left > 0 && ctx.Err() == nil {
		granted := r.budget.share(beams)
		leave := r.startAll(ctx, granted)
		before := 0
		for _, b := range granted {
			before += len(b.cand.IDs)
		}
		err := parallel.Each(granted, func(_ int, b *beam) (err error) {
			defer func() {
				if err != nil {
					cancel(err)
				}
			}()
			if err := r.generate(ctx, b); err != nil || b.paused {
				return err
			}
			return done(b)
		})
		leave()
		if err != nil {
			return err
		}
		for _, b := range granted {
			r.budget.left -= len(b.cand.IDs)
		}
		r.budget.left += before
		beams = slices.DeleteFunc(slices.Clone(beams), func(b *beam) bool { return !b.paused })
	}
	return nil
}

// share grants beams what is left of the budget, and returns those for which
// there is anything.
func (g *budget) share(beams []*beam) []*beam {
	n, extra := g.left/len(beams), g.left%len(beams)
	for i, b := range beams {
		b.grant = len(b.cand.IDs) + min(n, b.limit-len(b.cand.IDs))
		if i < extra && b.grant < b.limit {
			b.grant++
		}
	}
	if n == 0 {
		return beams[:extra]
	}
	return beams
}

// startAll starts the generation of beams: here in one step of the engine, and on other
// machines, which leave ends.
func (r *searchRun) startAll(ctx context.Context, beams []*beam) (leave func()) {
	for _, b := range beams {
		b.params.MaxTokens = b.grant - len(b.cand.IDs)
	}
	beams, leave = r.send(ctx, beams)
	seqs := make([]*batcher.Sequence, len(beams))
	params := make([]sampling.Params, len(beams))
	for i, b := range beams {
		seqs[i], params[i] = b.seq, b.params
	}
	for i, run := range batcher.GenerateAll(ctx, seqs, params) {
		beams[i].run = run
	}
	return leave
}

// generate reads what startAll has started. When ctx ends because the search
// does, b stays as it is.
func (r *searchRun) generate(ctx context.Context, b *beam) error {
	defer func() { b.cand.Text = string(b.text) }()
	b.paused = false
	for run := b.run; ; run = b.seq.Generate(ctx, b.params) {
		for tok, err := range run {
			if err != nil {
				return r.dropIfEnded(ctx, err)
			}
			b.take(r, tok)
			if b.cand.Finish != "" || b.cand.Filtered || !b.whole && r.breaksAfter(b, tok.ID) {
				return nil
			}
			if n := len(b.cand.IDs); n >= b.grant {
				if n >= b.limit && !b.whole && b.shape.calling() {
					b.limit = r.longest()
				}
				b.paused = n < b.limit
				return nil
			}
		}
		b.params.MaxTokens = b.grant - len(b.cand.IDs) // a blank line has ended the run, or other machines have
	}
}

// dropIfEnded drops an error that the end of the search has caused.
func (r *searchRun) dropIfEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && r.ctx.Err() == nil {
		return nil
	}
	return err
}

// take adds a token to b.
func (b *beam) take(r *searchRun, tok sampling.Token) {
	c := b.cand
	c.IDs = append(c.IDs, tok.ID)
	r.budget.generated.Add(1)
	// The engine ends generations at solution steps too, where the answer goes on.
	full := r.req.Sampling.MaxTokens > 0 && len(c.IDs) >= r.req.Sampling.MaxTokens || b.seq.Len() >= r.Model.Engine.Limit()
	switch {
	case tok.Finish == sampling.FinishStop && !r.decoding.ends.Has(tok.ID):
		tok.Finish = sampling.Unfinished
		if full {
			tok.Finish = sampling.FinishLength
		}
	case tok.Finish == sampling.FinishLength && !full:
		tok.Finish = sampling.Unfinished
	}
	c.Readings.Add(&tok)
	b.logprobs += float64(tok.Logprob)
	b.certainty += float64(tok.Certainty)
	c.Logprob = float32(b.logprobs / float64(len(c.IDs)))
	c.Certainty = float32(b.certainty / float64(len(c.IDs)))
	if r.method == scaling.DeepConfidence {
		b.trust(r, &tok)
	}
	gained, end := b.dec.push(tok)
	written, listed := len(b.text), len(c.Tokens)
	b.text = append(b.text, gained.Text...)
	b.step = append(b.step, r.Model.Tokenizer.Piece(tok.ID)...)
	b.stepTokens++
	c.Tokens = append(c.Tokens, gained.Tokens...)
	c.Finish = end.Finish
	if b.shape != nil && !b.whole {
		b.shape.push(gained.Text)
		if at, over := b.shape.over(b.text); over && c.Finish == "" {
			c.Finish, b.text, c.Tokens = FinishStop, b.text[:max(at, written)], c.Tokens[:listed]
		}
	}
	r.note(b)
}

// breaksAfter reports whether a solution step ends with b's last token. Blank lines belong to
// the step before or after them, and a call of a tool has no steps within.
func (r *searchRun) breaksAfter(b *beam, last int32) bool {
	within, ended := b.shape.within()
	if b.shape.calling() || len(bytes.TrimSpace(b.step)) == 0 {
		return false
	}
	if within || ended {
		return ended
	}
	piece := len(r.Model.Tokenizer.Piece(last))
	stops := slices.ContainsFunc(r.plan.Step.Stop, func(stop string) bool {
		return bytes.Contains(b.step[max(0, len(b.step)-piece-len(stop)+1):], []byte(stop))
	})
	if !r.plan.Step.Lines() || b.stepTokens < longStep && !stops {
		return stops
	}
	if inFence(b.text) {
		return stops && b.stepTokens >= longStep
	}
	return stops || endsSentence(b.step)
}

// longStep is how many tokens a solution step of lines has before it may end with a sentence, and one
// of code with any line.
const longStep = 48

// inFence tells whether the end of text is within a fenced block of code.
func inFence(text []byte) bool { return bytes.Count(text, []byte("```"))%2 == 1 }

// endsSentence tells whether text ends with a sentence. A point behind a digit may be that of a number.
func endsSentence(text []byte) bool {
	n := len(text)
	return n > 1 && bytes.IndexByte([]byte(".!?"), text[n-1]) >= 0 && (text[n-2]|0x20 >= 'a' && text[n-2]|0x20 <= 'z' || text[n-2] >= 0x80)
}

// score judges what b has gained.
func (r *searchRun) score(ctx context.Context, b *beam) error {
	err := b.judge.Score(ctx, b.cand)
	switch {
	case errors.Is(err, batcher.ErrTooLong): // longer than the verifier reads: its scores so far stand
		err = nil
	case errors.Is(err, batcher.ErrBusy): // likewise when it has no room
		r.degraded.Store(true)
		err = nil
	}
	if r.trusted > 0 {
		r.weigh(b.cand)
	}
	if s := b.cand.StepScores; len(s) > 0 {
		b.cand.Score = r.plan.Aggregate.Of(s)
		r.note(b)
	}
	if err != nil {
		return r.dropIfEnded(ctx, err)
	}
	return nil
}
