package template

import (
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

// wire is how a message is written in JSON.
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

// value is the message as a template sees it.
func (m *Message) value(parseArguments bool) (any, error) {
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
		if parseArguments {
			parseCalls(calls)
		}
		set("tool_calls", calls)
	}
	if m.ToolCallID != "" {
		set("tool_call_id", m.ToolCallID)
	}
	if m.ReasoningContent != "" {
		set("reasoning_content", m.ReasoningContent)
	}
	return d, nil
}

// parseCalls replaces arguments that are JSON objects in strings.
func parseCalls(calls any) {
	list, ok := calls.(*jinja.List)
	if !ok {
		return
	}
	for _, call := range list.Items {
		c, ok := call.(*jinja.Dict)
		if !ok {
			continue
		}
		function, _ := c.Get("function")
		f, ok := function.(*jinja.Dict)
		if !ok {
			continue
		}
		arguments, _ := f.Get("arguments")
		text, ok := arguments.(string)
		if !ok {
			continue
		}
		parsed, err := jinja.FromJSON([]byte(text))
		if _, object := parsed.(*jinja.Dict); err == nil && object {
			_ = f.Set("arguments", parsed)
		}
	}
}

// value is v as a template's value, by way of its JSON.
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
