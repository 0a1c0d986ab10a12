package batcher

import (
	"context"
	"errors"
	"iter"

	"github.com/lutra-lm/lutra/models"
)

// Errors a caller can meet.
var (
	// ErrBusy says that the waiting queue is full; try again later.
	ErrBusy = errors.New("batcher: queue full")
	// ErrClosed says that the engine is draining or has stopped.
	ErrClosed = errors.New("batcher: engine closed")
	// ErrTooLong says that a prompt does not fit the context or the KV pool.
	ErrTooLong = errors.New("batcher: prompt longer than the context")
	// ErrToken says that a token id is outside the model's vocabulary, or that there is no token at all.
	ErrToken = errors.New("batcher: bad token")
	// ErrSample says that no token can be sampled: the logits are not numbers, or a Constraint allows none.
	ErrSample = errors.New("batcher: nothing to sample")
)

// Engine runs sequences over one model.
type Engine struct{}

// New makes an engine; it does nothing until Run or Step is called.
func New(m models.Model, kv *models.KVCache, opt Options) *Engine { panic("to be written") }

// Run steps until ctx ends, then stops all sequences with ErrClosed. It parks when there is no work.
func (e *Engine) Run(ctx context.Context) error { panic("to be written") }

// Step runs one step. It is for tests and for callers with a loop of their
// own; like Run it must be called from one goroutine at a time.
func (e *Engine) Step() (StepStats, error) { panic("to be written") }

// Drain refuses new sequences and returns when the open ones have been closed or ctx ends.
func (e *Engine) Drain(ctx context.Context) error { panic("to be written") }

// Stats is a snapshot for metrics: running, waiting, KV use, tile fill, counters.
func (e *Engine) Stats() Stats { panic("to be written") }

// Open queues a sequence whose prompt is computed when it is first needed.
// The sequence is closed when ctx ends.
func (e *Engine) Open(ctx context.Context, prompt []int32) (*Sequence, error) { panic("to be written") }

// Sequence is a caller's handle on tokens in the engine.
type Sequence struct{}

// Append adds tokens after the ones so far (generated ones included).
func (s *Sequence) Append(tokens ...int32) { panic("to be written") }

// Generate yields tokens until p ends it. Breaking out pauses: a later
// Generate goes on where the reader stopped.
func (s *Sequence) Generate(ctx context.Context, p Params) iter.Seq2[Token, error] {
	panic("to be written")
}

// Logits computes what is pending and returns the last position's logits, of
// ids only when given.
func (s *Sequence) Logits(ctx context.Context, ids ...int32) ([]float32, error) {
	panic("to be written")
}

// PromptLogprobs returns for every prompt position ≥ 1 the log-probability of the token there
// (echo + logprobs of the completions API, perplexity).
func (s *Sequence) PromptLogprobs(ctx context.Context, top int) ([]Token, error) {
	panic("to be written")
}

// Fork returns n sequences that share this one's computed blocks. The parent's prompt
// is computed once.
func (s *Sequence) Fork(ctx context.Context, n int) ([]*Sequence, error) { panic("to be written") }

// Len is the number of tokens, CachedPrompt how many prompt tokens the prefix cache spared.
func (s *Sequence) Len() int          { panic("to be written") }
func (s *Sequence) CachedPrompt() int { panic("to be written") }

// Timing tells what the sequence went through so far.
func (s *Sequence) Timing() Timing { panic("to be written") }

// Close frees the sequence at the next step. It may be called at any time, more than once.
func (s *Sequence) Close() { panic("to be written") }
