package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// tool is a function that the client offers.
type tool struct {
	name       string
	definition json.RawMessage // as templates have it
	line       string          // as a message shows it
	deferred   bool            // only a message that refers to it makes the model know it
	callable   bool
	shown      bool // the prompt has its definition already, at its beginning or in a message
}

// readTool reads a tool.
func readTool(f *jsonread.Fields) *tool {
	var d struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      bool            `json:"strict,omitempty"`
		} `json:"function"`
	}
	d.Type = "function"
	fn, kind, deferred := &d.Function, "custom", false
	if f.String("type", &kind); kind != "custom" && kind != "" {
		f.Fail(jsonread.CodeUnsupported, "type", "this server has no tools of its own; expected custom, but got '%s'.", jsonread.Brief(kind))
	}
	f.String("name", &fn.Name)
	f.Text("description", &fn.Description)
	f.Bool("strict", &fn.Strict)
	f.Bool("defer_loading", &deferred)
	if schema, ok := f.Take("input_schema"); ok && jsonread.Kind(schema) == "an object" {
		fn.Parameters = schema
	} else {
		f.Fail(jsonread.CodeMissing, "input_schema", "a JSON schema is required.")
	}
	if !toolcall.ValidName(fn.Name) {
		f.Fail(jsonread.CodeValue, "name", "a name has 1 to 64 letters, digits, dots, underscores and dashes.")
	}
	f.Ignore("cache_control", "eager_input_streaming", "allowed_callers", "input_examples")
	if f.Err != nil {
		return nil
	}
	definition, err := json.Marshal(d)
	if err != nil {
		f.Fail(jsonread.CodeValue, "input_schema", "%v.", err)
		return nil
	}
	var line strings.Builder
	_ = jsonwrite.Encode(&line, fn) // which has just been encoded
	return &tool{name: fn.Name, definition: definition, line: strings.TrimSpace(line.String()), deferred: deferred, callable: !deferred, shown: !deferred}
}

// readTools reads the tools.
func readTools(f *jsonread.Fields) (list []*tool) {
	size := 0
	for _, o := range f.Each("tools", maxTools) {
		t := readTool(o)
		if o.Err != nil {
			continue
		}
		if size += len(t.definition); size > maxCalls {
			f.Fail(jsonread.CodeValue, "tools", "they have more than %d bytes.", maxCalls)
			return list
		}
		list = append(list, t)
	}
	checkTools(f, "tools", definitions(list, func(*tool) bool { return true }))
	return list
}

// checkTools reads definitions of tools once more as calls are checked by them.
func checkTools(f *jsonread.Fields, field string, definitions []any) []toolcall.Tool {
	tools, fault := toolcall.Definitions(definitions)
	if fault != nil {
		f.Fail(jsonread.CodeValue, fmt.Sprintf("%s[%d]", field, fault.Index), "%s.", fault.Message)
	}
	return tools
}

// definitions returns the definitions of the wanted tools.
func definitions(tools []*tool, want func(*tool) bool) (list []any) {
	for _, t := range tools {
		if want(t) {
			list = append(list, t.definition)
		}
	}
	return list
}

// functions shows the model tools that it learns of in a message, and names those that it
// knows: however often one is referred to, its definition is written once.
func functions(tools []*tool) string {
	var b strings.Builder
	b.WriteString("<functions>\n")
	for _, t := range tools {
		line := t.line
		if t.shown {
			line = `{"name":"` + t.name + `"}`
		}
		t.shown = true
		b.WriteString("<function>" + line + "</function>\n")
	}
	b.WriteString("</functions>")
	return b.String()
}

// readToolChoice reads which of the tools that the model knows may or must be called.
func readToolChoice(f *jsonread.Fields, req *tts.Request, m *tts.Model, known []*tool) *tts.Calling {
	kind, name, one := "auto", "", false
	f.In("tool_choice", func(o *jsonread.Fields) {
		o.OneOf("type", jsonread.CodeValue, &kind, "auto", "any", "tool", "none")
		o.String("name", &name)
		o.Bool("disable_parallel_tool_use", &one)
	})
	tools := checkTools(f, "tools", definitions(known, func(t *tool) bool { return t.callable }))
	if f.Err != nil || kind == "none" || len(tools) == 0 && kind == "auto" {
		return nil
	}
	c := &tts.Calling{Format: m.ToolFormat(), Tools: tools, Single: one,
		Only: slices.ContainsFunc(known, func(t *tool) bool { return !t.callable && !t.deferred })}
	switch {
	case len(tools) == 0:
		f.Fail(jsonread.CodeValue, "tool_choice", "it is only allowed when 'tools' are given.")
	case kind != "auto" && req.Prompt.Ending != tts.AddGenerationPrompt:
		f.Fail(jsonread.CodeValue, "tool_choice", "a message that continues another cannot be made a call.")
	case kind == "tool" && !slices.ContainsFunc(tools, func(t toolcall.Tool) bool { return t.Name == name }):
		f.Fail(jsonread.CodeValue, "tool_choice.name", "there is no tool of the name '%s'.", jsonread.Brief(name))
	case kind == "any" && len(tools) == 1:
		name = tools[0].Name
	}
	if f.Err != nil {
		return nil
	}
	if err := c.Hold(f.Context(), req, m, kind != "auto", name); err != nil {
		fields.FailFormat(f, jsonread.CodeUnsupported, "tools", "strict: ", err)
	}
	return c
}
