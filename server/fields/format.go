package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/grammar/schema"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/structure"
)

// The bounds of choices among texts.
const (
	MaxFormatChoices   = 4096
	MaxFormatChoiceLen = 4096
)

// format is the format that a request asks for.
type format struct {
	name string // of the field
	kind constrain.Kind
	text string
}

// Format reads what answers are held to: OpenAI's response_format, vLLM's
// structured_outputs and guided fields, llama.cpp's grammar and json_schema.
func (f Reader) Format(req *tts.Request, m *tts.Model) {
	var asked []format
	ask := func(name string, kind constrain.Kind, text string) {
		asked = append(asked, format{name, kind, text})
	}
	readResponseFormat(f.Fields, ask)
	readStructuredOutputs(f.Fields, ask)
	readFormatFields(f.Fields, "guided_", ask)
	readFormatField(f.Fields, "grammar", constrain.Grammar, ask)
	readFormatField(f.Fields, "json_schema", constrain.Schema, ask)
	if f.Err != nil || len(asked) == 0 {
		return
	}
	one := asked[0]
	if len(asked) > 1 {
		f.Fail(jsonread.CodeValue, one.name, "it cannot be given together with '%s'.", asked[1].name)
		return
	}
	f.HoldTo(req, m, one.name, one.kind, one.text)
}

// HoldTo holds answers to a format that a field asks for: those that are no calls of tools, which have been
// read before.
func (f Reader) HoldTo(req *tts.Request, m *tts.Model, name string, kind constrain.Kind, text string) {
	for _, other := range []struct {
		name string
		bad  bool
	}{
		{"min_tokens", req.MinTokens > 0}, {"allowed_token_ids", req.Allowed != nil}, {"ignore_eos", req.Sampling.IgnoreEOS},
		{"continue_final_message", req.Prompt.Messages != nil && req.Prompt.Ending == tts.ContinueFinalMessage},
		{"tools", req.Calling != nil && kind == constrain.Grammar},
	} {
		if other.bad {
			f.Fail(jsonread.CodeValue, name, "it cannot be given together with '%s'.", other.name)
		}
	}
	if f.Err != nil {
		return
	}
	var err error
	if c := req.Calling; c != nil {
		err = c.HoldAnswer(f.Context(), req, m, kind, text)
	} else {
		req.Format, err = m.Formats.Format(f.Context(), kind, text)
	}
	if err != nil {
		FailFormat(f.Fields, jsonread.CodeValue, name, "", err)
	}
	if kind == constrain.Schema && err == nil {
		req.JSON, req.Unheld = true, schema.Unheld([]byte(text))
	}
}

// The bounds of what a warning quotes.
const (
	mostWarned    = 8
	mostWarnedLen = 64
)

// Unheld warns of formats of strings that an answer is not held to.
func Unheld(formats []string) string {
	more := ""
	if len(formats) > mostWarned {
		more = fmt.Sprintf(" and %d more", len(formats)-mostWarned)
		formats = formats[:mostWarned]
	}
	quoted := make([]string, len(formats))
	for i, name := range formats {
		quoted[i] = strconv.QuoteToASCII(name[:min(len(name), mostWarnedLen)])
	}
	return "strings are not held to unknown formats: " + strings.Join(quoted, ", ") + more
}

// FailFormat says in f what is wrong with the format of a field, unless nothing is: there
// was no time or no memory for it.
func FailFormat(f *jsonread.Fields, code, name, before string, err error) {
	switch {
	case f.Err != nil:
	case f.Context().Err() != nil, errors.Is(err, structure.ErrBusy):
		f.Err = err
	default:
		f.Fail(code, name, "%s%s.", before, err)
	}
}

// readResponseFormat reads OpenAI's field, in which llama.cpp's clients put a schema
// besides the type.
func readResponseFormat(f *jsonread.Fields, ask func(name string, kind constrain.Kind, text string)) {
	o, ok := f.Object("response_format")
	if !ok {
		return
	}
	var kind string
	o.String("type", &kind)
	switch kind {
	case "text":
	case "json_object":
		text := schema.Object
		if raw, ok := o.Take("schema"); ok {
			text = string(raw)
		}
		ask("response_format", constrain.Schema, text)
	case "json_schema":
		inner, in := o.Object("json_schema")
		if !in {
			inner = o
		}
		var strict bool
		inner.Bool("strict", &strict) // a schema is held to in any case
		inner.Ignore("name", "description")
		raw, ok := inner.Take("schema")
		switch {
		case ok:
			ask("response_format", constrain.Schema, string(raw))
		case inner.Err == nil:
			inner.Fail(jsonread.CodeMissing, "schema", "a schema is required.")
		}
		if in {
			o.Adopt(inner)
		}
	default:
		o.Fail(jsonread.CodeUnsupported, "type", "expected text, json_object or json_schema, but got '%s'.", jsonread.Brief(kind))
	}
	f.Adopt(o)
}

// readStructuredOutputs reads vLLM's field.
func readStructuredOutputs(f *jsonread.Fields, ask func(name string, kind constrain.Kind, text string)) {
	if !never.Asks(orNull(f.Raw("structured_outputs"))) {
		f.Ignore("structured_outputs")
		return
	}
	o, ok := f.Object("structured_outputs")
	if !ok {
		return
	}
	readFormatFields(o, "", func(name string, kind constrain.Kind, text string) { ask("structured_outputs."+name, kind, text) })
	object := false
	if o.Bool("json_object", &object); object {
		ask("structured_outputs.json_object", constrain.Schema, schema.Object)
	}
	o.Refuse("structural_tag", "whitespace_pattern", "disable_any_whitespace", "disable_additional_properties")
	f.Adopt(o)
}

// readFormatFields reads json, regex, choice and grammar with a prefix.
func readFormatFields(f *jsonread.Fields, prefix string, ask func(name string, kind constrain.Kind, text string)) {
	readFormatField(f, prefix+"json", constrain.Schema, ask)
	readFormatField(f, prefix+"regex", constrain.Regex, ask)
	readFormatField(f, prefix+"grammar", constrain.Grammar, ask)
	readFormatField(f, prefix+"choice", constrain.Choice, ask)
}

// orNull returns raw, null where there is nothing.
func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// readFormatField reads one field. Empty values ask for nothing.
func readFormatField(f *jsonread.Fields, name string, kind constrain.Kind, ask func(name string, kind constrain.Kind, text string)) {
	raw, ok := f.Take(name)
	if !ok || !never.Asks(raw) {
		return
	}
	text, isText := jsonread.Text(raw)
	switch kind {
	case constrain.Schema:
		switch {
		case isText:
			ask(name, kind, text)
		case jsonread.Kind(raw) == "an object", string(raw) == "true":
			ask(name, kind, string(raw))
		default:
			f.WrongType(name, "a schema", raw)
		}
	case constrain.Choice:
		items, _ := f.Items(name, raw, MaxFormatChoices)
		texts := make([]string, len(items))
		for i, item := range items {
			if texts[i], ok = jsonread.Text(item); !ok || texts[i] == "" || len(texts[i]) > MaxFormatChoiceLen || strings.Contains(texts[i], "\x00") {
				f.Fail(jsonread.CodeValue, fmt.Sprintf("%s[%d]", name, i), "a choice is a string of 1 to %d bytes.", MaxFormatChoiceLen)
			}
		}
		if f.Err == nil {
			ask(name, kind, constrain.Choices(texts))
		}
	default:
		if !isText {
			f.WrongType(name, "a string", raw)
			return
		}
		ask(name, kind, text)
	}
}
