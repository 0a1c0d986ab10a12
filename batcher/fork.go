package batcher

import (
	"context"
	"errors"
	"slices"
)

// Fork returns n sequences that share this one's computed blocks; what is
// pending but for the last token is computed first, once. The forks hold the
// tokens read so far and are closed when ctx ends; ErrBusy when they are too many.
func (s *Sequence) Fork(ctx context.Context, n int) ([]*Sequence, error) {
	if n < 0 {
		return nil, errForks
	}
	if s.setup.bounds.whole {
		return nil, errWhole
	}
	if n > s.setup.opt.Sequences {
		return nil, ErrBusy
	}
	s.mu.Lock()
	err := errors.Join(s.err, s.bad)
	f := &fork{at: s.content.known, children: make([]*Sequence, n)}
	for i := range f.children {
		k := newSequence(s.setup, s.box, slices.Clone(s.content.tokens[:s.content.known]), s.background, s.salt)
		k.age, k.content.prompt, k.content.generated = s.age, s.content.prompt, s.content.generated
		k.task.begun, k.task.forked = true, true
		f.children[i] = k
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := s.box.enter(0, f.children...); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.fork = f
	s.mu.Unlock()
	s.post()
	err = s.wait(ctx, func() bool { return s.fork == nil })
	for _, k := range f.children {
		k.closeWith(ctx)
	}
	if err != nil {
		s.mu.Lock()
		s.fork = nil
		s.mu.Unlock()
		s.post()
		for _, k := range f.children {
			k.Close()
		}
		return nil, err
	}
	cached := s.CachedPrompt() // known now that the prompt has been begun
	for _, k := range f.children {
		k.mu.Lock()
		k.timing.CachedPrompt = cached
		k.mu.Unlock()
	}
	return f.children, nil
}
