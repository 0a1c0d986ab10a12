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

	run    iter.Seq2[batcher.Token, error] // under way
	params batcher.Params                  // of it
	limit  int                             // its tokens at most
	whole  bool                            // it ends with the answer, else with the solution step

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

// gather is how many tokens a row takes in at once: few enough for a budget to
// end the work in time.
const gather = 16

// decode starts the generation of all rows in one step of the engine, each to
// the end of its solution step or, with whole set, to its own end. The rows'
// places among the search's rows begin at first; they are part of the
// randomness. Each row is then extended.
func (r *searching) decode(ctx context.Context, rows []*row, first int, whole bool) {
	seqs := make([]*batcher.Sequence, len(rows))
	params := make([]batcher.Params, len(rows))
	for i, w := range rows {
		w.limit = len(w.cand.IDs) + r.plan.Step.MaxTokens
		p := r.sampling
		p.Candidate, p.Temperature, p.Logprobs, p.Stop = first+i, r.temperature, true, r.breaks
		if w.whole = whole; whole {
			w.limit, p.Stop = math.MaxInt, r.ends
		}
		if len(r.req.Stop) == 0 { // else each token may be the last
			p.Gather = gather
		}
		if m := r.req.Sampling.MaxTokens; m > 0 {
			w.limit = min(w.limit, m)
		}
		p.MaxTokens = w.limit - len(w.cand.IDs)
		w.step, w.params = w.step[:0], p
		seqs[i], params[i] = w.seq, p
	}
	for i, run := range batcher.GenerateAll(ctx, seqs, params) {
		rows[i].run = run
	}
}

// extend takes in what decode has started. When ctx ends because the search
// does, w stays as it is.
func (r *searching) extend(ctx context.Context, w *row) error {
	defer func() { w.cand.Text = string(w.text) }()
	for run := w.run; ; run = w.seq.Generate(ctx, w.params) {
		for tok, err := range run {
			if err != nil {
				return r.excuse(ctx, err)
			}
			w.take(r, tok)
			if w.cand.Finish != "" || len(w.cand.IDs) >= w.limit || !w.whole && r.breaksAfter(w.step, tok.ID) {
				return nil
			}
		}
		w.params.MaxTokens = w.limit - len(w.cand.IDs) // a blank line has ended the run
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
func (w *row) take(r *searching, tok batcher.Token) {
	c := w.cand
	c.IDs = append(c.IDs, tok.ID)
	r.spend()
	// The engine ends generations at solution steps too, where the answer goes on.
	full := r.req.Sampling.MaxTokens > 0 && len(c.IDs) >= r.req.Sampling.MaxTokens || w.seq.Len() >= r.Model.Engine.Limit()
	switch {
	case tok.Finish == batcher.FinishStop && !slices.Contains(r.ends, tok.ID):
		tok.Finish = batcher.Unfinished
		if full {
			tok.Finish = batcher.FinishLength
		}
	case tok.Finish == batcher.FinishLength && !full:
		tok.Finish = batcher.Unfinished
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
