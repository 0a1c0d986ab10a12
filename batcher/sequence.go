package batcher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
)

// Sequence is a caller's handle on tokens in the engine. Its methods are for
// one goroutine at a time, Close, Len and Timing for any. Inside a loop over
// Generate they act on the tokens read so far, and generation goes on from
// what they leave.
//
// It has two sides: task is the step loop's alone, content and orders are shared
// with its caller.
type Sequence struct {
	e          *Engine
	id         uint64 // order of entry
	age        uint64 // rank of the sequence that was opened, whose forks this one descends from
	posted     bool   // guarded by the mailbox
	unhook     func() bool
	background bool // opened by OpenBackground, or a fork of one that was

	task task // owned by the step loop

	// mu guards what follows, shared by the caller and the step loop. Nobody
	// holds two of these locks while waiting, and none while a step computes.
	mu      sync.Mutex
	cond    sync.Cond
	content content
	orders
	err    error // closed, or failed
	timing Timing
}

// content is the tokens that a sequence holds.
type content struct {
	tokens    []int32          // all, unread ones included
	prompt    int              // tokens before the first generated one
	known     int              // tokens that the caller appended or read
	unread    []sampling.Token // tokens[known:], as sampled
	generated bool             // the caller has read a generated token
	cutAt     int              // the least length that tokens were cut to since the loop last looked
}

// orders is what a caller wants of its sequence.
type orders struct {
	epoch   uint64 // changes whenever the caller changes tokens or order
	request request
	fork    *fork
	stalled bool  // order is suspended until the reader catches up
	bad     error // Append was given something unusable
}

// kind is what a caller waits for.
type kind uint8

const (
	nothing    kind = iota
	wantTokens      // Generate
	wantLogits      // Logits
	wantScores      // PromptLogprobs
	wantMean        // Embed
	wantFirst       // Embed
)

// order is a caller's wish. The loop resets kind to nothing when it is fulfilled.
type request struct {
	kind   kind
	run    *generation      // wantTokens: whose
	params sampling.Params  // wantTokens
	left   int              // wantTokens: how many may still be sampled
	ids    []int32          // wantLogits: which; none for all
	row    []float32        // wantLogits: the result
	top    int              // wantScores: alternatives
	scored []sampling.Token // wantScores: the result; its length is how far it has come
	sum    []float64        // wantMean: of the rows so far
	summed int              // wantMean: how many these are
}

// fork asks for copies of the first at tokens.
type fork struct {
	at       int
	children []*Sequence
}

func (e *Engine) newSequence(tokens []int32, background bool) *Sequence {
	s := &Sequence{e: e, background: background}
	s.content = content{tokens: tokens, prompt: len(tokens), known: len(tokens), cutAt: math.MaxInt}
	s.cond.L = &s.mu
	s.task.demand.Background = background
	s.timing.Opened = e.opt.Now()
	return s
}

// Open queues a sequence whose prompt is computed when it is first needed.
// The sequence is closed when ctx ends. Errors: ErrTooLong, ErrToken, ErrBusy,
// ErrClosed, ctx's own.
func (e *Engine) Open(ctx context.Context, prompt []int32) (*Sequence, error) {
	return e.open(ctx, prompt, false)
}

// OpenBackground is Open for work that is done beside others' streams, such as
// the candidates of a search: the sequence and its forks give way to those
// that Open makes as far as Options.BackgroundSlowdown demands, though never for good.
func (e *Engine) OpenBackground(ctx context.Context, prompt []int32) (*Sequence, error) {
	return e.open(ctx, prompt, true)
}

func (e *Engine) open(ctx context.Context, prompt []int32, background bool) (*Sequence, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.checkTokens(0, prompt); err != nil {
		return nil, err
	}
	s := e.newSequence(slices.Clone(prompt), background)
	if err := e.box.enter(&e.opt, 1, s); err != nil {
		return nil, err
	}
	s.closeWith(ctx)
	return s, nil
}

