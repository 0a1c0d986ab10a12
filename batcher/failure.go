package batcher

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/lutra-lm/lutra/models"
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

// FaultError is what callers get whose sequences were open when the model's backend
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

// Failed is the failure that has stopped the engine; nil: none has. It may be
// called by any goroutine.
func (e *Engine) Failed() *FailedError {
	var failed *FailedError
	_ = errors.As(e.box.stopped(), &failed)
	return failed
}

// failure ends the engine for the error, or the panic, of a step; its sequences alone
// if the model goes on without the backend that has failed.
func (e *Engine) failure(err error, panicked any) error {
	if panicked != nil {
		err = fmt.Errorf("%w: %v\n%s", ErrPanic, panicked, debug.Stack())
	}
	if err == nil {
		return nil
	}
	var fault *models.FaultError
	if panicked == nil && errors.As(err, &fault) && fault.Spare {
		e.recover(fault)
		return nil
	}
	failed := &FailedError{Model: e.opt.Name, Err: err}
	e.stop(failed)
	return failed
}

// recover ends all sequences and empties the cache: what the backend computed before
// it failed is not to be trusted.
func (e *Engine) recover(fault *models.FaultError) {
	failed := &FaultError{Model: e.opt.Name, Err: fault.Err}
	if e.opt.OnFault != nil {
		e.opt.OnFault(failed)
	}
	for _, s := range e.box.all() {
		s.end(failed)
	}
	e.step = step{}
	e.drain() // which takes their blocks
	e.kv.Forget()
	e.publish()
}
