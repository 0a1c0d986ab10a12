package server

import (
	"errors"
	"net/http"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// search checks a plan for a request, and sets the temperature if neither names one.
func (s *Server) search(g *generation, req *tts.Request, plan scaling.Plan, hasTemperature bool) (*tts.Search, error) {
	if plan.Temperature == nil && !hasTemperature {
		plan.Temperature = new(float32(scaling.DefaultTemperature))
	}
	search := &tts.Search{Model: g.model.Model, Plan: plan, Limits: s.opt.Limits, Verifiers: g.model.Verifiers}
	var err error
	search.Plan, err = search.Check(req)
	return search, err
}

// scale decides whether g is answered by a search, and by which. hasTemperature tells
// whether the request names a temperature.
func (s *Server) scale(f openai.Fields, header http.Header, g *generation, req *tts.Request, hasTemperature bool) {
	a := f.Scaling(header.Get(openai.ScalingHeader), g.preset, s.standard)
	if f.Err != nil || a != nil && a.Plan.Method == scaling.None {
		return
	}
	if req.Continued != nil {
		if a != nil {
			f.Fail(jsonread.CodeValue, "candidates", "they belong to another server's search; ask for none here.")
		}
		return
	}
	if a == nil {
		// A default is not a demand: a request that it does not suit gets a plain answer.
		if s.standard != nil && s.standard.Method != scaling.None && g.search == nil {
			if search, err := s.search(g, req, *s.standard, hasTemperature); err == nil {
				g.search, g.report = search, openai.NewSearchReport(&search.Plan)
			}
		}
		return
	}
	if g.search != nil {
		f.Fail(jsonread.CodeValue, "best_of", "it is a search of its own; leave it out.")
		return
	}
	search, err := s.search(g, req, *a.Plan, hasTemperature)
	if err != nil {
		if a.Plan.Temperature == nil && planCode(err) == scaling.CodeTemperatureZero {
			a.Param = "temperature" // the request's own
		}
		f.Err = openai.PlanFault(err, a.Param)
		return
	}
	g.search, g.report = search, openai.NewSearchReport(&search.Plan)
}

// bestOf reads best_of, the search of the completions API: the likeliest choices of
// so many. At temperature 0 all are the same. The answer does not report it.
func (s *Server) bestOf(f openai.Fields, g *generation, req *tts.Request) {
	n := req.N
	given := f.Int("best_of", &n, req.N, s.opt.MaxChoices) && n > req.N
	if given && req.Continued != nil {
		f.Fail(jsonread.CodeValue, "best_of", "it cannot be given together with 'candidates'.")
		return
	}
	if given && req.Sampling.Temperature > 0 {
		plan := scaling.Plan{Method: scaling.BestOfN, N: n, Verifier: scaling.VerifierLogprob, Select: scaling.SelectMax}
		search, err := s.search(g, req, plan, true)
		if err != nil {
			f.Err = openai.PlanFault(err, "best_of")
			return
		}
		g.search = search
	}
}

// planCode is the code of a plan's fault; empty for other errors.
func planCode(err error) string {
	var fault *scaling.Error
	if errors.As(err, &fault) {
		return fault.Code
	}
	return ""
}
