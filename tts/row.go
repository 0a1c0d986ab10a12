package tts

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
)

// row is a candidate in the making: a sequence of the generator, the judge
// that follows it, and its text so far.
type row struct {
	cand  *Candidate
	seq   *batcher.Sequence
	judge Judge
	dec   *decoder
	text  []byte
	step  []byte // bytes of the solution step that is being written
	nats  float64
	sure  float64
	begun time.Time // first token

	run    iter.Seq2[sampling.Token, error] // under way
	params sampling.Params                  // of it
	limit  int                              // tokens at most, with those before the run
	grant  int                              // of them, those that the budget has granted so far
	paused bool                             // the run has come to the grant's end, and to no other
	whole  bool                             // it ends with the answer, else with the solution step

	partial *partial // what reports say of it; nil: nobody wants to know

	node   int // its last in the tree
	shown  int // length of text up to there
	tokens int // generated up to there
}

// newRow is a row that has nothing yet.
func (r *searching) newRow(seq *batcher.Sequence, judge Judge) *row {
	return &row{cand: &Candidate{}, seq: seq, judge: judge, dec: newDecoder(r.Model, r.req), node: -1}
}

// close gives back what a row holds.
func (w *row) close() {
	w.seq.Close()
	w.judge.Close()
}

// copyTo makes a fork's row.
func (w *row) copyTo(seq *batcher.Sequence, judge Judge) *row {
	k, c := *w, *w.cand
	c.IDs, c.Tokens, c.StepScores = slices.Clone(c.IDs), slices.Clone(c.Tokens), slices.Clone(c.StepScores)
	k.cand, k.seq, k.judge, k.dec, k.text, k.step = &c, seq, judge, w.dec.clone(), slices.Clone(w.text), nil
	return &k
}

// fork returns w and up to n-1 copies of it: fewer when the engines have no
// more room for sequences.
func (r *searching) fork(w *row, n int) ([]*row, error) {
	rows := []*row{w}
	seqs, err := most(n-1, func(n int) ([]*batcher.Sequence, error) { return w.seq.Fork(r.ctx, n) })
	if err != nil {
		return nil, err
	}
	judges, err := most(len(seqs), func(n int) ([]Judge, error) { return w.judge.Fork(r.ctx, n) })
	for i, seq := range seqs {
		if i < len(judges) {
			rows = append(rows, w.copyTo(seq, judges[i]))
		} else {
			seq.Close()
		}
	}
	if len(rows) < n {
		r.degraded.Store(true)
	}
	return rows, err
}

// most asks for n, and for less as long as that is too many.
func most[T any](n int, ask func(n int) ([]T, error)) ([]T, error) {
	for ; n > 0; n /= 2 {
		got, err := ask(n)
		if !errors.Is(err, batcher.ErrBusy) {
			return got, err
		}
	}
	return nil, nil
}

// gather is how many tokens a row takes in at once: few enough for a budget of
// time to end the work in time.
const gather = 16

// begin makes rows ready to be extended, each to the end of its solution step
// or, with whole set, to its own end. Their places among the search's rows begin
// at first; they are part of the randomness.
func (r *searching) begin(rows []*row, first int, whole bool) {
	for i, w := range rows {
		w.limit = len(w.cand.IDs) + r.plan.Step.MaxTokens
		p := r.sampling
		p.Candidate, p.Temperature, p.Logprobs, p.Stop = first+i, r.temperature, true, r.breaks
		if w.whole = whole; whole {
			w.limit, p.Stop = math.MaxInt, r.ends
		}
		if len(r.req.Stop) == 0 && r.partials == nil { // else each token may be the last, or is to be shown
			p.Gather = gather
		}
		if m := r.req.Sampling.MaxTokens; m > 0 {
			w.limit = min(w.limit, m)
		}
		w.step, w.params = w.step[:0], p
	}
	if r.partials != nil {
		r.partials.begin(rows, first)
	}
}

// extend lets rows generate until each has come to its end, which done is told
// of at once, or until the budget of tokens is spent, which leaves rows paused.
//
// What is left of the budget is granted in equal shares, and what the rows
// that end have not used is shared out again when all others have used theirs.
// So where the budget ends depends on what the rows say, not on their speed.
func (r *searching) extend(ctx context.Context, rows []*row, done func(w *row) error) error {
	ctx, cancel := context.WithCancelCause(ctx) // the first error ends all
	defer cancel(nil)
	for _, w := range rows {
		w.paused = true
	}
	for len(rows) > 0 && r.left > 0 && ctx.Err() == nil {
		granted := r.share(rows)
		r.launch(ctx, granted)
		before := 0
		for _, w := range granted {
			before += len(w.cand.IDs)
		}
		err := each(granted, func(_ int, w *row) (err error) {
			defer func() {
				if err != nil {
					cancel(err)
				}
			}()
			if err := r.generate(ctx, w); err != nil || w.paused {
				return err
			}
			return done(w)
		})
		if err != nil {
			return err
		}
		for _, w := range granted {
			r.left -= len(w.cand.IDs)
		}
		r.left += before
		rows = slices.DeleteFunc(slices.Clone(rows), func(w *row) bool { return !w.paused })
	}
	return nil
}

