package fields

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// readFunctions reads a list of objects that each hold a function with a name. These are the tools of a request, or the calls
// of a message, whose arguments are text or an object. The template gets them as they are written.
func readFunctions(f *jsonread.Fields, field, arguments string) []any {
	items, _ := f.List(field, MaxTools)
	var list []any
	for i, raw := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		o, ok := f.Sub(at, raw)
		if !ok {
			return nil
		}
		what, name := "function", ""
		o.OneOf("type", jsonread.CodeUnsupported, &what, "function")
		if fn, ok := o.Object("function"); ok {
			if fn.String("name", &name); name == "" {
				fn.Fail(jsonread.CodeMissing, "name", "every function needs a name.")
			}
			if arguments != "" {
				var id string
				o.String("id", &id)
				checkArguments(fn, arguments)
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

// checkArguments checks the arguments of a call: an object, or a string, which need not hold one, since an answer may
// have been cut off in a call.
func checkArguments(f *jsonread.Fields, field string) {
	if kind := jsonread.Kind(f.Raw(field)); kind != "an object" && kind != "a string" {
		f.Fail(jsonread.CodeType, field, "expected a string or an object, but got %s instead.", kind)
	}
}

// readAnsweredCall checks that a tool's message follows a call of its id, if calls have ids. ids has the ids of the
// message before the results.
func readAnsweredCall(f *jsonread.Fields, at int, m *template.Message, ids map[string]bool) {
	switch {
	case len(ids) == 0:
		f.Fail(jsonread.CodeValue, fmt.Sprintf("messages[%d].role", at), "a message of role tool follows one with 'tool_calls'.")
	case !ids[m.ToolCallID] && !ids[""] && m.ToolCallID != "":
		f.Fail(jsonread.CodeValue, fmt.Sprintf("messages[%d].tool_call_id", at), "no call of the message before has the id '%s'.", jsonread.Brief(m.ToolCallID))
	}
}

// callIDs returns the ids of a message's calls.
func callIDs(m *template.Message) map[string]bool {
	calls, _ := m.ToolCalls.([]any)
	ids := make(map[string]bool, len(calls))
	for _, raw := range calls {
		var c struct{ ID string }
		_ = json.Unmarshal(raw.(json.RawMessage), &c) // its types have been checked
		ids[c.ID] = true
	}
	return ids
}

// callBytes returns the size of all tool calls of a conversation.
func callBytes(messages []template.Message) (n int) {
	for i := range messages {
		if calls, ok := messages[i].ToolCalls.([]any); ok {
			n += written(calls)
		}
	}
	return n
}

// written returns the size of what functions has read.
func written(list []any) (n int) {
	for _, v := range list {
		n += len(v.(json.RawMessage))
	}
	return n
}

// Tools reads definitions of functions for the template.
func (f Reader) Tools(p *tts.Prompt) {
	p.Tools = readFunctions(f.Fields, "tools", "")
	if n := written(p.Tools); n > MaxFunctions {
		f.Fail(jsonread.CodeValue, "tools", "they have %d bytes, at most %d are allowed.", n, MaxFunctions)
	}
}

// The values of tool_choice that are words.
const (
	toolsNone     = "none"
	toolsAuto     = "auto"
	toolsRequired = "required"
)

// ToolChoice reads the tools of a chat, and which the model may or must call. It
// returns nil where it may call none.
func (f Reader) ToolChoice(req *tts.Request, m *tts.Model) *tts.Calling {
	f.Tools(&req.Prompt)
	parallel := true
	f.Bool("parallel_tool_calls", &parallel)
	choice, name, allowed := readToolChoice(f.Fields)
	c := &tts.Calling{Format: m.ToolFormat(), Tools: checkDefinitions(f.Fields, req.Prompt.Tools), Single: !parallel}
	allowTools(f.Fields, c, allowed)
	if f.Err != nil || choice == toolsNone || choice == "" && len(c.Tools) == 0 {
		return nil
	}
	known := slices.ContainsFunc(c.Tools, func(t toolcall.Tool) bool { return t.Name == name })
	switch {
	case len(c.Tools) == 0 && choice == toolsAuto:
		return nil
	case len(c.Tools) == 0:
		f.Fail(jsonread.CodeValue, "tool_choice", "it is only allowed when 'tools' are given.")
	case name != "" && !known:
		f.Fail(jsonread.CodeValue, "tool_choice", "there is no tool of the name '%s'.", jsonread.Brief(name))
	case choice == toolsRequired && req.Prompt.Ending != tts.AddGenerationPrompt:
		f.Fail(jsonread.CodeValue, "tool_choice", "a message that continues another cannot be made a call.")
	case choice == toolsRequired && len(c.Tools) == 1:
		name = c.Tools[0].Name
	}
	if f.Err != nil {
		return nil
	}
	if err := c.Hold(f.Context(), req, m, choice == toolsRequired, name); err != nil {
		FailFormat(f.Fields, jsonread.CodeUnsupported, "tools", "strict: ", err)
	}
	return c
}

// allowTools leaves a calling only the tools of these names; nil: all. The prompt still shows all of them, so that
// its prefix is in the cache whichever are allowed.
func allowTools(f *jsonread.Fields, c *tts.Calling, names []string) {
	if names == nil {
		return
	}
	all := c.Tools
	c.Tools = nil
	for _, t := range all {
		if slices.Contains(names, t.Name) {
			c.Tools = append(c.Tools, t)
		}
	}
	c.Only = len(c.Tools) < len(all)
	for _, name := range names {
		if !slices.ContainsFunc(all, func(t toolcall.Tool) bool { return t.Name == name }) {
			f.Fail(jsonread.CodeValue, "tool_choice", "there is no tool of the name '%s'.", jsonread.Brief(name))
		}
	}
}

// readToolChoice reads tool_choice: a word, the name of the tool to call, or the names of those
// that may be called.
func readToolChoice(f *jsonread.Fields) (choice, name string, allowed []string) {
	raw, ok := f.Take("tool_choice")
	if !ok {
		return "", "", nil
	}
	if word, ok := jsonread.Text(raw); ok {
		if word != toolsNone && word != toolsAuto && word != toolsRequired {
			f.Fail(jsonread.CodeValue, "tool_choice", "expected none, auto, required, a function or allowed_tools, but got '%s'.", jsonread.Brief(word))
		}
		return word, "", nil
	}
	o, ok := f.Sub("tool_choice", raw)
	if !ok {
		return "", "", nil
	}
	kind := "function"
	if o.String("type", &kind); kind == "allowed_tools" {
		choice, allowed = readAllowedTools(o)
		f.Adopt(o)
		return choice, "", allowed
	}
	if kind != "function" {
		o.Fail(jsonread.CodeUnsupported, "type", "expected function or allowed_tools, but got '%s'.", jsonread.Brief(kind))
	}
	name = readNamed(o, "the tool to call needs a name.")
	f.Adopt(o)
	return toolsRequired, name, nil
}

// readNamed reads the name of a function: in an object of its own, as chats have it, or besides
// the type, as responses do.
func readNamed(f *jsonread.Fields, missing string) (name string) {
	from := f
	if o, ok := f.Object("function"); ok {
		from = o
		defer f.Adopt(o)
	}
	if from.String("name", &name); name == "" {
		from.Fail(jsonread.CodeMissing, "name", "%s", missing)
	}
	return name
}

// readAllowedTools reads a mode and tools: in an object of their own, as chats have them, or
// besides the type, as responses do.
func readAllowedTools(f *jsonread.Fields) (mode string, names []string) {
	from := f
	if o, ok := f.Object("allowed_tools"); ok {
		from = o
		defer f.Adopt(o)
	}
	from.OneOf("mode", jsonread.CodeValue, &mode, toolsAuto, toolsRequired)
	for _, o := range from.Each("tools", MaxTools) {
		kind := "function"
		o.OneOf("type", jsonread.CodeUnsupported, &kind, "function")
		names = append(names, readNamed(o, "an allowed tool needs a name."))
	}
	if len(names) == 0 {
		from.Fail(jsonread.CodeMissing, "tools", "a list of at least one tool is required.")
	}
	return mode, names
}

// checkDefinitions returns tools as the reader of calls knows them.
func checkDefinitions(f *jsonread.Fields, tools []any) []toolcall.Tool {
	list, fault := toolcall.Definitions(tools)
	if fault != nil {
		code := jsonread.CodeValue
		if fault.Field == "" {
			code = jsonread.CodeType
		}
		f.Fail(code, fmt.Sprintf("tools[%d].function%s", fault.Index, fault.Field), "%s.", fault.Message)
	}
	return list
}