// checkTokens verifies that tokens may follow have others.
func (e *Engine) checkTokens(have int, tokens []int32) error {
	if have+len(tokens) > e.bounds.limit {
		return fmt.Errorf("%w: %d tokens, room for %d", ErrTooLong, have+len(tokens), e.bounds.limit)
	}
	for i, id := range tokens {
		if id < 0 || int(id) >= e.bounds.vocab {
			return fmt.Errorf("%w: id %d at position %d, vocabulary of %d", ErrToken, id, have+i, e.bounds.vocab)
		}
	}
	return nil
}

// closeWith closes s when ctx ends.
func (s *Sequence) closeWith(ctx context.Context) {
	s.unhook = context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
}

// Close frees the sequence at the next step. It may be called at any time, more than once.
func (s *Sequence) Close() {
	s.unhook()
	s.end(ErrClosed)
}

// end closes s with the error that its caller will get.
func (s *Sequence) end(err error) {
	s.mu.Lock()
	done := s.err != nil
	if !done {
		s.err, s.content.unread = err, nil
		s.epoch++
		s.cond.Broadcast()
	}
	s.mu.Unlock()
	if !done {
		s.e.box.post(s)
	}
}

// Len is the number of tokens that the caller has appended or read.
func (s *Sequence) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.content.known
}

// Unread is the number of generated tokens that the caller can read without waiting.
func (s *Sequence) Unread() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.content.unread)
}

// CachedPrompt is how many prompt tokens the prefix cache saved; a fork has its parent's.
func (s *Sequence) CachedPrompt() int { return s.Timing().CachedPrompt }

// Timing is the times of the stages that the sequence has reached.
func (s *Sequence) Timing() Timing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timing
}

// Append adds tokens after the ones so far (generated ones included). What
// cannot be appended (ErrTooLong, ErrToken) fails the next call that computes.
func (s *Sequence) Append(tokens ...int32) { s.add(tokens, false) }

// Adopt adds tokens that another engine has generated, as if Generate had yielded
// them here: what follows is sampled alike. Faults are reported as Append's are.
func (s *Sequence) Adopt(tokens ...int32) { s.add(tokens, true) }

// add is Append, or with generated set Adopt.
func (s *Sequence) add(tokens []int32, generated bool) {
	s.mu.Lock()
	if s.bad == nil {
		s.bad = s.e.checkTokens(s.content.known, tokens)
	}
	news := false
	if s.bad == nil && len(tokens) > 0 {
		news = s.cancel()
		s.content.tokens = append(s.content.tokens, tokens...)
		s.content.known = len(s.content.tokens)
		switch {
		case generated:
			s.content.generated = true
			s.timing.LastToken = s.e.opt.Now()
			if s.timing.FirstToken.IsZero() {
				s.timing.FirstToken = s.timing.LastToken
			}
		case !s.content.generated:
			s.content.prompt = s.content.known
		}
	}
	s.mu.Unlock()
	if news {
		s.e.box.post(s)
	}
}

// halt withdraws the order and forgets what was sampled beyond the reader. It
// reports whether the caller must post. Locked.
func (s *Sequence) cancel() bool {
	news := s.request.kind != nothing
	if len(s.content.tokens) > s.content.known {
		s.content.tokens = s.content.tokens[:s.content.known]
		s.content.cutAt = min(s.content.cutAt, s.content.known)
		s.content.unread = s.content.unread[:0]
		news = true
	}
	s.request.kind, s.stalled = nothing, false
	if news {
		s.epoch++
	}
	return news
}

// ask gives the loop a new order. Locked.
func (s *Sequence) submit(o request) {
	s.setRequest(o)
	s.e.box.post(s)
}

// putOrder changes the order; the caller must post. Locked.
func (s *Sequence) setRequest(o request) {
	s.cancel()
	s.request = o
	s.epoch++
}

// ready tells why an order that needs room for more tokens cannot be placed. Locked.
func (s *Sequence) ready(room int) error {
	switch {
	case s.err != nil:
		return s.err
	case s.bad != nil:
		return s.bad
	case s.content.known == 0:
		return fmt.Errorf("%w: the sequence is empty", ErrToken)
	case s.content.known+room > s.e.bounds.limit:
		return fmt.Errorf("%w: %d tokens, room for %d", ErrTooLong, s.content.known+room, s.e.bounds.limit)
	}
	return nil
}

