package tts

import "github.com/lutra-lm/lutra/tts/scaling"

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
