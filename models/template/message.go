package template

import (
	"context"
	"encoding/json"

	"github.com/lutra-lm/lutra/models/template/jinja"
)

// Message is one turn of a conversation, with the fields of the OpenAI API.
// Templates see the fields that are set, in this order.
type Message struct {
	Role             string
	Content          any // a string, nil for null, or parts: anything that encodes to a JSON array
	Name             string
	ToolCalls        any // nil, or anything that encodes to a JSON array; json.RawMessage keeps the order of keys
	ToolCallID       string
	ReasoningContent string
}

// wire is the form of a message in JSON.
type wire struct {
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Name             string          `json:"name"`
	ToolCalls        json.RawMessage `json:"tool_calls"`
	ToolCallID       string          `json:"tool_call_id"`
	ReasoningContent string          `json:"reasoning_content"`
}

// UnmarshalJSON reads a message of the OpenAI API, keeping parts and tool
// calls as they are written.
func (m *Message) UnmarshalJSON(data []byte) error {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*m = Message{Role: w.Role, Name: w.Name, ToolCallID: w.ToolCallID, ReasoningContent: w.ReasoningContent}
	var text string
	switch {
	case isNull(w.Content):
	case json.Unmarshal(w.Content, &text) == nil:
		m.Content = text
	default:
		m.Content = w.Content
	}
	if !isNull(w.ToolCalls) {
		m.ToolCalls = w.ToolCalls
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// value returns the message as t sees it; adapt as in Input.
func (m *Message) value(adapt bool, t *Template) (any, error) {
	d := jinja.NewDict()
	content, err := value(m.Content)
	if err != nil {
		return nil, err
	}
	set := func(key string, v any) {
		// A string key cannot be refused.
		_ = d.Set(key, v)
	}
	set("role", m.Role)
	set("content", content)
	if m.Name != "" {
		set("name", m.Name)
	}
	if m.ToolCalls != nil {
		calls, err := value(m.ToolCalls)
		if err != nil {
			return nil, err
		}
		if adapt {
			adaptCalls(calls, t)
		}
		set("tool_calls", calls)
	}
	if id := m.ToolCallID; id != "" {
		if adapt && !t.longIDs() {
			id = shortID(id)
		}
		set("tool_call_id", id)
	}
	if m.ReasoningContent != "" {
		set("reasoning_content", m.ReasoningContent)
		if adapt && t.thinking && (m.ToolCalls == nil || m.Content == nil || m.Content == "") {
			set("thinking", m.ReasoningContent)
		}
	}
	return d, nil
}

// dump writes a value as Python does.
var dump = func() *jinja.Template {
	t, err := jinja.Parse("{{ v | tojson }}")
	if err != nil {
		panic(err) // it is ours
	}
	return t
}()

// adaptCalls replaces arguments that are JSON objects in strings, or strings if t wants
// text, and ids that it does not take. Strings that hold no object, as calls that were
// cut off have them, stay as they are if t takes them, and else become an object's.
func adaptCalls(calls any, t *Template) {
	list, ok := calls.(*jinja.List)
	if !ok {
		return
	}
	for _, call := range list.Items {
		c, ok := call.(*jinja.Dict)
		if !ok {
			continue
		}
		if id, _ := c.Get("id"); !t.longIDs() {
			if id, ok := id.(string); ok {
				_ = c.Set("id", shortID(id))
			}
		}
		function, _ := c.Get("function")
		f, ok := function.(*jinja.Dict)
		if !ok {
			continue
		}
		arguments, _ := f.Get("arguments")
		text, isText := arguments.(string)
		switch {
		case isText && t.ObjectArguments():
			if text == "" {
				text = "{}"
			}
			parsed, err := jinja.FromJSON([]byte(text))
			if _, object := parsed.(*jinja.Dict); err == nil && object {
				_ = f.Set("arguments", parsed)
			} else if !t.anyText() {
				wrapped := jinja.NewDict()
				_ = wrapped.Set("arguments", text)
				_ = f.Set("arguments", wrapped)
			}
		case !isText && !t.ObjectArguments():
			if text, err := dump.Render(context.Background(), map[string]any{"v": arguments}, jinja.DefaultLimits()); err == nil {
				_ = f.Set("arguments", text)
			}
		}
	}
}

// value returns v as a template's value, by way of its JSON.
func value(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return v, nil
	case bool:
		return v, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jinja.FromJSON(data)
}
