package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts"
	openai "github.com/sashabaranov/go-openai"
)

// conversation reads messages and what else shapes the rendered prompt.
func (f *fields) conversation() tts.Prompt {
	var p tts.Prompt
	items, ok := f.list("messages", maxMessages)
	if len(items) == 0 && (ok || f.err == nil) {
		f.fail(codeMissing, "messages", "a list of at least one message is required.")
	}
	for i, raw := range items {
		if m, ok := f.sub(fmt.Sprintf("messages[%d]", i), raw); ok {
			p.Messages = append(p.Messages, m.message())
			f.adopt(m)
		}
		if f.err != nil {
			return p
		}
	}
	if n := callBytes(p.Messages); n > maxFunctions {
		f.fail(codeValue, "messages", "their tool calls have %d bytes, at most %d are allowed.", n, maxFunctions)
	}
	p.Ending = f.ending(p.Messages)
	p.Truncate = f.truncation()
	p.Extra = f.templateVariables()
	return p
}

// efforts are the values of reasoning_effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// templateVariables reads what a client tells the template: variables by their
// names, and whether and how much a thinking model shall think. As in vLLM, an
// effort turns thinking on or, with none, off; what is named goes before that.
func (f *fields) templateVariables() map[string]any {
	vars := map[string]any{}
	effort := ""
	if o, ok := f.object("reasoning"); ok {
		o.string("effort", &effort)
		f.adopt(o)
	}
	if f.string("reasoning_effort", &effort); effort != "" {
		if !slices.Contains(efforts, effort) {
			f.fail(codeValue, "reasoning_effort", "expected one of %s, but got '%s'.", strings.Join(efforts, ", "), brief([]byte(effort)))
		}
		vars["reasoning_effort"], vars["enable_thinking"] = effort, effort != "none"
	}
	if f.has("enable_thinking") {
		var on bool
		f.bool("enable_thinking", &on)
		vars["enable_thinking"] = on
	}
	maps.Copy(vars, f.templateKwargs())
	return vars
}

// templateKwargs reads the variables that a request names itself.
func (f *fields) templateKwargs() (named map[string]any) {
	const name = "chat_template_kwargs"
	raw, ok := f.take(name)
	switch {
	case !ok:
	case len(raw) > maxKwargs:
		f.fail(codeValue, name, "at most %d bytes are allowed, but got %d.", maxKwargs, len(raw))
	case json.Unmarshal(raw, &named) != nil:
		f.wrongType(name, "an object", raw)
	}
	return named
}

// ending reads how the conversation ends. Unless it is told otherwise, the
// model continues an assistant's message and answers all others.
func (f *fields) ending(messages []template.Message) tts.Ending {
	toldHeader, toldOpen := f.has("add_generation_prompt"), f.has("continue_final_message")
	var header, open bool
	f.bool("add_generation_prompt", &header)
	f.bool("continue_final_message", &open)
	if f.err != nil {
		return tts.EndHeader
	}
	last := messages[len(messages)-1]
	switch {
	case open && header:
		f.fail(codeValue, "continue_final_message", "it cannot be true when 'add_generation_prompt' is.")
	case open && last.ToolCalls != nil:
		f.fail(codeValue, "continue_final_message", "the last message calls tools, so there is no text to continue.")
	case open, !toldHeader && !toldOpen && last.Role == openai.ChatMessageRoleAssistant && last.ToolCalls == nil:
		return tts.EndOpen
	case toldHeader && !header:
		return tts.EndClosed
	}
	return tts.EndHeader
}

// truncation reads whether the oldest exchanges may be left out.
func (f *fields) truncation() bool {
	const auto, disabled = "auto", "disabled"
	mode := disabled
	if f.string("truncation", &mode); mode != auto && mode != disabled {
		f.fail(codeValue, "truncation", "expected auto or disabled, but got '%s'.", brief([]byte(mode)))
	}
	return mode == auto
}

