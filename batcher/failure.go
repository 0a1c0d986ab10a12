package batcher

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic says that a step panicked. What it has left behind may be shared with
// other engines: the pool that it computed on.
var ErrPanic = errors.New("batcher: panic")

// FailedError is what every caller of an engine gets once one of its steps has
// failed. It wraps ErrClosed and the cause.
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

// Failed is the failure that has stopped the engine; nil: none has. It may be
// called by any goroutine.
func (e *Engine) Failed() *FailedError {
	var failed *FailedError
	_ = errors.As(e.box.stopped(), &failed)
	return failed
}

// failure ends the engine for the error, or the panic, of a step.
func (e *Engine) failure(err error, panicked any) error {
	if panicked != nil {
		err = fmt.Errorf("%w: %v\n%s", ErrPanic, panicked, debug.Stack())
	}
	if err == nil {
		return nil
	}
	failed := &FailedError{Model: e.opt.Name, Err: err}
	e.stop(failed)
	return failed
}