// wait returns when done does, or with an error.
func (s *Sequence) wait(ctx context.Context, done func() bool) error {
	defer s.watch(ctx)()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !done() {
		if s.err != nil {
			return s.err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		s.cond.Wait()
	}
	return nil
}

// fulfil places an order and waits for it.
func (s *Sequence) await(ctx context.Context, o request) (request, error) {
	s.mu.Lock()
	err := s.ready(0)
	if err == nil {
		s.submit(o)
	}
	s.mu.Unlock()
	if err != nil {
		return o, err
	}
	err = s.wait(ctx, func() bool { return s.request.kind == nothing })
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.cancel() {
		s.e.box.post(s)
	}
	return s.request, err
}

// Logits computes what is pending and returns the last position's logits, of
// ids only when given: [Config.Outputs] or [len(ids)], or models.ErrNotFinite.
func (s *Sequence) Logits(ctx context.Context, ids ...int32) ([]float32, error) {
	width := s.e.bounds.outputs
	for _, id := range ids {
		if id < 0 || int(id) >= width {
			return nil, fmt.Errorf("%w: no logit %d among %d", ErrToken, id, width)
		}
	}
	if len(ids) > 0 {
		width = len(ids)
	}
	o, err := s.await(ctx, request{kind: wantLogits, ids: ids, row: make([]float32, width)})
	if err == nil {
		err = models.CheckFinite(o.row)
	}
	if err != nil {
		return nil, err
	}
	return o.row, nil
}

// PromptLogprobs returns for every position ≥ 1 so far the log-probability of
// the token there, and the top alternatives (echo + logprobs of the
// completions API, perplexity): element i tells of position i+1. Every
// position is computed anew; the prefix cache cannot help.
func (s *Sequence) PromptLogprobs(ctx context.Context, top int) ([]sampling.Token, error) {
	p := sampling.Params{TopLogprobs: top}
	if err := errors.Join(p.Validate(), s.e.checkGenerates()); err != nil {
		return nil, err
	}
	n := s.Len()
	if n == 1 {
		return nil, nil
	}
	o, err := s.await(ctx, request{kind: wantScores, top: top, scored: make([]sampling.Token, 0, max(0, n-1))})
	if err != nil {
		return nil, err
	}
	return o.scored, nil
}

// errWhole says that a model reads whole texts, so that none goes on from another.
var errWhole = errors.New("batcher: sequences of this model cannot be forked")

// errForks says that Fork was asked for a negative number.
var errForks = errors.New("batcher: negative number of forks")

// Fork returns n sequences that share this one's computed blocks; what is
// pending but for the last token is computed first, once. The forks hold the
// tokens read so far and are closed when ctx ends; ErrBusy when they are too many.
func (s *Sequence) Fork(ctx context.Context, n int) ([]*Sequence, error) {
	if n < 0 {
		return nil, errForks
	}
	if s.e.bounds.whole {
		return nil, errWhole
	}
	if n > s.e.opt.Sequences {
		return nil, ErrBusy
	}
	s.mu.Lock()
	err := errors.Join(s.err, s.bad)
	f := &fork{at: s.content.known, children: make([]*Sequence, n)}
	for i := range f.children {
		k := s.e.newSequence(slices.Clone(s.content.tokens[:s.content.known]), s.background)
		k.age, k.content.prompt, k.content.generated = s.age, s.content.prompt, s.content.generated
		k.task.begun = true
		f.children[i] = k
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := s.e.box.enter(&s.e.opt, 0, f.children...); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.fork = f
	s.mu.Unlock()
	s.e.box.post(s)
	err = s.wait(ctx, func() bool { return s.fork == nil })
	for _, k := range f.children {
		k.closeWith(ctx)
	}
	if err != nil {
		s.mu.Lock()
		s.fork = nil
		s.mu.Unlock()
		s.e.box.post(s)
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
