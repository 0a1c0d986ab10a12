package batcher

import (
	"errors"
	"fmt"
)

// Errors a caller can meet.
var (
	// ErrBusy says that the waiting queue is full; try again later.
	ErrBusy = errors.New("batcher: queue full")
	// ErrClosed says that the sequence was closed, or that the engine is draining or has stopped.
	ErrClosed = errors.New("batcher: closed")
	// ErrTooLong says that a prompt does not fit the context or the KV pool.
	ErrTooLong = errors.New("batcher: prompt longer than the context")
	// ErrToken says that a token id is outside the model's vocabulary, or that there is no token at all.
	ErrToken = errors.New("batcher: bad token")
)

// ErrNoEmbedding says that a model gives no hidden states.
var ErrNoEmbedding = errors.New("batcher: the model embeds no texts")

// ErrPanic says that a step panicked. What it has left behind may be shared with
// other engines: the pool that it computed on.
var ErrPanic = errors.New("batcher: panic")

// FailedError tells every caller of an engine that one of its steps has failed. It
// wraps ErrClosed and the cause.
type FailedError struct {
	Model string // Options.Name
	Err   error
}

// Error names the model and the cause.
func (e *FailedError) Error() string {
	return fmt.Sprintf("batcher: model %q has failed: %v", e.Model, e.Err)
}

// Unwrap gives ErrClosed and the cause.
func (e *FailedError) Unwrap() []error { return []error{ErrClosed, e.Err} }

// FaultError tells callers whose sequences were open that the model's backend has
// failed. New sequences are computed without it. It wraps the cause.
type FaultError struct {
	Model string // Options.Name
	Err   error
}

// Error names the model and the cause.
func (e *FaultError) Error() string {
	return fmt.Sprintf("batcher: sequences of model %q ended: %v", e.Model, e.Err)
}

// Unwrap gives the cause.
func (e *FaultError) Unwrap() error { return e.Err }

// errWhole says that a model reads whole texts, so that none goes on from another.
var errWhole = errors.New("batcher: sequences of this model cannot be forked")

// errForks says that Fork was asked for a negative number.
var errForks = errors.New("batcher: negative number of forks")
