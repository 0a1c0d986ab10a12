package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// The roles of messages, and those of the template.
const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// text reads a string, or a list of text blocks.
func (f Fields) text(field string) (text string, given bool) {
	raw, ok := f.Take(field)
	if !ok {
		return "", false
	}
	if s, ok := jsonread.Text(raw); ok {
		return s, true
	}
	var b strings.Builder
	f.blocks(field, raw, func(kind string, o *jsonread.Fields) {
		if kind != "text" {
			o.Fail(jsonread.CodeUnsupported, "type", "this server reads text here, but got '%s'.", jsonread.Brief([]byte(kind)))
		}
		var s string
		o.Text("text", &s)
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(s)
	})
	return b.String(), true
}

// blocks reads a list of content blocks.
func (f Fields) blocks(field string, raw json.RawMessage, read func(kind string, o *jsonread.Fields)) {
	if jsonread.Kind(raw) != "a list" {
		f.WrongType(field, "a string or a list of content blocks", raw)
		return
	}
	items, _ := f.Items(field, raw, maxBlocks)
	for i, raw := range items {
		o, ok := f.Sub(fmt.Sprintf("%s[%d]", field, i), raw)
		if !ok {
			return
		}
		var kind string
		o.String("type", &kind)
		o.Ignore("cache_control", "citations")
		read(kind, o)
		if f.Adopt(o); f.Err != nil {
			return
		}
	}
}

// message reads a message, which may be several of the template's: each result of a
// tool is one of its own, and what the user says besides follows.
func (f Fields) message() (list []template.Message) {
	m := template.Message{Content: ""}
	f.String("role", &m.Role)
	if m.Role != roleUser && m.Role != roleAssistant {
		f.Fail(jsonread.CodeValue, "role", "expected user or assistant, but got '%s'.", jsonread.Brief([]byte(m.Role)))
		return nil
	}
	raw, ok := f.Take("content")
	if !ok {
		f.Fail(jsonread.CodeMissing, "content", "a message needs a content.")
		return nil
	}
	if s, ok := jsonread.Text(raw); ok {
		m.Content = s
		return []template.Message{m}
	}
	var text, thought strings.Builder
	var calls []any
	f.blocks("content", raw, func(kind string, o *jsonread.Fields) {
		b := Fields{o}
		switch {
		case kind == "text":
			var s string
			b.Text("text", &s)
			text.WriteString(s)
		case kind == "tool_result" && m.Role == roleUser:
			list = append(list, b.result())
		case kind == "tool_use" && m.Role == roleAssistant:
			calls = append(calls, b.call())
		case kind == "thinking" && m.Role == roleAssistant:
			var s string
			b.Text("thinking", &s)
			thought.WriteString(s)
			b.Ignore("signature")
		default:
			b.Fail(jsonread.CodeUnsupported, "type", "this server does not read '%s' of role %s.", jsonread.Brief([]byte(kind)), m.Role)
		}
	})
	m.Content, m.ReasoningContent = text.String(), thought.String()
	if calls != nil {
		if m.ToolCalls = calls; text.Len() == 0 {
			m.Content = nil
		}
	}
	if len(list) == 0 || text.Len() > 0 {
		list = append(list, m)
	}
	return list
}

// result reads what came of a call.
func (f Fields) result() template.Message {
	m := template.Message{Role: roleTool}
	f.String("tool_use_id", &m.ToolCallID)
	if m.ToolCallID == "" {
		f.Fail(jsonread.CodeMissing, "tool_use_id", "it is required.")
	}
	text, _ := f.text("content")
	failed := false
	if f.Bool("is_error", &failed); failed {
		text = "Error: " + text
	}
	m.Content = text
	return m
}

// call reads a call as the template has them.
func (f Fields) call() json.RawMessage {
	var c struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	c.Type = "function"
	f.String("id", &c.ID)
	f.String("name", &c.Function.Name)
	input, _ := f.Take("input")
	switch {
	case c.ID == "":
		f.Fail(jsonread.CodeMissing, "id", "it is required.")
	case c.Function.Name == "":
		f.Fail(jsonread.CodeMissing, "name", "it is required.")
	case jsonread.Kind(input) != "an object":
		f.Fail(jsonread.CodeType, "input", "expected an object.")
	}
	if f.Err != nil {
		return nil
	}
	text, _ := json.Marshal(string(input)) // as OpenAI's: what the template wants is made of it
	c.Function.Arguments = text
	raw, _ := json.Marshal(c)
	return raw
}

// follow checks that results follow their calls.
func (f Fields) follow(messages []template.Message) {
	var ids []string // of the calls that the last assistant made
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case roleAssistant:
			ids = nil
			calls, _ := m.ToolCalls.([]any)
			for _, raw := range calls {
				var c struct{ ID string }
				if json.Unmarshal(raw.(json.RawMessage), &c) == nil {
					ids = append(ids, c.ID)
				}
			}
		case roleTool:
			if f.Err == nil && !slices.Contains(ids, m.ToolCallID) {
				f.Fail(jsonread.CodeValue, "messages", "the result of '%s' follows no tool_use of this id.", jsonread.Brief([]byte(m.ToolCallID)))
			}
		}
	}
}
