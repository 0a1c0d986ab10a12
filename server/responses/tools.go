package responses

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// The types of tools.
const (
	toolFunction  = "function"
	toolCustom    = "custom"
	toolNamespace = "namespace"
	toolWebSearch = "web_search" // of the server's own
)

// functionTool is a function as a response repeats it.
type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"` // null: none
	Strict      bool            `json:"strict"`
}

// customTool is a tool whose input is a text. Models see a function of one argument.
type customTool struct {
	Type        string       `json:"type"`
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"`
	Format      customFormat `json:"format"`
}

// customFormat constrains the input of a custom tool.
type customFormat struct {
	Type       string `json:"type"` // text or grammar
	Syntax     string `json:"syntax,omitempty"`
	Definition string `json:"definition,omitempty"`
}

// chatTool is a tool as chats have it.
type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      bool            `json:"strict,omitempty"`
	} `json:"function"`
}

// inputArgument is the argument of a custom tool.
const inputArgument = "input"

// namespaceTool is a list of functions with a name of its own. Models see them beside the others, by the
// names of both.
type namespaceTool struct {
	Type        string         `json:"type"`
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Tools       []functionTool `json:"tools"`
}

// joined returns the name by which models see a function of a namespace; empty: it has none.
func joined(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// toolReader reads the tools of a request.
type toolReader struct {
	model *tts.Model
	s     *settings
	chat  []*chatTool // that models see
	names []string    // of these
}

// readTools reads this API's tools, which are flat, and gives them the form of chats' tools.
func readTools(f *jsonread.Fields, m *tts.Model, s *settings) {
	if !f.Has("tools") {
		return
	}
	r := &toolReader{model: m, s: s, chat: []*chatTool{}}
	for _, o := range f.Each("tools", fields.MaxTools) {
		if echo := r.tool(o); echo != nil {
			s.Tools = append(s.Tools, echo)
		}
	}
	if f.Err != nil {
		return
	}
	raw, err := json.Marshal(r.chat)
	if err != nil {
		f.Fail(jsonread.CodeValue, "tools", "%v.", err)
		return
	}
	f.Put("tools", raw)
}

// tool reads one, and returns what a response repeats of it; nil: it is left out.
func (r *toolReader) tool(f *jsonread.Fields) any {
	var kind string
	switch f.String("type", &kind); kind {
	case toolFunction:
		return r.function(f, "")
	case toolCustom:
		t := r.named(f, "")
		r.s.custom = append(r.s.custom, t.Function.Name)
		return readCustom(f, r.model, t)
	case toolNamespace:
		return r.namespace(f)
	case toolWebSearch: // which a model may call, and so may also do without
		r.s.leftOut = true
		f.Ignore("external_web_access", "filters", "search_context_size", "search_content_types", "user_location")
		return nil
	}
	f.Fail(jsonread.CodeUnsupported, "type", "this server has no tools of its own; expected function, custom or namespace, but got '%s'.", jsonread.Brief(kind))
	return nil
}

// namespace reads the functions of one.
func (r *toolReader) namespace(f *jsonread.Fields) namespaceTool {
	echo := namespaceTool{Type: toolNamespace, Tools: []functionTool{}}
	f.String("name", &echo.Name)
	f.Text("description", &echo.Description)
	if !toolcall.ValidName(echo.Name) {
		f.Fail(jsonread.CodeValue, "name", "a name has 1 to 64 letters, digits, dots, underscores and dashes.")
	}
	for _, o := range f.Each("tools", fields.MaxTools-len(r.chat)) {
		kind := ""
		o.OneOf("type", jsonread.CodeUnsupported, &kind, toolFunction)
		echo.Tools = append(echo.Tools, r.function(o, echo.Name))
	}
	return echo
}

// function reads a function of a namespace; empty: of none.
func (r *toolReader) function(f *jsonread.Fields, namespace string) functionTool {
	t := r.named(f, namespace)
	echo := readFunction(f, t)
	if t.Function.Name = joined(namespace, echo.Name); namespace != "" {
		r.s.spaced = append(r.s.spaced, spacedName{t.Function.Name, namespace, echo.Name})
	}
	return echo
}

// named reads what all tools have that models see.
func (r *toolReader) named(f *jsonread.Fields, namespace string) *chatTool {
	t := &chatTool{Type: toolFunction}
	fn := &t.Function
	f.String("name", &fn.Name)
	f.Text("description", &fn.Description)
	seen := joined(namespace, fn.Name)
	switch {
	case fn.Name == "" || !toolcall.ValidName(seen):
		f.Fail(jsonread.CodeValue, "name", "a name, that of its namespace included, has 1 to 64 letters, digits, dots, underscores and dashes.")
	case slices.Contains(r.names, seen):
		f.Fail(jsonread.CodeValue, "name", "there are two tools of this name.")
	}
	r.chat, r.names = append(r.chat, t), append(r.names, seen)
	f.Refuse("defer_loading", "output_schema")
	if callers := string(f.Raw("allowed_callers")); callers == `["direct"]` {
		f.Ignore("allowed_callers")
	}
	f.Refuse("allowed_callers")
	return t
}

// readFunction reads a function into t.
func readFunction(f *jsonread.Fields, t *chatTool) functionTool {
	fn := &t.Function
	f.Bool("strict", &fn.Strict)
	if raw, ok := f.Take("parameters"); ok {
		if jsonread.Kind(raw) != "an object" {
			f.WrongType("parameters", "an object", raw)
		}
		fn.Parameters = raw
	}
	echo := functionTool{toolFunction, fn.Name, fn.Description, bytes.Clone(fn.Parameters), fn.Strict} // which may be kept: not the body
	if echo.Parameters == nil {
		echo.Parameters = json.RawMessage("null")
	}
	return echo
}

// readCustom reads a tool whose input is a text into t.
func readCustom(f *jsonread.Fields, m *tts.Model, t *chatTool) customTool {
	echo := customTool{Type: toolCustom, Name: t.Function.Name, Description: t.Function.Description, Format: customFormat{Type: "text"}}
	type argument struct {
		Type    string `json:"type"`
		Pattern string `json:"pattern,omitempty"`
	}
	input := argument{Type: "string"}
	f.In("format", func(o *jsonread.Fields) {
		format := &echo.Format
		o.String("type", &format.Type)
		switch format.Type {
		case "text":
		case "grammar":
			o.String("syntax", &format.Syntax)
			o.Text("definition", &format.Definition)
			switch {
			case format.Syntax != "regex":
				o.Fail(jsonread.CodeUnsupported, "syntax", "this server reads grammars of the syntax regex, but got '%s'.", jsonread.Brief(format.Syntax))
			case format.Definition == "":
				o.Fail(jsonread.CodeMissing, "definition", "it is required.")
			default:
				if _, err := m.Formats.Format(f.Context(), constrain.Regex, format.Definition); err != nil {
					fields.FailFormat(o, jsonread.CodeValue, "definition", "", err)
				}
			}
			input.Pattern = "^(?:" + format.Definition + ")$"
		default:
			o.Fail(jsonread.CodeUnsupported, "type", "expected text or grammar, but got '%s'.", jsonread.Brief(format.Type))
		}
	})
	schema, err := json.Marshal(struct {
		Type       string              `json:"type"`
		Properties map[string]argument `json:"properties"`
		Required   []string            `json:"required"`
		More       bool                `json:"additionalProperties"`
	}{"object", map[string]argument{inputArgument: input}, []string{inputArgument}, false})
	if err != nil {
		f.Fail(jsonread.CodeValue, "format", "%v.", err)
	}
	t.Function.Parameters, t.Function.Strict = schema, true // so that the input can be found in the call
	return echo
}

// readToolChoice turns the choice of a custom tool, or of one of a namespace, into the choice of the function that
// models see.
func readToolChoice(f *jsonread.Fields, s *settings) {
	raw := f.Raw("tool_choice")
	if raw == nil || string(raw) == "null" {
		return
	}
	s.ToolChoice = bytes.Clone(raw)
	var choice map[string]any
	if json.Unmarshal(raw, &choice) != nil { // a word
		return
	}
	nest := func(v any) {
		o, ok := v.(map[string]any)
		if ok && o["type"] == toolCustom {
			o["type"] = toolFunction
		}
		name, named := o["name"].(string)
		if space, spaced := o["namespace"].(string); named && spaced {
			o["name"] = joined(space, name)
			delete(o, "namespace")
		}
	}
	nest(choice)
	if list, ok := choice["tools"].([]any); ok {
		for _, v := range list {
			nest(v)
		}
	}
	if nested, err := json.Marshal(choice); err == nil {
		f.Put("tool_choice", nested)
	}
}
