package openai

import (
	"errors"
	"strings"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// ScalingRequest is a plan that a request asks for, and the field that it came in.
type ScalingRequest struct {
	Plan  *scaling.Plan
	Param string
}

// Scaling finds the plan that a request asks for, the first of: the object in its
// body, the value of api.ScalingHeader, the entry in its metadata, the preset behind its model's name. An
// object without a method changes the next of these, or the server's standard. nil:
// the request asks for none.
func (f Fields) Scaling(header string, preset, standard *scaling.Plan) *ScalingRequest {
	fromMetadata := f.metadata()
	inBody := f.plan(func() (p scaling.Plan) {
		if a := planElsewhere(f, header, fromMetadata, preset); a != nil {
			p = *a.Plan
		} else if standard != nil {
			p = *standard
		}
		return p
	})
	if inBody != nil {
		return inBody
	}
	return planElsewhere(f, header, fromMetadata, preset)
}

// planElsewhere is what a request asks for outside its body's object.
func planElsewhere(f Fields, header, fromMetadata string, preset *scaling.Plan) *ScalingRequest {
	written := func(text, param string) *ScalingRequest {
		plan, err := scaling.Parse(text)
		if err != nil && f.Err == nil {
			f.Err = PlanFault(err, param)
		}
		return &ScalingRequest{&plan, param}
	}
	switch {
	case header != "":
		return written(header, api.ScalingHeader)
	case fromMetadata != "":
		return written(fromMetadata, "metadata."+api.ScalingField)
	case preset != nil:
		return &ScalingRequest{preset, "model"}
	}
	return nil
}

// plan reads the request's test_time_scaling: an object, or the written form
// as a string. An object without a method changes the plan that the request asks for
// elsewhere.
func (f Fields) plan(elsewhere func() scaling.Plan) *ScalingRequest {
	raw, ok := f.Take(api.ScalingField)
	if !ok {
		return nil
	}
	a := &ScalingRequest{Param: api.ScalingField, Plan: &scaling.Plan{}}
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
	src.close()
	f.Adopt(o)
	return a
}

// PlanFault is a plan's fault as the client sees it: it names the field that the plan
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
