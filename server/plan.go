package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/scaling"
)

// The ways to ask for test-time scaling, beside the name of the model.
const (
	scalingField  = "test_time_scaling" // in the body, and within its metadata
	scalingHeader = "X-Lutra-Scaling"
	// scalingApplied is the answer's header that says what was done.
	scalingApplied = "X-Lutra-Scaling-Applied"
)

// asked is a wish for test-time scaling and the field that it came in.
type asked struct {
	plan  *scaling.Plan
	param string
}

// scaling finds what a request wants, the first of: the object in its body,
// the header, the entry in its metadata, the preset behind its model's name,
// the server's default. An object without a method changes what the next of
// these says. nil: nobody said anything.
func (f fields) scaling(header http.Header, preset, standard *scaling.Plan) *asked {
	noted := f.metadata()
	inBody := f.plan(func() (p scaling.Plan) {
		if a := scalingBeside(f, header, noted, preset); a != nil {
			p = *a.plan
		} else if standard != nil {
			p = *standard
		}
		return p
	})
	if inBody != nil {
		return inBody
	}
	return scalingBeside(f, header, noted, preset)
}

// scalingBeside is what a request asks for elsewhere than in its body's object.
func scalingBeside(f fields, header http.Header, noted string, preset *scaling.Plan) *asked {
	written := func(text, param string) *asked {
		plan, err := scaling.Parse(text)
		if err != nil && f.Err == nil {
			f.Err = planFault(err, param)
		}
		return &asked{&plan, param}
	}
	switch {
	case header.Get(scalingHeader) != "":
		return written(header.Get(scalingHeader), scalingHeader)
	case noted != "":
		return written(noted, "metadata."+scalingField)
	case preset != nil:
		return &asked{preset, "model"}
	}
	return nil
}

// plan reads the request's test_time_scaling: an object, or the written form
// as a string. An object without a method changes the plan that is wanted beside it.
func (f fields) plan(beside func() scaling.Plan) *asked {
	raw, ok := f.Take(scalingField)
	if !ok {
		return nil
	}
	a := &asked{param: scalingField, plan: &scaling.Plan{}}
	if text, ok := jsonread.Text(raw); ok {
		plan, err := scaling.Parse(text)
		if err != nil {
			f.Err = planFault(err, scalingField)
		}
		a.plan = &plan
		return a
	}
	o, ok := f.Sub(scalingField, raw)
	if !ok {
		return nil
	}
	if !o.Has("method") {
		*a.plan = beside()
	}
	src := planFields{o: o}
	a.plan.Read(&src)
	src.close()
	f.Adopt(o)
	return a
}

// planFault is a plan's fault as the client sees it, in terms of the field that
// the plan came in.
func planFault(err error, param string) error {
	var fault *scaling.Error
	if !errors.As(err, &fault) {
		return err
	}
	if param == scalingField && fault.Field != "" {
		param += "." + fault.Field
	}
	text := fault.Message
	if fault.Field != "" && !strings.HasSuffix(param, fault.Field) {
		text = fault.Field + ": " + text
	}
	return jsonread.Errorf(fault.Code, param, "Invalid '%s': %s.", param, strings.TrimSuffix(text, "."))
}

// metadata checks the strings that clients keep with a request, and returns
// what they ask for in them.
func (f fields) metadata() (scaling string) {
	raw, ok := f.Take("metadata")
	if !ok {
		return ""
	}
	if jsonread.Kind(raw) != "an object" {
		f.WrongType("metadata", "an object of strings", raw)
		return ""
	}
	n := 0
	for written, value := range jsonread.Members(raw) {
		name, _ := jsonread.Text(written)
		s, ok := jsonread.Text(value)
		n++
		switch {
		case !ok:
			f.WrongType("metadata", "an object of strings", value)
		case n > maxMetadata:
			f.Fail(jsonread.CodeValue, "metadata", "at most %d entries are allowed.", maxMetadata)
		case len(name) > maxMetadataName || len(s) > maxMetadataValue:
			f.Fail(jsonread.CodeValue, "metadata", "names have at most %d bytes and values %d.", maxMetadataName, maxMetadataValue)
		}
		if f.Err != nil {
			return ""
		}
		if name == scalingField {
			scaling = s
		}
	}
	return scaling
}
