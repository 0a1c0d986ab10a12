package responses

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// The roles of messages.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// Bounds on one request, beside those in jsonread and openai.
const (
	maxItems = 2048
	maxParts = 256     // of an item
	maxCalls = 1 << 20 // bytes of calls of tools
)

// input reads what is added to a conversation: a text, or a list of items.
func (f Fields) input(before []template.Message) []template.Message {
	raw, ok := f.Take("input")
	if !ok {
		f.Fail(jsonread.CodeMissing, "input", "a text or a list of items is required.")
		return nil
	}
	if s, ok := jsonread.Text(raw); ok {
		return append(before, template.Message{Role: roleUser, Content: s})
	}
	if jsonread.Kind(raw) != "a list" {
		f.WrongType("input", "a string or a list of items", raw)
		return nil
	}
	c := conversation{messages: before}
	items, _ := f.Items("input", raw, maxItems)
	for i, raw := range items {
		o, ok := f.Sub(fmt.Sprintf("input[%d]", i), raw)
		if !ok {
			return nil
		}
		c.item(Fields{o})
		if f.Adopt(o); f.Err != nil {
			return nil
		}
	}
	if c.bytes > maxCalls {
		f.Fail(jsonread.CodeValue, "input", "its function calls have %d bytes, at most %d are allowed.", c.bytes, maxCalls)
	}
	if len(c.messages) == 0 {
		f.Fail(jsonread.CodeMissing, "input", "there is nothing to answer.")
	}
	return c.messages
}

// conversation is made of items: thoughts and calls become part of the message of
// the assistant that they stand beside.
type conversation struct {
	messages []template.Message
	bytes    int             // of calls
	ids      map[string]bool // of the calls that the results at the end are of
}

// item adds one.
func (c *conversation) item(f Fields) {
	kind := "message"
	f.String("type", &kind)
	f.Ignore("id", "status", "annotations", "phase")
	switch kind {
	case "message":
		c.message(f)
	case "function_call":
		c.call(f)
	case "function_call_output":
		c.output(f)
	case "reasoning":
		thought := f.parts("content", "reasoning_text")
		if thought == "" {
			thought = f.parts("summary", "summary_text")
		}
		f.Ignore("encrypted_content", "summary")
		c.assistant().ReasoningContent += thought
	default:
		f.Fail(jsonread.CodeUnsupported, "type", "this server does not read items of type '%s'.", jsonread.Brief([]byte(kind)))
	}
}

// assistant is the message of the assistant at the end, a new one if there is none.
func (c *conversation) assistant() *template.Message {
	if n := len(c.messages); n == 0 || c.messages[n-1].Role != roleAssistant {
		c.messages = append(c.messages, template.Message{Role: roleAssistant})
	}
	return &c.messages[len(c.messages)-1]
}

func (c *conversation) message(f Fields) {
	var role string
	f.String("role", &role)
	if role == "developer" {
		role = roleSystem
	}
	if !slices.Contains([]string{roleSystem, roleUser, roleAssistant}, role) {
		f.Fail(jsonread.CodeValue, "role", "expected user, assistant, system or developer, but got '%s'.", jsonread.Brief([]byte(role)))
		return
	}
	text := f.parts("content", "input_text", "output_text", "text", "refusal")
	if role == roleAssistant {
		m := c.assistant()
		before, _ := m.Content.(string)
		m.Content = before + text
		return
	}
	c.messages = append(c.messages, template.Message{Role: role, Content: text})
}

// parts reads a text, or a list of parts of these types.
func (f Fields) parts(field string, types ...string) string {
	raw, ok := f.Take(field)
	if !ok {
		return ""
	}
	if s, ok := jsonread.Text(raw); ok {
		return s
	}
	if jsonread.Kind(raw) != "a list" {
		f.WrongType(field, "a string or a list of parts", raw)
		return ""
	}
	var b strings.Builder
	items, _ := f.Items(field, raw, maxParts)
	for i, raw := range items {
		o, ok := f.Sub(fmt.Sprintf("%s[%d]", field, i), raw)
		if !ok {
			return ""
		}
		var kind, text string
		if o.String("type", &kind); !slices.Contains(types, kind) {
			o.Fail(jsonread.CodeUnsupported, "type", "expected %s, but got '%s'.", strings.Join(types, " or "), jsonread.Brief([]byte(kind)))
		}
		name := "text"
		if kind == "refusal" {
			name = kind
		}
		o.Text(name, &text)
		o.Ignore("annotations", "logprobs")
		b.WriteString(text)
		if f.Adopt(o); f.Err != nil {
			return ""
		}
	}
	return b.String()
}

// writtenCall is a call as templates have it.
type writtenCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func newCall(id, name, arguments string) json.RawMessage {
	c := writtenCall{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, arguments
	raw, _ := json.Marshal(c) // strings
	return raw
}

func (c *conversation) call(f Fields) {
	var id, name, arguments string
	f.String("call_id", &id)
	f.String("name", &name)
	f.Text("arguments", &arguments)
	switch v := []byte(arguments); {
	case id == "":
		f.Fail(jsonread.CodeMissing, "call_id", "it is required.")
	case name == "":
		f.Fail(jsonread.CodeMissing, "name", "it is required.")
	case len(v) > 0 && (!json.Valid(v) || jsonread.Kind(v) != "an object"):
		f.Fail(jsonread.CodeValue, "arguments", "they are no JSON object.")
	}
	raw := newCall(id, name, arguments)
	c.bytes += len(raw)
	m := c.assistant()
	calls, _ := m.ToolCalls.([]any)
	m.ToolCalls = append(calls[:len(calls):len(calls)], raw)
}

func (c *conversation) output(f Fields) {
	m := template.Message{Role: roleTool}
	f.String("call_id", &m.ToolCallID)
	m.Content = f.parts("output", "input_text", "output_text")
	if !c.called()[m.ToolCallID] {
		f.Fail(jsonread.CodeValue, "call_id", "no function call before has the id '%s'.", jsonread.Brief([]byte(m.ToolCallID)))
		return
	}
	c.messages = append(c.messages, m)
}

// called are the ids of the calls that results at the end are of. They are read once a
// message, however many results there are.
func (c *conversation) called() map[string]bool {
	n := len(c.messages)
	if n > 0 && c.messages[n-1].Role == roleTool && c.ids != nil {
		return c.ids
	}
	c.ids = map[string]bool{}
	for n > 0 && c.messages[n-1].Role == roleTool {
		n--
	}
	if n == 0 {
		return c.ids
	}
	calls, _ := c.messages[n-1].ToolCalls.([]any)
	for _, raw := range calls {
		var call writtenCall
		if json.Unmarshal(raw.(json.RawMessage), &call) == nil {
			c.ids[call.ID] = true
		}
	}
	return c.ids
}
