package batcher

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// generation is one call of Generate. left counts what its reader has not had.
type generation struct {
	params Params
	left   int
}

// Generate yields tokens until p ends it, or one error. Breaking out pauses: a
// later Generate goes on where the reader stopped. When ctx ends, generation
// pauses with ctx's error.
func (s *Sequence) Generate(ctx context.Context, p Params) iter.Seq2[Token, error] {
	return func(yield func(Token, error) bool) {
		if err := errors.Join(p.Validate(), s.e.speaks()); err != nil {
			yield(Token{}, err)
			return
		}
		run := &generation{params: p, left: p.MaxTokens}
		if run.left == 0 {
			run.left = math.MaxInt
		}
		defer s.watch(ctx)()
		defer s.pause(run)
		for {
			tok, err := s.next(ctx, run)
			if err != nil {
				yield(Token{}, err)
				return
			}
			if !yield(tok, nil) || tok.Finish != Unfinished {
				return
			}
		}
	}
}

// speaks fails for models whose outputs are scores.
func (e *Engine) speaks() error {
	if e.cfg.Outputs != e.cfg.Vocab {
		return fmt.Errorf("%w: the model gives %d scores, not logits of %d tokens", ErrSample, e.cfg.Outputs, e.cfg.Vocab)
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
func (s *Sequence) next(ctx context.Context, run *generation) (Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if err := ctx.Err(); err != nil {
			return Token{}, err
		}
		if len(s.unread) > 0 {
			return s.read(run), nil
		}
		if s.order.kind != wantTokens || s.order.run != run {
			if err := s.ready(1); err != nil {
				return Token{}, err
			}
			s.ask(order{kind: wantTokens, run: run, params: run.params, left: run.left})
		} else if s.err != nil {
			return Token{}, s.err
		}
		s.cond.Wait()
	}
}

// read takes the oldest unread token. Locked.
func (s *Sequence) read(run *generation) Token {
	tok := s.unread[0]
	s.unread = slices.Delete(s.unread, 0, 1)
	s.known++
	s.said = true
	s.timing.Generated++
	run.left--
	if s.stalled && len(s.unread) <= s.e.opt.Unread/2 {
		s.stalled = false
		s.e.box.post(s)
	}
	return tok
}

// pause withdraws run's order, if it is still the current one.
func (s *Sequence) pause(run *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order.run == run && s.halt() {
		s.e.box.post(s)
	}
}
