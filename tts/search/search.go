package search

import (
	"context"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/answer"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// Search is the strategy that runs a Plan: parallel test-time scaling. All candidates of a request decode
// in shared batches, forked from one computed prompt; losers give back their memory at once.
//
// If the model has a Source, other machines go on with some of the candidates. What they generate is
// judged here.
//
// With one seed and one plan the candidates, the answer and the tokens charged are the same whatever else
// is running, here and elsewhere. Exceptions are a search that a deadline or a budget of time ends, a
// Plan.N of AutoN, and a degraded search.
type Search struct {
	Model     *tts.Model
	Plan      scaling.Plan
	Limits    scaling.Limits // zero: DefaultLimits
	Verifiers tts.Verifiers
	Start     time.Time // of the request, from which Plan.Deadline counts; zero: when the search begins

	checked *resolvedPlan // for the request at hand; nil: it has not been
}

// resolvedPlan is a checked plan with what it names.
type resolvedPlan struct {
	plan        scaling.Plan
	temperature float32
	scorer      tts.Scorer
	verified    bool
	reader      *answer.Reader
}

// Check returns the search of this request with all defaults of its plan. It fits requests that differ
// only in their prompts. A fault of the plan is a *scaling.Error; other errors are ctx's.
func (s Search) Check(ctx context.Context, req *tts.Request) (Search, error) {
	out, err := s.resolve(ctx, req)
	s.Plan, s.checked = out.plan, &out
	return s, err
}

func (s Search) resolve(ctx context.Context, req *tts.Request) (out resolvedPlan, err error) {
	if s.checked != nil {
		return *s.checked, nil
	}
	limits := s.Limits
	if limits == (scaling.Limits{}) {
		limits = scaling.DefaultLimits()
	}
	if err := s.Plan.Validate(limits); err != nil {
		return out, err
	}
	out.plan = s.Plan.WithDefaults(&limits)
	p := &out.plan
	switch {
	case p.Method == scaling.None:
		return out, nil
	case p.Unchosen():
		return out, scaling.Errorf(scaling.CodeProfileRequired, "quality", "a server chooses the method that reaches it; here, name one")
	}
	if out.reader, err = p.Answer.Compile(); err != nil {
		return out, err
	}
	if out.scorer, out.verified, err = resolveScorer(ctx, &s.Verifiers, p, out.reader); err != nil {
		return out, err
	}
	if p.Select == "" {
		p.Select = out.defaultSelect()
	}
	p.Step.Members = p.Step.Members || req.JSON && len(s.Plan.Step.Stop) == 0
	if p.N == scaling.AutoN {
		p.N = s.fillTile(p, &limits, req)
		*p = p.WithDefaults(&limits)
	}
	out.temperature = req.Sampling.Temperature
	if p.Temperature != nil {
		out.temperature = *p.Temperature
	}
	switch {
	case out.temperature == 0 && p.N > 1:
		return out, scaling.Errorf(scaling.CodeTemperatureZero, "temperature", "at temperature 0 all %d candidates would be the same", p.N)
	case req.Choices() > p.N:
		return out, scaling.Errorf(scaling.CodeValue, "n", "%d candidates cannot give %d choices", p.N, req.Choices())
	case req.Echo || req.NoTokens:
		return out, scaling.Errorf(scaling.CodeValue, "", "a search neither echoes the prompt nor generates nothing")
	case req.ScorePrompt:
		return out, scaling.Errorf(scaling.CodeValue, "prompt_logprobs", "a search does not list the prompt's tokens")
	case req.TokenIDs:
		return out, scaling.Errorf(scaling.CodeValue, "return_token_ids", "a search does not list its tokens")
	}
	return out, nil
}

// defaultSelect returns the rule for plans that name none.
func (r *resolvedPlan) defaultSelect() scaling.Select {
	p := &r.plan
	choose := methods[p.Method].choose
	switch {
	case checksWhole(&p.Verify), readsStates(r.scorer) && p.Method != scaling.SelfConsistency:
		return scaling.SelectMax
	case choose != nil:
		return choose(r.verified)
	case r.verified:
		return scaling.SelectWeightedVote
	}
	return scaling.SelectVote
}

// checksWhole tells whether a check is of answers that are no short text to vote on.
func checksWhole(v *scaling.Verify) bool {
	return v.Kind() == scaling.VerifyTests || v.Kind() == scaling.VerifySchema
}

// autoTokens is the assumed cost of one candidate when AutoN divides a budget.
const autoTokens = 128

// fillTile returns the number of candidates that fill the idle lanes of the current
// tile, in whole widths.
func (s *Search) fillTile(p *scaling.Plan, l *scaling.Limits, req *tts.Request) int {
	lanes := batcher.Tile - s.Model.Engine.Stats().Running%batcher.Tile
	n := min(lanes, l.N, p.Budget.Tokens/autoTokens)
	n = max(n, req.Choices(), min(scaling.DefaultWidth, l.N))
	p.Width = min(p.Width, n)
	return max(n/p.Width, 1) * p.Width
}
