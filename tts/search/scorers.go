package search

import (
	"context"
	"math"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/verify"
)

// selfScorer scores candidates by the probabilities that the generator gave them,
// which costs nothing.
type selfScorer func(c *tts.Candidate) float64

// ByOwn scores candidates without a verifier, by their own probabilities.
func ByOwn(score func(c *tts.Candidate) float64) tts.Judge { return selfScorer(score) }

// Open implements Scorer.
func (o selfScorer) Open(context.Context, *tts.Model, *tts.Request, []int32) (tts.Judge, error) {
	return o, nil
}

// Score implements Judge.
func (o selfScorer) Score(_ context.Context, c *tts.Candidate) error {
	c.StepScores = append(c.StepScores, float32(o(c)))
	return nil
}

// Fork implements Judge.
func (o selfScorer) Fork(_ context.Context, n int) ([]tts.Judge, error) {
	judges := make([]tts.Judge, n)
	for i := range judges {
		judges[i] = o
	}
	return judges, nil
}

// Charge implements Judge.
func (o selfScorer) Charge() {}

// Spent implements Judge.
func (o selfScorer) Spent() int { return 0 }

// Close implements Judge.
func (o selfScorer) Close() {}

// ByLogprob scores by the geometric mean of the tokens' probabilities.
func ByLogprob() tts.Scorer {
	return selfScorer(func(c *tts.Candidate) float64 { return math.Exp(float64(c.Logprob)) })
}

// BySelfCertainty scores by how far the tokens' distributions are from the
// uniform one, on average (Kang et al. 2025, "Scalable Best-of-N Selection via
// Self-Certainty", §3), brought into [0, 1) by 1-exp(-x), which keeps the order.
func BySelfCertainty() tts.Scorer {
	return selfScorer(func(c *tts.Candidate) float64 { return -math.Expm1(-float64(c.Certainty)) })
}

func readsStates(s tts.Scorer) bool {
	r, ok := s.(tts.ReadsStates)
	return ok && r.ReadsStates()
}

// resolveScorer returns the scorer that a plan asks for, and whether it is more than
// the generator's own score. final finds the final answer of a text. It completes p.Judge.
func resolveScorer(ctx context.Context, v *tts.Verifiers, p *scaling.Plan, final *answer.Reader) (s tts.Scorer, verified bool, err error) {
	if s, verified, err = findScorer(ctx, v, p, final); err != nil {
		return nil, false, err
	}
	if writes, ok := s.(tts.Generative); ok {
		s, p.Judge, err = writes.For(p)
		return s, true, err
	}
	if p.Judge != (scaling.Judge{}) {
		err = scaling.Errorf(scaling.CodeValue, "judge", "the verifier writes no critiques; name one that does, such as %s", scaling.VerifierSelf)
	}
	return s, verified, err
}

// scorerNamed returns the scorer of one name, nil: there is none.
func scorerNamed(v *tts.Verifiers, name string) tts.Scorer {
	switch name {
	case scaling.VerifierLogprob:
		return ByLogprob()
	case scaling.VerifierSelfCertainty:
		return BySelfCertainty()
	}
	return v.ByName[name]
}

// findScorer returns the scorer as it is known by its name.
func findScorer(ctx context.Context, v *tts.Verifiers, p *scaling.Plan, final *answer.Reader) (s tts.Scorer, verified bool, err error) {
	name := p.Verifier
	if own := methods[p.Method].scorer; own != nil {
		return own(), true, nil
	}
	if p.Verify.Kind() != "" {
		check, err := verify.New(ctx, &p.Verify, final)
		return ByCheck(check), true, err
	}
	if name == "" && (p.Method != scaling.SelfConsistency || p.Select == scaling.SelectWeightedVote) {
		name = v.Default
	}
	switch name {
	case "":
		if !p.Method.Judged() {
			return ByLogprob(), false, nil
		}
		name, p.Verifier = scaling.VerifierLogprob, scaling.VerifierLogprob // as answers and receipts say
	}
	if s = scorerNamed(v, name); s == nil {
		if s, err = newProduct(v, name); err != nil {
			return nil, false, err
		}
	}
	if p.Stepwise() && !judgesSteps(s) {
		return nil, false, scaling.Errorf(scaling.CodeValue, "verifier", "%.80q judges whole answers, and %s judges solution steps", name, p.Method)
	}
	return s, true, nil
}
