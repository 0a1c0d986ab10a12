package eval

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// Single is the method of one plain sample.
const Single = scaling.Sample

// Methods returns the names of all methods, Single first.
func Methods() []string {
	names := scaling.Names()
	return append([]string{Single}, names[:len(names)-1]...)
}

// Point is one setting of the experiment.
type Point struct {
	Model  string `json:"model"`
	Method string `json:"method"` // as single, single;temperature=0 or, without its size, a plan such as best_of_n;select=max
	N      int    `json:"n"`      // candidates, or beams of a beam search; 0: the server chooses them
	Width  int    `json:"width"`  // children of a surviving beam; 0 for methods of whole answers
}

// Plain reports whether the point is a single sample, without a search.
func (p Point) Plain() bool { return p.Method == Single || strings.HasPrefix(p.Method, Single+";") }

// String returns the point's method with its size, as scaling.Parse reads it.
func (p Point) String() string {
	switch {
	case p.Plain(), p.N == 0:
		return p.Method
	case p.Width > 0:
		return fmt.Sprintf("%s;n=%d;width=%d", p.Method, p.N, p.Width)
	}
	return fmt.Sprintf("%s;n=%d", p.Method, p.N)
}

// Plan returns what the point asks of a search; ok is false for a single sample.
func (p Point) Plan() (plan scaling.Plan, ok bool, err error) {
	if p.Plain() {
		return plan, false, nil
	}
	plan, err = scaling.Parse(p.String())
	return plan, true, err
}

// maxTemperature bounds the temperature of single samples.
const maxTemperature = 2

// Temperature returns a single sample's temperature: its own, or otherwise.
func (p Point) Temperature(otherwise float32) (float32, error) {
	_, settings, some := strings.Cut(p.Method, ";")
	if !p.Plain() || !some {
		return otherwise, nil
	}
	plan, err := scaling.Parse(string(scaling.None) + ";" + settings)
	if err != nil {
		return 0, err
	}
	if !reflect.DeepEqual(plan, scaling.Plan{Method: scaling.None, Temperature: plan.Temperature}) {
		return 0, errors.New("a single sample has no setting but temperature")
	}
	if plan.Temperature == nil {
		return otherwise, nil
	}
	if t := *plan.Temperature; !(t >= 0 && t <= maxTemperature) {
		return 0, fmt.Errorf("temperature: %v is not between 0 and %d", t, maxTemperature)
	}
	return *plan.Temperature, nil
}

// Points returns all combinations, in the order given. One candidate is a single
// sample whatever the method, and appears once a model. Widths above n count
// as n.
func Points(models, methods []string, ns []int, width int) ([]Point, error) {
	var points []Point
	for _, model := range models {
		for _, method := range methods {
			for _, n := range ns {
				p, err := point(model, method, n, width)
				if err != nil {
					return nil, err
				}
				if !slices.Contains(points, p) {
					points = append(points, p)
				}
			}
		}
	}
	if len(points) == 0 {
		return nil, errors.New("there are no models, methods or sizes to measure")
	}
	return points, nil
}

func point(model, method string, n, width int) (Point, error) {
	if n < 1 || width < 1 {
		return Point{}, fmt.Errorf("n = %d and width = %d must be positive", n, width)
	}
	if method == string(scaling.None) {
		method = Single
	}
	p := Point{Model: model, Method: method, N: n}
	if p.Plain() {
		p.N = 1
		if _, err := p.Temperature(0); err != nil {
			return p, fmt.Errorf("method %q: %w", method, err)
		}
		return p, nil
	}
	plan, err := scaling.Parse(method)
	if err != nil {
		return p, fmt.Errorf("method %q: %w", method, err)
	}
	if plan.Unchosen() {
		p.N = 0
	} else if plan.Method.Beams() {
		p.Width = min(width, n)
	}
	plan, _, err = p.Plan()
	if err == nil {
		limits := scaling.DefaultLimits()
		limits.N = max(limits.N, n)
		err = plan.Validate(limits)
	}
	var fault *scaling.Error
	switch {
	case errors.As(err, &fault) && fault.Code == scaling.CodeUnknownMethod:
		name, _, _ := strings.Cut(method, ";")
		return p, fmt.Errorf("there is no method %.40q; there are %s", name, strings.Join(Methods(), ", "))
	case err != nil:
		return p, fmt.Errorf("method %q: %w", p, err)
	case p.N == 1:
		return Point{Model: model, Method: Single, N: 1}, nil
	}
	return p, nil
}
