package jinja

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrLimit is wrapped by the error of a render that needs more than its
// Limits allow.
var ErrLimit = errors.New("jinja: template exceeds its limits")

// Limits bounds what one render may use.
type Limits struct {
	Steps int           // nodes evaluated
	Bytes int           // bytes of text and values made or looked through, in all
	Depth int           // nodes within nodes, calls of macros included
	Time  time.Duration // 0: none
}

// DefaultLimits suffice for prompts of several megabytes.
func DefaultLimits() Limits {
	return Limits{Steps: 5_000_000, Bytes: 256 << 20, Depth: 1000, Time: 2 * time.Second}
}

// resources counts what one render has used of its limits. Operators, filters, tests and methods
// of values are functions that it is passed to: they pay, and see nothing else of the render.
type resources struct {
	ctx   context.Context
	lim   Limits
	end   time.Time // zero: none
	steps int
	bytes int
	taken int // steps, at the last look
	seen  int // bytes, likewise
	depth int
}

// renderer is the state of one render: its resources and its output.
type renderer struct {
	*resources
	out *strings.Builder
}

// The context and the clock are looked at every so many steps and bytes.
const (
	lookSteps = 1 << 10
	lookBytes = 1 << 20
)

// step counts one node and looks at context and clock now and then.
func (r *resources) step() error {
	r.steps++
	if r.steps > r.lim.Steps {
		return fmt.Errorf("%w: more than %d steps", ErrLimit, r.lim.Steps)
	}
	if r.steps-r.taken >= lookSteps {
		return r.look()
	}
	return nil
}

// look gives the reason why the render has to end, nil if it may go on.
func (r *resources) look() error {
	r.taken, r.seen = r.steps, r.bytes
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if !r.end.IsZero() && time.Now().After(r.end) {
		return fmt.Errorf("%w: more than %v", ErrLimit, r.lim.Time)
	}
	return nil
}

// What is charged for things that are not text: an element of a list, an entry
// of a mapping, with the values that stand for them.
const (
	itemBytes  = 48
	entryBytes = 160
)

// charge counts n bytes before they are made or looked through, so that bytes beyond
// the limit are never made. Work that takes longer for a byte than copying it counts
// as several. A value of the same size whatever its contents, such as a number, is not
// charged: the limit on steps bounds it.
func (r *resources) charge(n int) error {
	if n < 0 || n > r.lim.Bytes-r.bytes {
		return fmt.Errorf("%w: more than %d bytes", ErrLimit, r.lim.Bytes)
	}
	if r.bytes += n; r.bytes-r.seen > lookBytes {
		return r.look()
	}
	return nil
}

// chargeTimes charges for n × size bytes.
func (r *resources) chargeTimes(n, size int) error {
	if size > 0 && n > r.lim.Bytes/size {
		n, size = math.MaxInt, 1
	}
	return r.charge(n * size)
}

// key charges for looking a value up in a mapping.
func (r *resources) key(v any) error {
	s, _ := v.(string)
	return r.charge(len(s))
}

// newDict returns an empty mapping.
func newDict(r *resources) (*Dict, error) {
	if err := r.charge(entryBytes); err != nil {
		return nil, err
	}
	return NewDict(), nil
}

// setEntry does d[k] = v.
func setEntry(r *resources, d *Dict, k, v any) error {
	if err := r.key(k); err != nil {
		return err
	}
	if _, has := d.Get(k); !has {
		if err := r.charge(entryBytes); err != nil {
			return err
		}
	}
	return d.Set(k, v)
}

// print appends text to the output.
func (r *renderer) print(text string) error {
	if err := r.charge(len(text)); err != nil {
		return err
	}
	r.out.WriteString(text)
	return nil
}

// capture returns what run prints.
func (r *renderer) capture(run func() error) (string, error) {
	outer := r.out
	r.out = new(strings.Builder)
	err := run()
	text := r.out.String()
	r.out = outer
	return text, err
}

// frame is a scope of variables.
type frame struct {
	r      *renderer
	vars   map[string]any
	parent *frame
}

// scopeSteps is the price of a scope in steps: it takes more memory than other steps.
const scopeSteps = 4

func (f *frame) child() *frame {
	f.r.steps += scopeSteps
	return &frame{r: f.r, vars: make(map[string]any), parent: f}
}

// lookup returns the value of a name; scopes that lie deep count as steps.
func (f *frame) lookup(name string) any {
	depth := 0
	for s := f; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v
		}
		if depth++; depth%8 == 0 {
			f.r.steps++
		}
	}
	return undefined{"'" + name + "'"}
}

// run executes statements in order.
func (f *frame) run(body []stmt) error {
	for _, s := range body {
		if err := f.r.step(); err != nil {
			return err
		}
		if err := s.exec(f); err != nil {
			return err
		}
	}
	return nil
}

// value evaluates an expression, one level deeper.
func (f *frame) value(e expr) (any, error) {
	if err := f.r.step(); err != nil {
		return nil, err
	}
	if f.r.depth++; f.r.depth > f.r.lim.Depth {
		return nil, fmt.Errorf("%w: nested deeper than %d", ErrLimit, f.r.lim.Depth)
	}
	v, err := e.eval(f)
	f.r.depth--
	return v, err
}

// values evaluates expressions.
func (f *frame) values(list []expr) ([]any, error) {
	if err := f.r.charge(itemBytes * len(list)); err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, e := range list {
		v, err := f.value(e)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// Error says on which line of the template rendering failed.
type Error struct {
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("jinja: line %d: %v", e.Line, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// at adds the line to an error that has none yet.
func at(line int, err error) error {
	var placed *Error
	if err == nil || errors.As(err, &placed) || errors.Is(err, errBreak) || errors.Is(err, errContinue) {
		return err
	}
	return &Error{line, err}
}

// errBreak and errContinue carry the loop controls up to their loop.
var (
	errBreak    = errors.New("break")
	errContinue = errors.New("continue")
)

// itemsOf returns the elements that a loop over v meets.
func itemsOf(r *resources, v any) ([]any, error) {
	switch v := v.(type) {
	case undefined, nil:
		return nil, nil
	case *List:
		return v.Items, nil
	case *Dict:
		return v.keys, nil
	case *namespace:
		return v.keys, nil
	case string:
		if err := r.chargeTimes(len(v), itemBytes); err != nil {
			return nil, err
		}
		out := make([]any, 0, utf8.RuneCountInString(v))
		for _, c := range v {
			out = append(out, string(c))
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s is not iterable", kindName(v))
}

// paidItems returns the items of v, paid for as if copied.
func paidItems(r *resources, v any) ([]any, error) {
	items, err := itemsOf(r, v)
	if err != nil {
		return nil, err
	}
	return items, r.charge(itemBytes * len(items))
}

// stmt is a piece of the template's body; expr is a piece of an expression.
// Each knows the line it came from.
type (
	stmt interface{ exec(*frame) error }
	expr interface{ eval(*frame) (any, error) }
)
