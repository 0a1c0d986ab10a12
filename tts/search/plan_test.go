package search_test

import (
	"errors"
	"testing"

	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	. "github.com/lutra-lm/lutra/tts/search"
	"github.com/lutra-lm/lutra/tts/ttstest"
)

func TestPlansAreHeldAgainstTheRequestAndTheVerifiers(t *testing.T) {
	m := ttstest.Run(t, ttstest.Thinks(t))
	zero := float32(0)
	for _, c := range []struct {
		plan scaling.Plan
		req  func(*tts.Request)
		code string
	}{
		{plan: scaling.Plan{Method: scaling.BestOfN, Verifier: "nobody"}, code: scaling.CodeVerifierNotFound},
		{plan: scaling.Plan{Method: scaling.BestOfN, Temperature: &zero}, code: scaling.CodeTemperatureZero},
		{plan: scaling.Plan{Method: scaling.SelfConsistency}, req: func(r *tts.Request) { r.Sampling.Temperature = 0 }, code: scaling.CodeTemperatureZero},
		{plan: scaling.Plan{Method: scaling.SelfConsistency, N: 2}, req: func(r *tts.Request) { r.N = 3 }, code: scaling.CodeValue},
		{plan: scaling.Plan{Method: scaling.SelfConsistency}, req: func(r *tts.Request) { r.Echo = true }, code: scaling.CodeValue},
		{plan: scaling.Plan{Method: scaling.SelfConsistency, N: 1}, req: func(r *tts.Request) { r.Sampling.Temperature = 0 }},
		{plan: scaling.Plan{Method: scaling.BestOfN}},
		{plan: scaling.Plan{Method: scaling.BeamSearch, Verifier: scaling.VerifierLogprob}},
		{plan: scaling.Plan{Method: scaling.DVTS, Verifier: scaling.VerifierSelfCertainty}},
		{plan: scaling.Plan{Method: scaling.Auto, N: scaling.AutoN}},
		{plan: scaling.Plan{Method: scaling.BeamSearch}},
		{plan: scaling.Plan{Method: scaling.DVTS}},
		{plan: scaling.Plan{Method: scaling.ParticleFiltering}},
		{plan: scaling.Plan{Method: scaling.DeepConfidence, N: scaling.AutoN}},
		{plan: scaling.Plan{Method: scaling.SelfConsistency, N: scaling.AutoN, Adaptive: scaling.Adaptive{On: true}}},
	} {
		req := ttstest.Request(1, 1)
		if c.req != nil {
			c.req(req)
		}
		s := Search{Model: m, Plan: c.plan}
		var got *scaling.Error
		if _, err := s.Check(t.Context(), req); (err == nil) != (c.code == "") || err != nil && (!errors.As(err, &got) || got.Code != c.code) {
			t.Errorf("Check(%+v) = %v, want %q", c.plan, err, c.code)
		}
		if c.code == "" {
			carryOut(t, s, req)
			continue
		}
		for _, err := range s.Run(t.Context(), req) {
			if !errors.As(err, &got) || got.Code != c.code {
				t.Errorf("Run(%+v) gives %v first, want %q", c.plan, err, c.code)
			}
		}
	}
}