// share grants rows what is left of the budget, and returns those for which
// there is anything.
func (r *searching) share(rows []*row) []*row {
	n, extra := r.left/len(rows), r.left%len(rows)
	for i, w := range rows {
		w.grant = len(w.cand.IDs) + min(n, w.limit-len(w.cand.IDs))
		if i < extra && w.grant < w.limit {
			w.grant++
		}
	}
	if n == 0 {
		return rows[:extra]
	}
	return rows
}

// launch starts the generation of rows in one step of the engine.
func (r *searching) launch(ctx context.Context, rows []*row) {
	seqs := make([]*batcher.Sequence, len(rows))
	params := make([]sampling.Params, len(rows))
	for i, w := range rows {
		w.params.MaxTokens = w.grant - len(w.cand.IDs)
		seqs[i], params[i] = w.seq, w.params
	}
	for i, run := range batcher.GenerateAll(ctx, seqs, params) {
		rows[i].run = run
	}
}

// generate takes in what launch has started. When ctx ends because the search
// does, w stays as it is.
func (r *searching) generate(ctx context.Context, w *row) error {
	defer func() { w.cand.Text = string(w.text) }()
	w.paused = false
	for run := w.run; ; run = w.seq.Generate(ctx, w.params) {
		for tok, err := range run {
			if err != nil {
				return r.excuse(ctx, err)
			}
			w.take(r, tok)
			if w.cand.Finish != "" || !w.whole && r.breaksAfter(w.step, tok.ID) {
				return nil
			}
			if n := len(w.cand.IDs); n >= w.grant {
				w.paused = n < w.limit
				return nil
			}
		}
		w.params.MaxTokens = w.grant - len(w.cand.IDs) // a blank line has ended the run
	}
}

// excuse is nil for an error that the end of the search has brought about.
func (r *searching) excuse(ctx context.Context, err error) error {
	if ctx.Err() != nil && r.ctx.Err() == nil {
		return nil
	}
	return err
}

// take adds a token to w.
func (w *row) take(r *searching, tok sampling.Token) {
	c := w.cand
	c.IDs = append(c.IDs, tok.ID)
	r.generated.Add(1)
	// The engine ends generations at solution steps too, where the answer goes on.
	full := r.req.Sampling.MaxTokens > 0 && len(c.IDs) >= r.req.Sampling.MaxTokens || w.seq.Len() >= r.Model.Engine.Limit()
	switch {
	case tok.Finish == sampling.FinishStop && !r.ends.Has(tok.ID):
		tok.Finish = sampling.Unfinished
		if full {
			tok.Finish = sampling.FinishLength
		}
	case tok.Finish == sampling.FinishLength && !full:
		tok.Finish = sampling.Unfinished
	}
	w.nats += float64(tok.Logprob)
	w.sure += float64(tok.Certainty)
	c.Logprob = float32(w.nats / float64(len(c.IDs)))
	c.Certainty = float32(w.sure / float64(len(c.IDs)))
	d := w.dec.push(tok)
	w.text = append(w.text, d.Text...)
	w.step = append(w.step, r.Model.Tokenizer.Piece(tok.ID)...)
	c.Tokens = append(c.Tokens, d.Tokens...)
	c.Finish = d.Finish
	r.note(w)
}

// breaksAfter tells whether a solution step ends with its last token. Blank
// lines belong to the step before or after them.
func (r *searching) breaksAfter(step []byte, last int32) bool {
	piece := len(r.Model.Tokenizer.Piece(last))
	for _, stop := range r.plan.Step.Stop {
		if bytes.Contains(step[max(0, len(step)-piece-len(stop)+1):], []byte(stop)) {
			return len(bytes.TrimSpace(step)) > 0
		}
	}
	return false
}

// score judges what w has gained.
func (r *searching) score(ctx context.Context, w *row) error {
	err := w.judge.Score(ctx, w.cand)
	switch {
	case errors.Is(err, batcher.ErrTooLong): // longer than the verifier reads: what it has said so far stands
		err = nil
	case errors.Is(err, batcher.ErrBusy): // likewise when it has no room
		r.degraded.Store(true)
		err = nil
	}
	if s := w.cand.StepScores; len(s) > 0 {
		w.cand.Score = r.plan.Aggregate.of(s)
		r.note(w)
	}
	if err != nil {
		return r.excuse(ctx, err)
	}
	return nil
}

// of is the aggregate of step scores, of which there is at least one.
func (a Aggregate) of(scores []float32) float32 {
	switch a {
	case AggregateMin:
		return slices.Min(scores)
	case AggregateMax:
		return slices.Max(scores)
	case AggregateLast:
		return scores[len(scores)-1]
	}
	sum, product := float32(0), float32(1)
	for _, s := range scores {
		sum += s
		product *= s
	}
	if a == AggregateProd {
		return product
	}
	return sum / float32(len(scores))
}
