package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/cpu"

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

// Steps returns the bound of a test's work and of the code before it: about a second's.
func Steps() int64 { return stepsOf(Compiles()) }

func stepsOf(compiled bool) int64 {
	if !compiled {
		return 2_000_000
	}
	return 100_000_000
}

// Interpreted says what it means for a server that WebAssembly is not compiled.
const Interpreted = "this processor or this system allows no compiled WebAssembly: tests of code are interpreted, with 2 million steps in place of 100 million"

// Compiles tells whether WebAssembly is compiled on this machine. A step takes 40 to 100 times as long
// where it is interpreted: on other processors than amd64 and arm64, and where the system lets no program
// make code.
var Compiles = sync.OnceValue(func() bool {
	return (runtime.GOARCH == "amd64" && cpu.X86.HasSSE41 || runtime.GOARCH == "arm64") && mapsCode()
})

// allSteps bounds the work of all tests of a program, in tests that use all of their steps.
const allSteps = 5

// Memory returns what bounds an instance of a language's interpreter, all included, in bytes; 0: there is
// no such language.
func Memory(language string) int64 {
	in, err := interpreterOf(language)
	if err != nil {
		return 0
	}
	return in.language.memory()
}

// Result holds the outcome of tests.
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

// interpreterOf returns a language's interpreter.
func interpreterOf(language string) (*interpreter, error) {
	at := slices.Index(Languages(), language)
	if at < 0 {
		return nil, fmt.Errorf("sandbox: there is no language %.40q; there are %s", language, strings.Join(Languages(), " and "))
	}
	return interpreters[at], nil
}

// Load waits until the interpreter of a language is compiled, which takes seconds and begins with the first
// who waits: nobody does within a place of package cpulimit. Errors are ctx's, or say that there is no such
// language.
func Load(ctx context.Context, language string) error {
	in, err := interpreterOf(language)
	if err != nil {
		return err
	}
	return in.wait(ctx)
}

// Run runs the tests of a program, one after the other, each with at most that many steps. It pauses
// within ctx's place of package cpulimit, and has been loaded before (Load). A program can fail in any way without an error: errors are
// ctx's, cpulimit.ErrBusy, or say that there is no such language.
func Run(ctx context.Context, p *Program, steps int64) (Result, error) {
	in, err := interpreterOf(p.Language)
	if err != nil {
		return Result{}, err
	}
	var out Result
	pace := newPace()
	left := allSteps * steps
	for i, test := range p.Tests {
		granted := min(steps, left)
		r, err := in.run(ctx, pace, p.Code, test, granted)
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

// ran is the outcome of one test.
type ran struct {
	fault  string // empty: it has passed
	tested bool   // the code before it has run without a fault
	left   int64  // of its steps
}

// run runs one test.
func (in *interpreter) run(ctx context.Context, p *pace, code, test string, steps int64) (r ran, err error) {
	vm, err := in.open(ctx, p)
	if err != nil {
		return r, err
	}
	defer vm.close()
	vm.giveSteps(steps)
	r.fault, err = in.language.test(vm, code, test)
	r.tested, r.left = vm.tested, max(0, vm.left)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case errors.Is(err, cpulimit.ErrBusy):
		return r, cpulimit.ErrBusy
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
