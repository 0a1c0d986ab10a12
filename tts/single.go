package tts

import (
	"context"
	"iter"
	"slices"

	"github.com/lutra-lm/lutra/batcher"
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

// run returns the error that is still to be yielded: none when the reader has
// left or has had it.
func (s Single) run(ctx context.Context, req *Request, yield func(Delta, error) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prompt, err := s.Model.prompt(ctx, req)
	if err != nil {
		return err
	}
	seq, err := s.Model.Engine.Open(ctx, prompt)
	if err != nil {
		return err
	}
	defer seq.Close()
	if !yield(Delta{Usage: Usage{Prompt: len(prompt)}}, nil) {
		return nil
	}

	n := req.choices()
	if req.Echo || req.NoTokens {
		opening, err := s.opening(ctx, seq, prompt, req)
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
	sources := make([]func(context.Context) iter.Seq2[Delta, error], n)
	for i := range sources {
		defer seqs[i].Close()
		sources[i] = func(ctx context.Context) iter.Seq2[Delta, error] {
			return s.choice(ctx, seq, seqs[i], i, req)
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

// choice decodes one sequence, which is root or a fork of it, to its end.
func (s Single) choice(ctx context.Context, root, seq *batcher.Sequence, i int, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		defer seq.Close()
		p := req.Sampling
		p.Candidate = i
		p.Stop = slices.Concat(p.Stop, s.Model.Tokenizer.EOGs())
		dec := newDecoder(s.Model, req)
		for tok, err := range seq.Generate(ctx, p) {
			if err != nil {
				yield(Delta{}, err)
				return
			}
			d := dec.push(tok)
			d.Choice = i
			d.Usage.Completion = 1
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
func (s Single) opening(ctx context.Context, seq *batcher.Sequence, prompt []int32, req *Request) (Delta, error) {
	var d Delta
	if req.NoTokens {
		d.Finish = FinishLength
	}
	if !req.Echo {
		return d, nil
	}
	d.Text = s.Model.Decode(prompt)
	if !req.Sampling.Logprobs {
		return d, nil
	}
	scored, err := seq.PromptLogprobs(ctx, req.Sampling.TopLogprobs)
	if err != nil {
		return Delta{}, err
	}
	d.Tokens = append(d.Tokens, Token{ID: prompt[0], Bytes: s.Model.Bytes(prompt[0])})
	for _, t := range scored {
		d.Tokens = append(d.Tokens, s.Model.token(t))
	}
	return d, nil
}
