// Package profile holds what methods of test-time scaling reach and cost on somebody's
// problems, as lutra-lab eval --profile measures it, and chooses among them.
//
//	lutra-lab eval --profile ──▶ Profile ──▶ Choose(quality, deadline, load) ──▶ scaling.Plan
//
// It knows no engines: how fast they are now is told to it.
package profile

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// Version is the version of the files that this program writes and reads.
const Version = 1

// Profile is a file of curves, with what it takes to measure them again.
type Profile struct {
	Version     int      `json:"version"`
	Command     []string `json:"command"`
	Data        string   `json:"data"`
	Hash        string   `json:"data_hash"` // of the problems
	Problems    int      `json:"problems"`
	Temperature float32  `json:"temperature"` // of candidates
	Where       string   `json:"where"`       // the machine
	Models      []*Curve `json:"models"`
}

// Curve is one model's.
type Curve struct {
	Name   string    `json:"name"`
	Sketch string    `json:"sketch"`  // of its file, by models.Identity; empty: any file of that name
	StepMS []float64 `json:"step_ms"` // of a step with 1, 2, 4, 8, ... rows, on that machine
	Points []Point   `json:"points"`

	temperature float32
}

// Point has the results of one plan, as means a problem.
type Point struct {
	Plan     string  `json:"plan"`               // as scaling.Parse reads it; single: one sample
	Verifier string  `json:"verifier,omitempty"` // the reward model that judged
	Quality  float64 `json:"quality"`            // share of right answers
	Low      float64 `json:"ci_low"`             // 95 % interval of Quality
	High     float64 `json:"ci_high"`
	Tokens   float64 `json:"tokens"` // generated
	Verified float64 `json:"verifier_tokens,omitempty"`
	MS       float64 `json:"ms"`

	plan scaling.Plan
}

// The bounds of a profile.
const (
	MaxFile   = 1 << 20
	maxModels = 64
	maxPoints = 512 // of a model
	maxSteps  = 16
	maxName   = 256
	mostMS    = 1e9
)

// widest lets every plan through that some server may allow.
var widest = scaling.Limits{N: 1 << 12, MaxSteps: 1 << 16, Tokens: 1 << 30, Time: 24 * time.Hour}

// Read reads a profile. Errors name the key at fault.
func Read(data []byte) (*Profile, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("profile: it has more than %d bytes", MaxFile)
	}
	p := &Profile{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if p.Version != Version {
		return nil, fmt.Errorf("profile: version: this program reads version %d, but got %d", Version, p.Version)
	}
	if t := p.Temperature; !(t >= 0 && t <= 2) {
		return nil, fmt.Errorf("profile: temperature: %v is not between 0 and 2", t)
	}
	if len(p.Models) == 0 || len(p.Models) > maxModels {
		return nil, fmt.Errorf("profile: models: expected 1 to %d, but got %d", maxModels, len(p.Models))
	}
	for i, c := range p.Models {
		if c == nil {
			return nil, fmt.Errorf("profile: models[%d]: expected an object, but got null", i)
		}
		if slices.ContainsFunc(p.Models[:i], func(o *Curve) bool { return o.Name == c.Name }) {
			return nil, fmt.Errorf("profile: models[%d].name: %.40q is there twice", i, c.Name)
		}
		c.temperature = p.Temperature
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("profile: models[%d].%w", i, err)
		}
	}
	return p, nil
}

// check parses the plans, and reports the first fault.
func (c *Curve) check() error {
	switch {
	case c.Name == "" || len(c.Name) > maxName:
		return fmt.Errorf("name: expected 1 to %d bytes", maxName)
	case len(c.StepMS) > maxSteps:
		return fmt.Errorf("step_ms: more than %d numbers", maxSteps)
	case len(c.Points) == 0 || len(c.Points) > maxPoints:
		return fmt.Errorf("points: expected 1 to %d, but got %d", maxPoints, len(c.Points))
	}
	for i, ms := range c.StepMS {
		if !(ms > 0 && ms <= mostMS) {
			return fmt.Errorf("step_ms[%d]: %v is not above 0 and at most %v", i, ms, mostMS)
		}
	}
	for i := range c.Points {
		if err := c.Points[i].check(c.temperature); err != nil {
			return fmt.Errorf("points[%d].%w", i, err)
		}
	}
	return nil
}

func (p *Point) check(temperature float32) error {
	for _, f := range []struct {
		key      string
		v, least float64
		most     float64
	}{
		{"quality", p.Quality, 0, 1}, {"ci_low", p.Low, 0, p.Quality}, {"ci_high", p.High, p.Quality, 1},
		{"tokens", p.Tokens, 0, mostMS}, {"verifier_tokens", p.Verified, 0, mostMS}, {"ms", p.MS, 1e-6, mostMS},
	} {
		if !(f.v >= f.least && f.v <= f.most) { // NaN is a fault too
			return fmt.Errorf("%s: %v is not between %v and %v", f.key, f.v, f.least, f.most)
		}
	}
	if len(p.Verifier) > maxName {
		return fmt.Errorf("verifier: more than %d bytes", maxName)
	}
	plan, err := scaling.ParseSample(p.Plan)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if plan.Unchosen() || plan.Deadline != 0 || plan.Method == scaling.None || plan.N < 1 {
		return fmt.Errorf("plan: %.40q does not say its method and n", p.Plan)
	}
	if err := plan.Validate(widest); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	if plan.Temperature == nil {
		plan.Temperature = &temperature
	}
	if plan.Verifier == "" {
		plan.Verifier = p.Verifier
	}
	p.plan = plan
	return nil
}

// Has tells whether there is a curve of a model of that name.
func (p *Profile) Has(name string) bool {
	return slices.ContainsFunc(p.Models, func(c *Curve) bool { return c.Name == name })
}

// Of returns the curve of a model by its name, if its file is that which was measured; nil:
// there is none.
func (p *Profile) Of(name, sketch string) *Curve {
	for _, c := range p.Models {
		if c.Name == name && (c.Sketch == "" || c.Sketch == sketch) {
			return c
		}
	}
	return nil
}

// step returns what a step of n rows took in milliseconds on the machine that was measured.
func (c *Curve) step(n int) float64 {
	a := scaling.Adaptive{StepCost: c.StepMS}
	return a.Cost(max(n, 1))
}

// expect returns the time that a point takes on an engine whose background sequences need pace(rows) for a token each. If
// that is 0, it is not known, and the machine is taken for the measured one.
func (c *Curve) expect(p *Point, pace func(rows int) time.Duration) time.Duration {
	ms := p.MS
	if len(c.StepMS) > 0 {
		if now := pace(p.plan.N); now > 0 {
			ms *= float64(now) / float64(time.Millisecond) / c.step(p.plan.N)
		}
	}
	return time.Duration(math.Min(ms, mostMS) * float64(time.Millisecond))
}