// message reads one message of a conversation.
func (f *fields) message() template.Message {
	var m template.Message
	f.string("role", &m.Role)
	switch m.Role {
	case openai.ChatMessageRoleDeveloper:
		m.Role = openai.ChatMessageRoleSystem // its new name, which templates do not know
	case openai.ChatMessageRoleSystem, openai.ChatMessageRoleUser, openai.ChatMessageRoleAssistant, openai.ChatMessageRoleTool:
	case "":
		f.fail(codeMissing, "role", "every message needs a role.")
	default:
		f.fail(codeValue, "role", "expected one of system, developer, user, assistant and tool, but got '%s'.", brief([]byte(m.Role)))
	}
	if text, given := f.content(); given {
		m.Content = text
	} else if m.Role != openai.ChatMessageRoleAssistant {
		f.fail(codeMissing, "content", "a message of role %s needs a content.", m.Role)
	}
	f.string("name", &m.Name)
	f.text("reasoning_content", &m.ReasoningContent)
	f.string("tool_call_id", &m.ToolCallID)
	if calls := f.functions("tool_calls", "arguments"); calls != nil && m.Role == openai.ChatMessageRoleAssistant {
		m.ToolCalls = calls
	}
	f.refuse("function_call", "audio")
	f.ignore("refusal", "annotations")
	return m
}

// content reads a message's content: a string, or a list of text parts.
func (f *fields) content() (content string, given bool) {
	raw, ok := f.take("content")
	if !ok {
		return "", false
	}
	if s, ok := text(raw); ok {
		return s, true
	}
	if kind(raw) != "a list" {
		f.wrongType("content", "a string or a list of content parts", raw)
		return "", true
	}
	items, _ := f.items("content", raw, maxParts)
	var b strings.Builder
	for i, raw := range items {
		part, ok := f.sub(fmt.Sprintf("content[%d]", i), raw)
		if !ok {
			return "", true
		}
		var kind, text string
		part.string("type", &kind)
		switch kind {
		case "text", "refusal": // what an assistant says in place of a text
			part.text(kind, &text)
		default:
			part.fail(codeUnsupported, "type", "this server reads parts of type text only, but got '%s'.", brief([]byte(kind)))
		}
		b.WriteString(text)
		f.adopt(part)
	}
	return b.String(), true
}

// functions reads a list of objects that each hold a function with a name: the
// tools of a request, or the calls of a message, whose arguments are text or
// an object. They are given to the template as they are written.
func (f *fields) functions(field, arguments string) []any {
	items, _ := f.list(field, maxTools)
	var list []any
	for i, raw := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		o, ok := f.sub(at, raw)
		if !ok {
			return nil
		}
		what, name := "function", ""
		if o.string("type", &what); what != "function" {
			o.fail(codeUnsupported, "type", "expected function, but got '%s'.", brief([]byte(what)))
		}
		if fn, ok := o.object("function"); ok {
			if fn.string("name", &name); name == "" {
				fn.fail(codeMissing, "name", "every function needs a name.")
			}
			if v := fn.raw[arguments]; arguments != "" && kind(v) != "a string" && kind(v) != "an object" {
				fn.fail(codeType, arguments, "expected a string or an object, but got %s instead.", kind(v))
			}
			if f.err == nil {
				f.err = fn.err
			}
		} else {
			o.fail(codeMissing, "function", "a function is required.")
		}
		if f.err == nil {
			f.err = o.err
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

// tools reads definitions of functions for the template.
func (f *fields) tools(p *tts.Prompt) {
	p.Tools = f.functions("tools", "")
	if n := written(p.Tools); n > maxFunctions {
		f.fail(codeValue, "tools", "they have %d bytes, at most %d are allowed.", n, maxFunctions)
	}
}

// toolChoice reads the tools of a chat. The model may read of them, but calls
// of tools are not told apart from text: they may not be asked for.
func (f *fields) toolChoice(p *tts.Prompt) {
	raw, ok := f.take("tool_choice")
	choice, _ := text(raw)
	if ok && choice != "none" && choice != "auto" {
		f.fail(codeUnsupported, "tool_choice", "this server does not support calls of tools.")
	}
	if choice == "none" {
		f.tools(p)
		return
	}
	f.refuse("tools")
}
