package batcher

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// generation is one call of Generate. left counts what its reader has not had.
type generation struct {
	params sampling.Params
	left   int
}

// Generate yields tokens until p ends it, or one error. Breaking out pauses: a
// later Generate goes on where the reader stopped. When ctx ends, generation
// pauses with ctx's error.
func (s *Sequence) Generate(ctx context.Context, p sampling.Params) iter.Seq2[sampling.Token, error] {
	return func(yield func(sampling.Token, error) bool) { s.generate(ctx, newGeneration(p), yield) }
}

// GenerateAll is Generate for sequences of one engine, params[i] for seqs[i],
// which all begin in the same step: so those whose tokens are equal are
// computed as one for as long as they agree. Each result is to be ranged over
// once, by whichever goroutine; one that is not generates until it is ahead
// of its reader.
func GenerateAll(ctx context.Context, seqs []*Sequence, params []sampling.Params) []iter.Seq2[sampling.Token, error] {
	runs := make([]iter.Seq2[sampling.Token, error], len(seqs))
	for i, s := range seqs {
		run := newGeneration(params[i])
		s.mu.Lock()
		if run.params.Validate() == nil && s.e.checkGenerates() == nil && s.ready(1) == nil { // else ranging over the result reports the fault
			s.setRequest(request{kind: wantTokens, run: run, params: run.params, left: run.left})
		}
		s.mu.Unlock()
		runs[i] = func(yield func(sampling.Token, error) bool) { s.generate(ctx, run, yield) }
	}
	if len(seqs) > 0 {
		seqs[0].e.box.post(seqs...)
	}
	return runs
}

func newGeneration(p sampling.Params) *generation {
	run := &generation{params: p, left: p.MaxTokens}
	if run.left == 0 {
		run.left = math.MaxInt
	}
	return run
}

func (s *Sequence) generate(ctx context.Context, run *generation, yield func(sampling.Token, error) bool) {
	if err := errors.Join(run.params.Validate(), s.e.checkGenerates()); err != nil {
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

// speaks fails for models whose outputs are scores or hidden states.
func (e *Engine) checkGenerates() error {
	if !e.bounds.generates {
		return fmt.Errorf("%w: the model gives %d numbers, not logits of %d tokens", sampling.ErrSample, e.bounds.outputs, e.bounds.vocab)
	}
	return nil
}

// watch wakes whoever waits for s when ctx ends, until the result is called.
func (s *Sequence) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		s.mu.Lock()
		s.cond.Broadcast()
		s.mu.Unlock()
	})
}

// next waits for the next token of run.
func (s *Sequence) next(ctx context.Context, run *generation) (sampling.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return sampling.Token{}, err
		}
		if len(s.content.unread) > 0 {
			return s.read(run), nil
		}
		if s.request.kind != wantTokens || s.request.run != run {
			if err := s.ready(1); err != nil {
				return sampling.Token{}, err
			}
			s.submit(request{kind: wantTokens, run: run, params: run.params, left: run.left})
		} else if s.err != nil {
			return sampling.Token{}, s.err
		}
		s.cond.Wait()
	}
}

// read takes the oldest unread token. Locked.
func (s *Sequence) read(run *generation) sampling.Token {
	tok := s.content.unread[0]
	s.content.unread = slices.Delete(s.content.unread, 0, 1)
	s.content.known++
	s.content.generated = true
	run.left--
	if s.stalled && len(s.content.unread) <= s.e.opt.Unread/2 {
		s.stalled = false
		s.e.box.post(s)
	}
	return tok
}

// pause withdraws run's order, if it is still the current one.
func (s *Sequence) pause(run *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.request.run == run && s.cancel() {
		s.e.box.post(s)
	}
}
