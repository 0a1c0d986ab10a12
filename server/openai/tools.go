package openai

import (
	"encoding/json"
	"fmt"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// functions reads a list of objects that each hold a function with a name: the tools
// of a request, or the calls of a message, whose arguments are text or an object. The
// template gets them as they are written.
func (f Fields) functions(field, arguments string) []any {
	items, _ := f.List(field, MaxTools)
	var list []any
	for i, raw := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		o, ok := f.Sub(at, raw)
		if !ok {
			return nil
		}
		what, name := "function", ""
		if o.String("type", &what); what != "function" {
			o.Fail(jsonread.CodeUnsupported, "type", "expected function, but got '%s'.", jsonread.Brief([]byte(what)))
		}
		if fn, ok := o.Object("function"); ok {
			if fn.String("name", &name); name == "" {
				fn.Fail(jsonread.CodeMissing, "name", "every function needs a name.")
			}
			if v := fn.Raw(arguments); arguments != "" && jsonread.Kind(v) != "a string" && jsonread.Kind(v) != "an object" {
				fn.Fail(jsonread.CodeType, arguments, "expected a string or an object, but got %s instead.", jsonread.Kind(v))
			}
			if f.Err == nil {
				f.Err = fn.Err
			}
		} else {
			o.Fail(jsonread.CodeMissing, "function", "a function is required.")
		}
		if f.Err == nil {
			f.Err = o.Err
		}
		list = append(list, raw)
	}
	return list
}

// callBytes is the size of all tool calls of a conversation.
func callBytes(messages []template.Message) (n int) {
	for i := range messages {
		if calls, ok := messages[i].ToolCalls.([]any); ok {
			n += written(calls)
		}
	}
	return n
}

// written is the size of what functions has read.
func written(list []any) (n int) {
	for _, v := range list {
		n += len(v.(json.RawMessage))
	}
	return n
}

// Tools reads definitions of functions for the template.
func (f Fields) Tools(p *tts.Prompt) {
	p.Tools = f.functions("tools", "")
	if n := written(p.Tools); n > MaxFunctions {
		f.Fail(jsonread.CodeValue, "tools", "they have %d bytes, at most %d are allowed.", n, MaxFunctions)
	}
}

// ToolChoice reads the tools of a chat. Calls of tools are not parsed from the text
// that a model writes, so a request may not ask for them.
func (f Fields) ToolChoice(p *tts.Prompt) {
	raw, ok := f.Take("tool_choice")
	choice, _ := jsonread.Text(raw)
	if ok && choice != "none" && choice != "auto" {
		f.Fail(jsonread.CodeUnsupported, "tool_choice", "this server does not support calls of tools.")
	}
	if choice == "none" {
		f.Tools(p)
		return
	}
	f.refuse("tools")
}
