package tts

import (
	"context"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/tts/scaling"
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

// ReadsStates is implemented by scorers that judge by Candidate.Readings, and so nothing but what
// the model's own engine has generated.
type ReadsStates interface{ ReadsStates() bool }

// Times stands between the names of verifiers whose scores are multiplied.
const Times = "*"

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
