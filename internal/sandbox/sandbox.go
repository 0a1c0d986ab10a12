package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/cpulimit"
)

// Program is code and what it is tested with.
type Program struct {
	Language string // one of Languages
	Code     string
	// Tests are code too, each run after Code. A test passes unless it throws, or is an
	// expression that is false.
	Tests []string
}

// DefaultSteps bound the work of a test, with that of the code before it: about a second's.
const DefaultSteps = 20_000_000

// allSteps bounds the work of all tests of a program, in tests that use all of their steps.
const allSteps = 5

// mostMemory bounds an instance, interpreter included, in bytes.
const mostMemory = 64 << 20

// Result is what tests have found.
type Result struct {
	Passed int
	Fault  string // of the first test that failed, a short line; empty: all passed
}

// Faults that are the sandbox's words, not the interpreter's.
const (
	FaultSteps     = "too many steps"
	FaultMemory    = "out of memory"
	FaultRecursion = "recursion too deep"
	FaultForbidden = "it reaches for what is outside the sandbox"
	FaultCrash     = "the interpreter crashed"
)

// Languages returns their names.
func Languages() []string { return []string{"javascript", "python"} }

// Run runs the tests of a program, one after the other, each with at most that many steps. A program
// can fail in any way without an error: errors are ctx's, or say that there is no such language.
func Run(ctx context.Context, p *Program, steps int64) (Result, error) {
	at := slices.Index(Languages(), p.Language)
	if at < 0 {
		return Result{}, fmt.Errorf("sandbox: there is no language %.40q; there are %s", p.Language, strings.Join(Languages(), " and "))
	}
	if err := interpreters[at].wait(ctx); err != nil {
		return Result{}, err
	}
	ctx, leave, err := cpulimit.Enter(ctx)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	var out Result
	left := allSteps * steps
	for i, test := range p.Tests {
		granted := min(steps, left)
		r, err := interpreters[at].run(ctx, p.Code, test, granted)
		if err != nil {
			return out, err
		}
		left -= granted - r.left
		switch {
		case !r.tested: // nor will it be for other tests
			return Result{Fault: "the code: " + line(r.fault)}, nil
		case r.fault == "":
			out.Passed++
		case out.Fault == "":
			out.Fault = fmt.Sprintf("test %d: %s", i+1, line(r.fault))
		}
	}
	return out, nil
}

// ran is what has become of one test.
type ran struct {
	fault  string // empty: it has passed
	tested bool   // the code before it has run without a fault
	left   int64  // of its steps
}

// run runs one test.
func (in *interpreter) run(ctx context.Context, code, test string, steps int64) (r ran, err error) {
	vm, err := in.open(ctx)
	if err != nil {
		return r, err
	}
	defer vm.close()
	vm.grant(steps)
	r.fault, err = in.language.test(vm, code, test)
	r.tested, r.left = vm.tested, max(0, vm.left)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.Is(err, errSteps):
		r.fault = FaultSteps
	case errors.Is(err, errForbidden):
		r.fault = FaultForbidden
	case strings.Contains(err.Error(), "stack overflow"):
		r.fault = FaultRecursion
	default:
		r.fault = FaultCrash
	}
	return r, nil
}

// mostFault bounds a fault in bytes.
const mostFault = 200

// line returns a text as one short line of valid UTF-8.
func line(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	if len(s) > mostFault {
		s = strings.ToValidUTF8(s[:mostFault], "") + "…"
	}
	return s
}
