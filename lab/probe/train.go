package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/tts/probe"
)

// leastExamples is the least number of right answers, and of wrong ones, that a line is fitted to.
const leastExamples = 20

// penalties are the strengths of regularisation that are tried, from the strongest on.
var penalties = []float64{0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001}

// Fit trains the probe.
func (t *Trainer) Fit(ctx context.Context, c *models.Config, sha256 string) (*probe.Probe, *Report, error) {
	p := &probe.Probe{Of: probe.OfModel(c), Layers: t.read.Layers}
	p.Of.SHA256 = sha256
	report := &Report{Problems: len(t.problems), N: t.n, Verifier: t.verifier, Layers: t.read.Layers}
	whole := func(a *answer) []float32 { return a.whole }
	for part := range t.folds {
		t.divide(part)
		fitted, err := t.fit(ctx, &p.Whole, "whole answers", whole)
		if err != nil {
			return nil, nil, err
		}
		report.Whole = fitted
		t.score(p)
	}
	var err error
	if t.folds > 1 {
		t.divide(-1)
		if report.Whole, err = t.fit(ctx, &p.Whole, "whole answers", whole); err != nil {
			return nil, nil, err
		}
	}
	report.Step, err = t.fit(ctx, &p.Step, "beginnings of answers", func(a *answer) []float32 { return a.begun })
	if errors.Is(err, errFew) {
		p.Step, err = p.Whole, nil // they are one line each: a beginning is judged as if it were all
	}
	if err != nil {
		return nil, nil, err
	}
	report.judge(t)
	p.Record = probe.Record{Problems: report.Problems, Answers: report.Whole.Examples, AUC: float32(report.Probe.AUC)}
	return p, report, nil
}

var errFew = errors.New("too few to learn from")

// Fitted says how a line was fitted.
type Fitted struct {
	Examples int     `json:"examples"`
	Right    int     `json:"right"`
	Penalty  float64 `json:"penalty"` // chosen by the loss on problems that it was not fitted to
	Loss     float64 `json:"loss"`    // on these, in nats
}

// fit fits a line to features, with the penalty that does best on problems that are set aside for
// that, and then to those problems too.
func (t *Trainer) fit(ctx context.Context, line *probe.Line, what string, features func(*answer) []float32) (Fitted, error) {
	var train, check []example
	right := [2]int{}
	for i := range t.problems {
		p := &t.problems[i]
		for k := range p.answers {
			x := features(&p.answers[k])
			if x == nil || p.part == held {
				continue
			}
			e := example{slices.Clone(x), p.answers[k].right} // which is standardised in place
			if e.right {
				right[1]++
			} else {
				right[0]++
			}
			if p.part == tuning {
				check = append(check, e)
			} else {
				train = append(train, e)
			}
		}
	}
	out := Fitted{Examples: len(train) + len(check), Right: right[1], Loss: math.Inf(1)}
	if min(right[0], right[1]) < leastExamples || len(check) == 0 || len(train) == 0 {
		return out, fmt.Errorf("%w: %d right and %d wrong %s; at least %d of each are needed, and more problems", errFew, right[1], right[0], what, leastExamples)
	}
	s := standardise(train)
	s.apply(train)
	s.apply(check)
	w, worse := make([]float64, t.width()+1), 0
	var best []float64
	for _, l2 := range penalties {
		if err := minimise(ctx, train, w, l2); err != nil {
			return out, err
		}
		if l := loss(check, w, 0, make([]float64, len(w))); l < out.Loss {
			out.Loss, out.Penalty, worse = l, l2, 0
			best = append(best[:0], w...)
		} else if worse++; worse == 2 {
			break
		}
	}
	if err := minimise(ctx, append(train, check...), best, out.Penalty); err != nil {
		return out, err
	}
	weights, bias := s.fold(best)
	n := len(t.read.Layers) * t.hidden
	line.Mean, line.Last, line.Tokens, line.Bias = weights[:n], weights[n:2*n], weights[2*n:], bias
	return out, nil
}

// score has the probe judge the answers that are held out.
func (t *Trainer) score(p *probe.Probe) {
	n := len(p.Whole.Mean)
	for i := range t.problems {
		if t.problems[i].part != held {
			continue
		}
		t.problems[i].judged = true
		for k := range t.problems[i].answers {
			if a := &t.problems[i].answers[k]; a.whole != nil {
				x := float64(p.Whole.Bias) + float64(vector.Dot(p.Whole.Mean, a.whole[:n])) + float64(vector.Dot(p.Whole.Last, a.whole[n:2*n])) + float64(vector.Dot(p.Whole.Tokens, a.whole[2*n:]))
				a.probe = sigmoid(x)
			}
		}
	}
}
