package eval

import (
	"math"
	"time"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/profile"
)

// profileSteps is the number of sizes of steps, 1, 2, 4, ..., whose times a profile has.
const profileSteps = 6

// Profile makes a profile of what has been measured of models in this process.
func Profile(r *Report, models map[string]Searcher) (*profile.Profile, error) {
	out := &profile.Profile{
		Version: profile.Version, Command: r.Command, Data: r.Data, Hash: r.Hash, Problems: r.Problems, Temperature: r.Temperature, Where: r.Where,
	}
	curves := map[string]*profile.Curve{}
	for i := range r.Results {
		one := &r.Results[i]
		m := models[one.Model]
		c := curves[one.Model]
		if c == nil {
			var err error
			if c, err = newCurve(m.Model); err != nil {
				return nil, err
			}
			curves[one.Model] = c
			out.Models = append(out.Models, c)
		}
		p := profile.Point{
			Plan: one.String(), Quality: rounded(one.Accuracy), Low: rounded(one.Low), High: rounded(one.High),
			Tokens: rounded(one.Tokens), Verified: rounded(one.Verifier), MS: rounded(one.LatencyMS),
		}
		if one.Verifier > 0 {
			p.Verifier = m.Verifiers.Default
		}
		c.Points = append(c.Points, p)
	}
	return out, nil
}

func newCurve(m *tts.Model) (*profile.Curve, error) {
	sketch, err := m.Identity.Sketch()
	c := &profile.Curve{Name: m.Name, Sketch: sketch}
	for i := range profileSteps {
		if took := m.Engine.StepTime(1 << i); took > 0 {
			c.StepMS = append(c.StepMS, rounded(float64(took)/float64(time.Millisecond)))
		}
	}
	return c, err
}

// rounded keeps four digits behind the point: fewer than what is measured has.
func rounded(x float64) float64 { return math.Round(x*1e4) / 1e4 }
