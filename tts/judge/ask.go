package judge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// ask returns the ruling of an asking, whose critiques take at most tokens together. What is being
// asked, or has been, is not asked again.
func (d *desk) ask(ctx context.Context, a *asking, tokens int) (*ruling, error) {
	head, rest, inThought, err := a.encode(ctx, d.model)
	if err != nil {
		return nil, err
	}
	key, _ := binary.Append(nil, binary.LittleEndian, rest)
	for {
		d.mu.Lock()
		r := d.rulings[string(key)]
		first := r == nil
		if first {
			r = &ruling{done: make(chan struct{})}
			d.rulings[string(key)] = r
		}
		d.mu.Unlock()
		if first {
			w := &writing{desk: d, asking: a, inThought: inThought, most: min(d.how.MaxTokens, tokens/d.how.Critiques)}
			r.err = w.write(ctx, r, head, rest)
			if r.err != nil { // another may try again
				d.mu.Lock()
				delete(d.rulings, string(key))
				d.mu.Unlock()
			}
			close(r.done)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if r.err == nil || first {
			return r, r.err
		}
	}
}

// writing is the critiques of one asking.
type writing struct {
	*desk
	*asking
	inThought bool
	most      int // tokens of a critique

	base    *batcher.Sequence // the prompt
	forking sync.Mutex        // held to fork base
}

// write has critiques written, and fills the ruling.
func (w *writing) write(ctx context.Context, r *ruling, head, rest []int32) error {
	n := w.how.Critiques
	if err := w.rows.Acquire(ctx, int64(n)); err != nil {
		return context.Cause(ctx)
	}
	defer w.rows.Release(int64(n))
	var err error
	if w.base, err = w.open(ctx, head, rest); err != nil {
		return err
	}
	defer w.base.Close()
	params, err := w.params(ctx)
	if err != nil {
		return err
	}
	r.read = len(rest)
	votes := make([]vote, n)
	for begun := 0; begun < n; {
		seqs, err := w.fork(ctx, n-begun)
		if err != nil {
			return err
		}
		each := slices.Repeat([]sampling.Params{params}, len(seqs))
		for i := range each {
			each[i].Candidate = begun + i
		}
		runs := make([]iter.Seq2[sampling.Token, error], len(seqs))
		if w.most > 0 {
			runs = batcher.GenerateAll(ctx, seqs, each)
		}
		err = parallel.Each(seqs, func(i int, seq *batcher.Sequence) (err error) {
			defer seq.Close()
			votes[begun+i], err = w.critique(ctx, seq, runs[i])
			return err
		})
		if err != nil {
			return err
		}
		begun += len(seqs)
	}
	for i := range votes {
		r.critiques = append(r.critiques, votes[i].Critique)
		r.read += votes[i].lead
	}
	r.score = combine(w.how.Combine, w.form.values, votes)
	return nil
}

// params returns how critiques are sampled.
func (w *writing) params(ctx context.Context) (sampling.Params, error) {
	p := sampling.Params{MaxTokens: w.most, Temperature: *w.how.Temperature, Seed: w.seed, Stop: sampling.NewTokenSet(w.model.Tokenizer.EOGs())}
	if w.form.schema != "" {
		format, err := w.model.Formats.Format(ctx, constrain.Schema, w.form.schema)
		if err != nil {
			return p, err
		}
		p.Constraint = w.model.HeldTo(format)
	}
	return p, nil
}

// open returns a sequence of the prompt, which begins with what all of the request begin with.
func (d *desk) open(ctx context.Context, head, rest []int32) (*batcher.Sequence, error) {
	d.heading.Lock()
	defer d.heading.Unlock()
	if d.seq == nil && len(head) > 0 {
		seq, err := d.model.Engine.OpenBackground(d.ctx, head)
		if err != nil {
			return nil, err
		}
		d.seq, d.head = seq, head
	}
	if !slices.Equal(head, d.head) || len(head) == 0 {
		return d.model.Engine.OpenBackground(ctx, slices.Concat(head, rest))
	}
	seqs, err := d.seq.Fork(ctx, 1)
	if err != nil {
		return nil, err
	}
	seqs[0].Append(rest...)
	return seqs[0], nil
}

// fork returns up to n forks of the prompt, at least one: fewer where there is no room for all.
func (w *writing) fork(ctx context.Context, n int) ([]*batcher.Sequence, error) {
	w.forking.Lock()
	defer w.forking.Unlock()
	for ; ; n /= 2 {
		seqs, err := w.base.Fork(ctx, n)
		if n == 1 || !errors.Is(err, batcher.ErrBusy) {
			return seqs, err
		}
	}
}

// vote is a critique with what it decides.
type vote struct {
	tts.Critique
	shares []float64 // probabilities of the decision's words
	lead   int       // tokens that were put behind it
}

// critique reads what a sequence writes up to its decision, and has it decide.
func (w *writing) critique(ctx context.Context, seq *batcher.Sequence, run iter.Seq2[sampling.Token, error]) (v vote, err error) {
	var ids []int32
	var text []byte
	lengths := []int{0} // of text, behind each token
	at, decides, ended := 0, false, false
	for tok, err := range tokens(run) {
		if err != nil {
			return v, err
		}
		if ended = tok.Finish == sampling.FinishStop; ended {
			break
		}
		piece := w.model.Tokenizer.Piece(tok.ID)
		if len(piece) == 0 {
			piece = w.model.Mark(tok.ID)
		}
		ids, text = append(ids, tok.ID), append(text, piece...)
		lengths = append(lengths, len(text))
		if at, decides = w.form.decision(string(text)); decides {
			break
		}
	}
	v.Step, v.Tokens = w.step, len(ids)
	w.mu.Lock()
	w.spent += len(ids)
	w.mu.Unlock()
	lead := ""
	if !decides {
		open := w.inThought && !bytes.Contains(text, []byte("</think>"))
		at, lead = len(text), w.form.closing(string(text), open)
	}
	kept := 0
	for kept < len(ids) && lengths[kept+1] <= at {
		kept++
	}
	lead = string(text[lengths[kept]:at]) + lead
	if kept < len(ids) || ended { // it goes on otherwise than it was written
		seq = nil
	}
	if v.shares, v.lead, err = w.decide(ctx, seq, ids[:kept], lead); err != nil {
		return v, err
	}
	likeliest := 0
	for i, share := range v.shares {
		if share > v.shares[likeliest] {
			likeliest = i
		}
		v.Score += float32(share * w.form.values[i])
	}
	v.Text = w.form.begin + string(text[:lengths[kept]]) + lead + w.form.words[likeliest] + w.form.end
	if w.opt.Format == FormatThink && w.form.schema == "" {
		v.Labels = readLabels(v.Text, w.step)
	}
	return v, nil
}

// tokens returns what a run yields; of none, nothing.
func tokens(run iter.Seq2[sampling.Token, error]) iter.Seq2[sampling.Token, error] {
	if run == nil {
		return func(func(sampling.Token, error) bool) {}
	}
	return run
}
