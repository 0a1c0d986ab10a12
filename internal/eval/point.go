package eval

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// Single is the method of one plain sample.
const Single = "single"

// Point is one setting of the experiment.
type Point struct {
	Model  string `json:"model"`
	Method string `json:"method"` // Single, or a plan's written form without its size, such as "best_of_n;select=max"
	N      int    `json:"n"`      // candidates, or beams of a beam search
	Width  int    `json:"width"`  // children of a surviving beam; 0 for methods of whole answers
}

// String is the point's method with its size, as scaling.Parse reads it.
func (p Point) String() string {
	switch {
	case p.Method == Single:
		return Single
	case p.Width > 0:
		return fmt.Sprintf("%s;n=%d;width=%d", p.Method, p.N, p.Width)
	}
	return fmt.Sprintf("%s;n=%d", p.Method, p.N)
}

// Plan is what the point asks of a search; ok is false for a single sample.
func (p Point) Plan() (plan scaling.Plan, ok bool, err error) {
	if p.Method == Single {
		return plan, false, nil
	}
	plan, err = scaling.Parse(p.String())
	return plan, true, err
}

// Points are all combinations, in the order given. One candidate is a single
// sample whatever the method, and appears once a model. Widths above n count
// as n.
func Points(models, methods []string, ns []int, width int) ([]Point, error) {
	var points []Point
	add := func(p Point) {
		if !slices.Contains(points, p) {
			points = append(points, p)
		}
	}
	for _, model := range models {
		for _, method := range methods {
			for _, n := range ns {
				p, err := point(model, method, n, width)
				if err != nil {
					return nil, err
				}
				add(p)
			}
		}
	}
	if len(points) == 0 {
		return nil, errors.New("eval: no models, methods or sizes to measure")
	}
	return points, nil
}

func point(model, method string, n, width int) (Point, error) {
	if n < 1 || width < 1 {
		return Point{}, fmt.Errorf("eval: n = %d and width = %d must be positive", n, width)
	}
	if method == Single || method == string(scaling.None) || n == 1 {
		return Point{Model: model, Method: Single, N: 1}, nil
	}
	p := Point{Model: model, Method: method, N: n}
	plan, err := scaling.Parse(method)
	if err != nil {
		return p, fmt.Errorf("eval: method %q: %w", method, err)
	}
	if plan.Method.Beams() {
		p.Width = min(width, n)
	}
	plan, _, err = p.Plan()
	if err == nil {
		limits := scaling.DefaultLimits()
		limits.N = max(limits.N, n)
		err = plan.Validate(limits)
	}
	if err != nil {
		return p, fmt.Errorf("eval: method %q: %w", p, err)
	}
	return p, nil
}
