package tts

import (
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
)

// Single is the plain strategy: one sequence a choice. The prompt is computed
// once and forked; the choices are decoded together and their deltas come
// interleaved.
type Single struct {
	Model *Model
}

var _ Strategy = Single{}

// Run implements Strategy.
func (s Single) Run(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := s.run(ctx, req, yield); err != nil {
			yield(Delta{}, err)
		}
	}
}

// Prepare implements Strategy.
func (s Single) Prepare(ctx context.Context, req *Request) (*Prepared, error) {
	return req.prepare(ctx, s.Model, req.choices(), math.MaxInt)
}

// run returns the error that is still to be yielded: none when the reader has
// left or has had it.
func (s Single) run(ctx context.Context, req *Request, yield func(Delta, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prepared, err := s.Prepare(ctx, req)
	if err != nil {
		return err
	}
	prompt, n := prepared.Tokens, req.choices()
	open := s.Model.Engine.Open
	if req.Background {
		open = s.Model.Engine.OpenBackground
	}
	seq, err := open(ctx, prompt)
	if err != nil {
		return err
	}
	defer seq.Close()
	if !yield(prepared.first(), nil) {
		return nil
	}

	if req.Echo || req.NoTokens {
		opening, err := s.opening(ctx, seq, prepared, req)
		if err != nil {
			return err
		}
		for opening.Choice = range n {
			if !yield(opening, nil) {
				return nil
			}
		}
	}
	if req.NoTokens {
		return nil
	}

	seqs := []*batcher.Sequence{seq}
	if n > 1 {
		if seqs, err = seq.Fork(ctx, n); err != nil {
			return err
		}
		seq.Close()
	}
	params := slices.Repeat([]sampling.Params{req.sampling(s.Model, prepared.Thinking)}, n)
	for i := range params {
		params[i].Candidate = i
		if len(req.Delimiters) > 0 {
			params[i].Stop = sampling.NewTokenSet(params[i].Stop, s.Model.delimiters(req.Delimiters))
		}
	}
	req.continued(seqs, params)
	sources := make([]func(context.Context) iter.Seq2[Delta, error], n)
	dec := newDecoder(s.Model, req)
	for i, run := range batcher.GenerateAll(ctx, seqs, params) {
		defer seqs[i].Close()
		sources[i] = func(inner context.Context) iter.Seq2[Delta, error] {
			context.AfterFunc(inner, cancel) // the first to end ends what was begun with it
			return s.choice(req, run, seq, seqs[i], i, dec.clone())
		}
	}
	first := true
	for d, err := range Interleave(ctx, sources...) {
		if first && err == nil { // the prompt has been computed by now
			d.Usage.Cached = seq.CachedPrompt()
			first = false
		}
		if !yield(d, err) || err != nil {
			return nil
		}
	}
	return nil
}

// choice reads what one sequence, which is root or a fork of it, generates.
func (s Single) choice(req *Request, run iter.Seq2[sampling.Token, error], root, seq *batcher.Sequence, i int, dec *decoder) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		defer seq.Close()
		for tok, err := range run {
			if err != nil {
				yield(Delta{}, err)
				return
			}
			if req.Sampled != nil {
				req.Sampled(i, tok.ID)
			}
			d := dec.push(tok)
			d.Choice = i
			d.Usage.Completion, d.More = 1, d.Finish == "" && seq.Unread() > 0
			if d.Finish != "" {
				d.Timing = timing(root.Timing(), seq.Timing())
			}
			if !yield(d, nil) || d.Finish != "" {
				return
			}
		}
	}
}

// opening is what every choice begins with: the prompt, when it is wanted.
func (s Single) opening(ctx context.Context, seq *batcher.Sequence, prepared *Prepared, req *Request) (Delta, error) {
	prompt := prepared.Tokens
	var d Delta
	if req.NoTokens {
		d.Finish = FinishLength
	}
	if !req.Echo {
		return d, nil
	}
	if d.Text = prepared.Text; d.Text == "" {
		d.Text = s.Model.Spell(prompt)
	}
	if !req.Sampling.Logprobs {
		return d, nil
	}
	scored, err := seq.PromptLogprobs(ctx, req.Sampling.TopLogprobs)
	if err != nil {
		return Delta{}, err
	}
	first := Token{ID: prompt[0], Bytes: s.Model.Bytes(prompt[0])}
	first.Hidden = !strings.HasPrefix(d.Text, string(first.Bytes)) && s.Model.hidden(prompt[0]) // a BOS that was added
	d.Tokens = append(d.Tokens, first)
	for _, t := range scored {
		token := s.Model.token(t)
		token.Hidden = false // the text has its name
		d.Tokens = append(d.Tokens, token)
	}
	return d, nil
}
