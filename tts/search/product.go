package search

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// mostFactors bounds the verifiers of a product.
const mostFactors = 4

// product scores by the geometric mean of what several scorers say.
type product []tts.Scorer

// newProduct returns the scorer of names with Times between them.
func newProduct(v *tts.Verifiers, names string) (tts.Scorer, error) {
	list := strings.Split(names, tts.Times)
	if len(list) > mostFactors {
		return nil, scaling.Errorf(scaling.CodeValue, "verifier", "%d verifiers are multiplied, at most %d can be", len(list), mostFactors)
	}
	var p product
	for _, name := range list {
		s := scorerNamed(v, name)
		if s == nil {
			return nil, scaling.Errorf(scaling.CodeVerifierNotFound, "verifier", "there is no verifier %.80q", name)
		}
		if _, writes := s.(tts.Generative); writes {
			return nil, scaling.Errorf(scaling.CodeValue, "verifier", "%.80q writes critiques, and only scores can be multiplied", name)
		}
		p = append(p, s)
	}
	return p, nil
}

// ReadsStates implements ReadsStates.
func (p product) ReadsStates() bool {
	for _, s := range p {
		if readsStates(s) {
			return true
		}
	}
	return false
}

// Open implements Scorer.
func (p product) Open(ctx context.Context, m *tts.Model, req *tts.Request, prompt []int32) (tts.Judge, error) {
	j := &productJudge{factors: make([]factor, len(p))}
	for i, s := range p {
		judge, err := s.Open(ctx, m, req, prompt)
		if err != nil {
			j.Close()
			return nil, err
		}
		j.factors[i].Judge = judge
	}
	return j, nil
}

// productJudge has one judge of a candidate for each scorer.
type productJudge struct{ factors []factor }

// factor is a judge and the last score that it has given, 0: none yet.
type factor struct {
	tts.Judge
	last float32
}

// Score implements Judge. It gives as many scores as the judge that gives most. One that gives
// fewer counts with its last.
func (j *productJudge) Score(ctx context.Context, c *tts.Candidate) error {
	before := c.StepScores
	gained, n := make([][]float32, len(j.factors)), 0
	var errs []error
	for i := range j.factors {
		c.StepScores = nil
		errs = append(errs, j.factors[i].Score(ctx, c))
		gained[i] = c.StepScores
		n = max(n, len(gained[i]))
	}
	c.StepScores = before
	if err := errors.Join(errs...); err != nil {
		return err // what some have gained is nothing without the others
	}
	for k := range n {
		logs := 0.0
		for i := range j.factors {
			if f, g := &j.factors[i], gained[i]; len(g) > 0 {
				f.last = g[max(0, len(g)-n+k)]
			}
			logs += math.Log(float64(j.factors[i].last))
		}
		c.StepScores = append(c.StepScores, float32(math.Exp(logs/float64(len(j.factors)))))
	}
	return nil
}

// Fork implements Judge.
func (j *productJudge) Fork(ctx context.Context, n int) ([]tts.Judge, error) {
	copies := make([]*productJudge, n)
	for i := range copies {
		copies[i] = &productJudge{}
	}
	judges := make([]tts.Judge, 0, n)
	for _, f := range j.factors {
		forks, err := f.Fork(ctx, n)
		for i, k := range forks {
			copies[i].factors = append(copies[i].factors, factor{k, f.last})
		}
		if err != nil {
			for _, c := range copies {
				c.Close()
			}
			return nil, err
		}
	}
	for _, c := range copies {
		judges = append(judges, c)
	}
	return judges, nil
}

// Charge implements Judge.
func (j *productJudge) Charge() {
	for _, f := range j.factors {
		f.Charge()
	}
}

// Spent implements Judge.
func (j *productJudge) Spent() int {
	n := 0
	for _, f := range j.factors {
		n += f.Spent()
	}
	return n
}

// Close implements Judge.
func (j *productJudge) Close() {
	for _, f := range j.factors {
		if f.Judge != nil {
			f.Judge.Close()
		}
	}
}
