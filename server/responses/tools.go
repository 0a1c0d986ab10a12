package responses

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// The types of tools.
const (
	toolFunction = "function"
	toolCustom   = "custom"
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

// customFormat is what the input of a custom tool is held to.
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

// tools reads this API's tools, which are flat, and puts those of chats in their place.
func (f fields) tools(m *tts.Model, s *settings) {
	if !f.Has("tools") {
		return
	}
	nested := []*chatTool{}
	var names []string
	for _, o := range f.Each("tools", openai.MaxTools) {
		t := &chatTool{Type: toolFunction}
		nested = append(nested, t)
		fn := &t.Function
		var kind string
		o.String("type", &kind)
		o.String("name", &fn.Name)
		o.Text("description", &fn.Description)
		switch kind {
		case toolFunction:
			s.Tools = append(s.Tools, fields{o}.function(t))
		case toolCustom:
			s.Tools = append(s.Tools, fields{o}.custom(m, t))
			s.custom = append(s.custom, fn.Name)
		default:
			o.Fail(jsonread.CodeUnsupported, "type", "this server has no tools of its own; expected function or custom, but got '%s'.", jsonread.Brief(kind))
		}
		switch {
		case !toolcall.ValidName(fn.Name):
			o.Fail(jsonread.CodeValue, "name", "a name has 1 to 64 letters, digits, dots, underscores and dashes.")
		case slices.Contains(names, fn.Name):
			o.Fail(jsonread.CodeValue, "name", "there are two tools of this name.")
		}
		names = append(names, fn.Name)
		o.Refuse("defer_loading", "output_schema")
		if callers := string(o.Raw("allowed_callers")); callers == `["direct"]` {
			o.Ignore("allowed_callers")
		}
		o.Refuse("allowed_callers")
	}
	if f.Err != nil {
		return
	}
	raw, err := json.Marshal(nested)
	if err != nil {
		f.Fail(jsonread.CodeValue, "tools", "%v.", err)
		return
	}
	f.Put("tools", raw)
}

// function reads a function into t.
func (f fields) function(t *chatTool) functionTool {
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

// custom reads a tool whose input is a text into t.
func (f fields) custom(m *tts.Model, t *chatTool) customTool {
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
					openai.FailFormat(o, jsonread.CodeValue, "definition", "", err)
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

// toolChoice turns the choice of a custom tool into that of the function that models see.
func (f fields) toolChoice(s *settings) {
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
		if o, ok := v.(map[string]any); ok && o["type"] == toolCustom {
			o["type"] = toolFunction
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
