package anthropic

import (
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
)

// efforts are the values of effort.
var efforts = []string{"low", "medium", "high", "xhigh", "max"}

// output reads what an answer is held to and how much the model makes of it:
// output_config, or output_format, as its format was called before.
func (f fields) output(req *tts.Request, m *tts.Model) {
	f.format("output_format", req, m)
	o, ok := f.Object("output_config")
	if !ok {
		return
	}
	effort := ""
	if o.String("effort", &effort); effort != "" {
		if !slices.Contains(efforts, effort) {
			o.Fail(jsonread.CodeValue, "effort", "expected one of %s, but got '%s'.", strings.Join(efforts, ", "), jsonread.Brief([]byte(effort)))
		}
		vars := maps.Clone(req.Prompt.Extra)
		if vars == nil {
			vars = map[string]any{}
		}
		vars["reasoning_effort"] = effort
		req.Prompt.Extra = vars
	}
	fields{o}.format("format", req, m)
	f.Adopt(o)
}

// format reads a schema that an answer is held to.
func (f fields) format(field string, req *tts.Request, m *tts.Model) {
	o, ok := f.Object(field)
	if !ok {
		return
	}
	kind := ""
	o.OneOf("type", jsonread.CodeUnsupported, &kind, "json_schema")
	schema, given := o.Take("schema")
	if !given {
		o.Fail(jsonread.CodeMissing, "schema", "a schema is required.")
	}
	if f.Adopt(o); f.Err == nil {
		openai.Fields{Fields: f.Fields}.HoldTo(req, m, field, constrain.Schema, string(schema))
	}
}
