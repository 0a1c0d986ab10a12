package batcher

import (
	"context"
	"errors"
	"iter"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// Generate yields tokens until p ends it, or one error. Breaking out pauses: a
// later Generate goes on where the reader stopped. When ctx ends, generation
// pauses with ctx's error.
func (s *Sequence) Generate(ctx context.Context, p sampling.Params) iter.Seq2[sampling.Token, error] {
	return func(yield func(sampling.Token, error) bool) { s.generate(ctx, newGeneration(p), yield) }
}

// GenerateAll generates, as Generate does, for sequences of one engine, params[i] for seqs[i]. All begin in the same
// step, so sequences with equal tokens are computed as one for as long as they agree. Each result is to be ranged
// over once, by whichever goroutine; without a reader it generates until it is ahead.
func GenerateAll(ctx context.Context, seqs []*Sequence, params []sampling.Params) []iter.Seq2[sampling.Token, error] {
	runs := make([]iter.Seq2[sampling.Token, error], len(seqs))
	for i, s := range seqs {
		run := newGeneration(params[i])
		s.mu.Lock()
		if run.params.Validate() == nil && s.setup.bounds.checkGenerates() == nil && s.ready(1) == nil { // else ranging over the result reports the fault
			s.setRequest(request{kind: wantTokens, run: run, params: run.params, left: run.left})
		}
		s.mu.Unlock()
		runs[i] = func(yield func(sampling.Token, error) bool) { s.generate(ctx, run, yield) }
	}
	if len(seqs) > 0 {
		seqs[0].box.post(seqs...)
	}
	return runs
}

func (s *Sequence) generate(ctx context.Context, run *generation, yield func(sampling.Token, error) bool) {
	if err := errors.Join(run.params.Validate(), s.setup.bounds.checkGenerates()); err != nil {
		yield(sampling.Token{}, err)
		return
	}
	defer s.watch(ctx)()
	defer s.pause(run)
	for {
		tok, err := s.next(ctx, run)
		if err != nil {
			yield(sampling.Token{}, err)
			return
		}
		if !yield(tok, nil) || tok.Finish != sampling.Unfinished {
			return
		}
	}
}
