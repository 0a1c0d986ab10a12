package profile

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// Candidate is a model that may answer a request.
type Candidate struct {
	Name  string
	Curve *Curve // nil: it was not profiled
	// Pace says how long a token of each of rows background sequences takes now; 0: not known.
	Pace func(rows int) time.Duration
	// Forecast corrects what answers are expected to take; nil: nothing does.
	Forecast *Forecast
	Works    func(p scaling.Plan) bool // whether the model can carry a plan out
}

// Choice is the plan that answers a request, and its expected results.
type Choice struct {
	Model      int     `json:"-"` // index of its Candidate
	Name       string  `json:"model"`
	PlanText   string  `json:"plan"`
	Quality    float64 `json:"quality"`
	Low        float64 `json:"ci_low"`
	High       float64 `json:"ci_high"`
	Tokens     float64 `json:"tokens"`
	ExpectedMS float64 `json:"expected_ms"`

	Plan scaling.Plan  `json:"-"` // with all that the request says besides
	base time.Duration // that Forecast corrected
	sure time.Duration // most do not take longer
}

// Choose chooses what reaches the plan's quality soonest, within left of its deadline; without
// a quality what reaches the most in that time. What the plan says of method, n and width is
// kept to. left counts where the plan has a deadline. Errors are *scaling.Errors.
func Choose(candidates []Candidate, want scaling.Plan, left time.Duration, now time.Time) (*Choice, error) {
	var best, most, soonest *Choice // most: the best of those in time; soonest: of those that reach the quality
	profiled := false
	for i := range candidates {
		c := &candidates[i]
		if c.Curve == nil {
			continue
		}
		profiled = true
		for j := range c.Curve.Points {
			one := c.choice(&c.Curve.Points[j], &want, now)
			if one == nil {
				continue
			}
			one.Model = i
			inTime := want.Deadline == 0 || one.sure <= left
			reaches := one.Quality >= want.Quality
			if inTime && (most == nil || one.better(most)) {
				most = one
			}
			if reaches && (soonest == nil || one.sooner(soonest)) {
				soonest = one
			}
			if inTime && reaches && want.Quality > 0 && (best == nil || one.sooner(best)) {
				best = one
			}
		}
	}
	if best == nil && want.Quality == 0 {
		best = most
	}
	if best != nil {
		return best, nil
	}
	return nil, refusal(candidates, &want, profiled, most, soonest)
}

// Expected returns what each of the measured plans that the model can carry out is expected to
// reach and to take now.
func (c *Candidate) Expected(now time.Time) []*Choice {
	out := []*Choice{}
	if c.Curve == nil {
		return out
	}
	for i := range c.Curve.Points {
		if one := c.choice(&c.Curve.Points[i], &scaling.Plan{}, now); one != nil {
			out = append(out, one)
		}
	}
	return out
}

// choice makes a point a choice for a request; nil: it is none.
func (c *Candidate) choice(p *Point, want *scaling.Plan, now time.Time) *Choice {
	plan := *want
	if !plan.Take(&p.plan) || !c.Works(plan) {
		return nil
	}
	out := &Choice{Name: c.Name, PlanText: p.Plan, Quality: p.Quality, Low: p.Low, High: p.High, Tokens: p.Tokens, Plan: plan}
	out.base = c.Curve.expect(p, c.Pace)
	mean, sure := c.Forecast.Correct(out.base, now)
	out.sure, out.ExpectedMS = sure, milliseconds(mean)
	return out
}

// better orders by quality, and what is equally good by time.
func (c *Choice) better(o *Choice) bool {
	return cmp.Or(cmp.Compare(o.Quality, c.Quality), cmp.Compare(c.ExpectedMS, o.ExpectedMS), cmp.Compare(c.Tokens, o.Tokens)) < 0
}

// sooner orders by time, and what takes equally long by quality.
func (c *Choice) sooner(o *Choice) bool {
	return cmp.Or(cmp.Compare(c.ExpectedMS, o.ExpectedMS), cmp.Compare(o.Quality, c.Quality), cmp.Compare(c.Tokens, o.Tokens)) < 0
}

// String says what is expected, for errors.
func (c *Choice) String() string {
	return fmt.Sprintf("%s with %q: quality %.3f in about %.3g ms", c.Name, c.PlanText, c.Quality, c.ExpectedMS)
}

// refusal says what is possible instead.
func refusal(candidates []Candidate, want *scaling.Plan, profiled bool, most, soonest *Choice) error {
	field := "quality"
	if want.Quality == 0 {
		field = "deadline_ms"
	}
	if !profiled {
		return scaling.Errorf(scaling.CodeProfileRequired, field, "there is no profile of the model %.80q, from which a method could be chosen; name a method, or have its operator run lutra-lab eval --profile", candidates[0].Name)
	}
	switch {
	case most == nil && soonest == nil && want.Deadline == 0:
		return scaling.Errorf(scaling.CodeQuality, field, "the profile has no method that fits this request")
	case want.Deadline == 0:
		return scaling.Errorf(scaling.CodeQuality, field, "nothing that was measured reaches %v; the best is %v", want.Quality, most)
	case most == nil && soonest == nil:
		return scaling.Errorf(scaling.CodeDeadline, "deadline_ms", "nothing that was measured is expected to end within %d ms", want.Deadline.Milliseconds())
	case most == nil:
		return scaling.Errorf(scaling.CodeDeadline, "deadline_ms", "nothing is expected to end within %d ms; the soonest%s is %v", want.Deadline.Milliseconds(), reaching(want), soonest)
	case soonest == nil:
		return scaling.Errorf(scaling.CodeQuality, field, "nothing that was measured reaches %v; the best within %d ms is %v", want.Quality, want.Deadline.Milliseconds(), most)
	}
	return scaling.Errorf(scaling.CodeQuality, field, "nothing is expected to reach %v within %d ms; the best in that time is %v; the soonest that reaches it is %v", want.Quality, want.Deadline.Milliseconds(), most, soonest)
}

// reaching says what quality is wanted, if any is.
func reaching(want *scaling.Plan) string {
	if want.Quality == 0 {
		return ""
	}
	return fmt.Sprintf(" that reaches %v", want.Quality)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
