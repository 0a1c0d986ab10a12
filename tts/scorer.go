package tts

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/verify"
)

// Scorer judges the candidates of requests. It may be used by many searches
// at once.
type Scorer interface {
	// Open begins to judge answers to a request whose prompt m has encoded.
	// The judge is closed when ctx ends.
	Open(ctx context.Context, m *Model, req *Request, prompt []int32) (Judge, error)
}

// Judge follows one candidate from its first token to its last, and is forked
// when the candidate is. A search calls the judges of all its candidates at
// once, so that a verifier computes them in one batch.
type Judge interface {
	// Score judges what c has gained since the last call: it appends to
	// c.StepScores, each in [0, 1] and about all up to that step.
	Score(ctx context.Context, c *Candidate) error
	// Fork returns n judges that have seen what this one has.
	Fork(ctx context.Context, n int) ([]Judge, error)
	// Charge says that the candidate takes part in the choice: what Score has
	// read of it counts in Spent.
	Charge()
	// Spent counts the tokens read that this judge and all its relatives have been
	// charged for, each different beginning once.
	Spent() int
	Close()
}

// selfScorer scores candidates by the probabilities that the generator gave them,
// which costs nothing.
type selfScorer func(c *Candidate) float64

// ByOwn scores by what the search knows of a candidate without a verifier.
func ByOwn(score func(c *Candidate) float64) Judge { return selfScorer(score) }

// Open implements Scorer.
func (o selfScorer) Open(context.Context, *Model, *Request, []int32) (Judge, error) { return o, nil }

// Score implements Judge.
func (o selfScorer) Score(_ context.Context, c *Candidate) error {
	c.StepScores = append(c.StepScores, float32(o(c)))
	return nil
}

// Fork implements Judge.
func (o selfScorer) Fork(_ context.Context, n int) ([]Judge, error) {
	judges := make([]Judge, n)
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
func ByLogprob() Scorer {
	return selfScorer(func(c *Candidate) float64 { return math.Exp(float64(c.Logprob)) })
}

// BySelfCertainty scores by how far the tokens' distributions are from the
// uniform one, on average (Kang et al. 2025, "Scalable Best-of-N Selection via
// Self-Certainty", §3), brought into [0, 1) by 1-exp(-x), which keeps the order.
func BySelfCertainty() Scorer {
	return selfScorer(func(c *Candidate) float64 { return -math.Expm1(-float64(c.Certainty)) })
}

// ReadsStates is implemented by scorers that judge by Candidate.Readings, and so nothing but what
// the model's own engine has generated.
type ReadsStates interface{ ReadsStates() bool }

func readsStates(s Scorer) bool {
	r, ok := s.(ReadsStates)
	return ok && r.ReadsStates()
}

// NamedScorer is a scorer with the name by which plans ask for it.
type NamedScorer struct {
	Name string
	Scorer
}

// Verifiers are the scorers that plans can name. Names with Times between them are the product of
// those scorers.
type Verifiers struct {
	Default string // for plans that name none, maybe a product; empty: there is none
	ByName  map[string]Scorer
}

// Add adds scorers, none of which is the default.
func (v *Verifiers) Add(scorers map[string]Scorer) {
	for name, s := range scorers {
		v.ByName[name] = s
	}
}

// Only returns those whose names may be used. The default is what is left of it.
func (v Verifiers) Only(may func(name string) bool) Verifiers {
	only := Verifiers{ByName: map[string]Scorer{}}
	for name, s := range v.ByName {
		if may(name) {
			only.ByName[name] = s
		}
	}
	only.Default = strings.Join(slices.DeleteFunc(strings.Split(v.Default, Times), func(name string) bool { return only.ByName[name] == nil }), Times)
	return only
}

// resolve returns the scorer that a plan asks for, and whether it is more than
// the generator's own score. final finds the final answer of a text. It completes p.Judge.
func (v *Verifiers) resolve(ctx context.Context, p *scaling.Plan, final *answer.Reader) (s Scorer, verified bool, err error) {
	if s, verified, err = v.find(ctx, p, final); err != nil {
		return nil, false, err
	}
	if writes, ok := s.(Generative); ok {
		s, p.Judge, err = writes.For(p)
		return s, true, err
	}
	if p.Judge != (scaling.Judge{}) {
		err = scaling.Errorf(scaling.CodeValue, "judge", "the verifier writes no critiques; name one that does, such as %s", scaling.VerifierSelf)
	}
	return s, verified, err
}

// named returns the scorer of one name, nil: there is none.
func (v *Verifiers) named(name string) Scorer {
	switch name {
	case scaling.VerifierLogprob:
		return ByLogprob()
	case scaling.VerifierSelfCertainty:
		return BySelfCertainty()
	}
	return v.ByName[name]
}

// find returns the scorer as it is known by its name.
func (v *Verifiers) find(ctx context.Context, p *scaling.Plan, final *answer.Reader) (s Scorer, verified bool, err error) {
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
	if s = v.named(name); s == nil {
		if s, err = v.product(name); err != nil {
			return nil, false, err
		}
	}
	if p.Stepwise() && !judgesSteps(s) {
		return nil, false, scaling.Errorf(scaling.CodeValue, "verifier", "%.80q judges whole answers, and %s judges solution steps", name, p.Method)
	}
	return s, true, nil
}

// Generative is a Scorer that writes critiques: as many, and as long, as a plan wants.
type Generative interface {
	Scorer
	// For returns the scorer of searches by a plan that has its defaults, whose judges are
	// Critics, and its Judge with the scorer's own. Errors are *scaling.Errors.
	For(p *scaling.Plan) (Scorer, scaling.Judge, error)
}

// Critic is a Judge that writes what it makes of candidates: rows of an engine's steps, as
// the candidates are. Grant and Written are for the first of a request's judges.
type Critic interface {
	Judge
	// Grant bounds the tokens of all critiques that a later Score writes.
	Grant(tokens int)
	// Written counts the tokens of critiques: of candidates that have been charged for, and of all.
	Written() (charged, all int)
}

// Critique is a verifier's text about a candidate or a solution step.
type Critique struct {
	Step   int // solution steps of the candidate that it judges
	Text   string
	Tokens int     // generated
	Score  float32 // in [0, 1]
	// Labels say which solution steps it finds right, where it says so one by one.
	Labels []bool
}

// shareCritiques divides the critiques' remaining tokens among n judgements to come. The tokens written before
// do not depend on the judgements' speed, so their shares do not either.
func (g *grower) shareCritiques(n int) {
	if g.critic != nil && n > 0 {
		_, spent := g.critic.Written()
		g.critic.Grant(max(0, g.plan.Judge.TotalTokens-spent) / n)
	}
}
