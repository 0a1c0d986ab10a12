package fields

import (
	"errors"
	"strings"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/search"
)

// Scaling finds the plan that a request asks for. The first of these counts: the object in its body, the value
// of api.ScalingHeader, the entry in its metadata, the preset after its model's name. An object without a
// method changes the next of these, or the server's standard; if there is none, it has to name a quality or a
// deadline. nil: the request asks for none.
func (f Reader) Scaling(header string, preset, standard *scaling.Plan) *api.ScalingRequest {
	fromMetadata := readScalingInMetadata(f.Fields)
	inBody := readPlan(f.Fields, func() (p scaling.Plan) {
		if a := planElsewhere(f.Fields, header, fromMetadata, preset); a != nil {
			p = *a.Plan
		} else if standard != nil {
			p = *standard
		}
		return p
	})
	if inBody != nil {
		return inBody
	}
	return planElsewhere(f.Fields, header, fromMetadata, preset)
}

// planElsewhere returns what a request asks for outside its body's object.
func planElsewhere(f *jsonread.Fields, header, fromMetadata string, preset *scaling.Plan) *api.ScalingRequest {
	written := func(text, param string) *api.ScalingRequest {
		plan, err := scaling.Parse(text)
		if err != nil && f.Err == nil {
			f.Err = PlanFault(err, param)
		}
		return &api.ScalingRequest{Plan: &plan, Param: param}
	}
	switch {
	case header != "":
		return written(header, api.ScalingHeader)
	case fromMetadata != "":
		return written(fromMetadata, "metadata."+api.ScalingField)
	case preset != nil:
		return &api.ScalingRequest{Plan: preset, Param: "model"}
	}
	return nil
}

// readPlan reads the request's test_time_scaling: an object, or the written form
// as a string. An object without a method changes the plan that the request asks for
// elsewhere.
func readPlan(f *jsonread.Fields, elsewhere func() scaling.Plan) *api.ScalingRequest {
	raw, ok := f.Take(api.ScalingField)
	if !ok {
		return nil
	}
	a := &api.ScalingRequest{Param: api.ScalingField, Plan: &scaling.Plan{}}
	if text, ok := jsonread.Text(raw); ok {
		plan, err := scaling.Parse(text)
		if err != nil {
			f.Err = PlanFault(err, api.ScalingField)
		}
		a.Plan = &plan
		return a
	}
	o, ok := f.Sub(api.ScalingField, raw)
	if !ok {
		return nil
	}
	if !o.Has("method") {
		*a.Plan = elsewhere()
	}
	src := planFields{o: o}
	a.Plan.Read(&src)
	src.refuse("rubric", "template", "judge.rubric", "judge.template") // are the operator's
	src.close()
	f.Adopt(o)
	return a
}

// PlanFault returns a plan's fault as the client sees it: it names the field that the plan
// came in.
func PlanFault(err error, param string) error {
	var fault *scaling.Error
	if !errors.As(err, &fault) {
		return err
	}
	if param == api.ScalingField && fault.Field != "" {
		param += "." + fault.Field
	}
	text := fault.Message
	if fault.Field != "" && !strings.HasSuffix(param, fault.Field) {
		text = fault.Field + ": " + text
	}
	return jsonread.Errorf(fault.Code, param, "Invalid '%s': %s.", param, strings.TrimSuffix(text, "."))
}

// newSearch checks a plan for a request.
func newSearch(c *api.Call, a *api.Ask, req *tts.Request, plan scaling.Plan) (*search.Search, error) {
	s, err := search.Search{Model: a.Model.Model, Plan: plan, Limits: c.Limits, Verifiers: c.Verifiers(a.Model), Start: c.Start}.Check(c.Context(), req)
	return &s, err
}

// Scale decides whether a request is answered by a search, and by which. The candidates are
// sampled as the request says in named, and else as searches do. The report is nil without a
// search, or for one that the answer does not tell of.
func (f Reader) Scale(c *api.Call, a *api.Ask, req *tts.Request, named sampling.Config) *report.Search {
	readMetadata(f.Fields)
	asked, standard := a.Asked, c.Standard
	switch {
	case a.Choice == nil:
	case asked != nil:
		asked = &api.ScalingRequest{Plan: &a.Choice.Plan, Param: asked.Param}
	default:
		standard = &a.Choice.Plan
	}
	if f.Err != nil || asked != nil && asked.Plan.Method == scaling.None {
		return nil
	}
	if req.Continued != nil {
		if asked != nil {
			f.Fail(jsonread.CodeValue, "candidates", "they belong to another server's search; ask for none here.")
		}
		return nil
	}
	var chosen *search.Search
	var err error
	sampled := *req
	named.Or(tts.SearchDefaults()).Apply(&sampled.Sampling)
	inForce := func(p scaling.Plan) scaling.Plan {
		if p.Temperature == nil && named.Temperature == nil {
			p.Temperature = new(sampled.Sampling.Temperature)
		}
		return p
	}
	switch {
	case asked == nil && (standard == nil || standard.Method == scaling.None || a.Search != nil):
		return nil
	case asked == nil:
		// A default is not a demand: a request that it does not suit gets a plain answer.
		if chosen, err = newSearch(c, a, &sampled, inForce(*standard)); err != nil {
			return nil
		}
	case a.Search != nil:
		f.Fail(jsonread.CodeValue, "best_of", "it is a search of its own; leave it out.")
		return nil
	default:
		if chosen, err = newSearch(c, a, &sampled, inForce(*asked.Plan)); err != nil {
			if asked.Plan.Temperature == nil && scaling.CodeOf(err) == scaling.CodeTemperatureZero {
				asked.Param = "temperature" // the request's own
			}
			f.Err = PlanFault(err, asked.Param)
			return nil
		}
	}
	a.Search, a.Applied = chosen, true
	req.Sampling = sampled.Sampling
	if p := chosen.Plan.Temperature; p != nil {
		req.Sampling.Temperature = *p
	}
	if a.Choice != nil {
		a.Filters = append(a.Filters, learns(c, a))
	}
	return report.NewSearch(&chosen.Plan, &req.Sampling, a.Choice, c.Start)
}

// BestOf reads best_of, the search of the completions API: the likeliest choices of
// so many. At temperature 0 all are the same. The answer does not report it.
func (f Reader) BestOf(c *api.Call, a *api.Ask, req *tts.Request) {
	n := req.N
	given := f.Int("best_of", &n, req.N, c.MaxChoices) && n > req.N
	if given && req.Continued != nil {
		f.Fail(jsonread.CodeValue, "best_of", "it cannot be given together with 'candidates'.")
		return
	}
	if given && req.Sampling.Temperature > 0 {
		plan := scaling.Plan{Method: scaling.BestOfN, N: n, Verifier: scaling.VerifierLogprob, Select: scaling.SelectMax}
		likeliest, err := newSearch(c, a, req, plan)
		if err != nil {
			f.Err = PlanFault(err, "best_of")
			return
		}
		a.Search = likeliest
	}
}
