package tts

import (
	"context"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// Generative is a Scorer that writes critiques: as many, and as long, as a plan wants.
type Generative interface {
	Scorer
	// For returns the scorer of searches by a plan that has its defaults, whose judges are
	// Critics, and its Judge with the scorer's own. Errors are *scaling.Errors.
	For(p *scaling.Plan) (Scorer, scaling.Judge, error)
}

// Critic is a Judge that writes what it makes of candidates: rows of an engine's steps, as
// the candidates are. Grant and Written are for the first of a request's judges, Compare too.
type Critic interface {
	Judge
	// Grant bounds the tokens of all critiques that a later Score, or Compare, writes.
	Grant(tokens int)
	// Written counts the tokens of critiques: those of candidates that have been charged
	// for and of pairs, and all.
	Written() (charged, all int)
	// Compare asks which of two candidates is better, in both orders. It returns each one's
	// share of the votes, and what was written.
	Compare(ctx context.Context, a, b *Candidate) (shares [2]float32, critiques []Critique, err error)
}

// Critique is what a verifier has written of a candidate, a solution step or a pair.
type Critique struct {
	Step   int // solution steps of the candidate that it judges; of a pair 0
	Text   string
	Tokens int // generated
	// Score is in [0, 1]; of a pair it is the first-shown candidate's.
	Score float32
	// Labels say which solution steps it finds right, where it says so one by one.
	Labels []bool
	// First is the index of the candidate of a pair that was shown first.
	First int
}

// grant divides what critiques may still take among n judgements to come. What has been
// written before them does not depend on their speed, so that neither does what they get.
func (r *searchRun) grant(n int) {
	if r.critic != nil && n > 0 {
		_, spent := r.critic.Written()
		r.critic.Grant(max(0, r.plan.Judge.TotalTokens-spent) / n)
	}
}
