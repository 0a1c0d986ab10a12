package template

import (
	"context"
	"encoding/json"
	"strings"
)

// What a template does with tools is found by rendering one.

// probeName is a name that no template has.
const probeName = "lutra_probe"

// ObjectArguments reports whether the template wants the arguments of tool calls as
// JSON objects rather than as text.
func (t *Template) ObjectArguments() bool { return t.objects() }

// ReadsTools reports whether the template tells the model which tools there are.
func (t *Template) ReadsTools() bool { return t.tools() }

// ReadsCalls reports whether the template shows the model its calls of tools.
func (t *Template) ReadsCalls() bool { return t.calls() }

func (t *Template) probeObjects() bool { return t.shows("f", `{"`+probeName+`":"y"}`) }

func (t *Template) probeCalls() bool {
	return t.shows(probeName, `{"x":"y"}`) || t.shows(probeName, `"{\"x\":\"y\"}"`)
}

// shows tells whether a call leaves the probe's name in the text.
func (t *Template) shows(name, arguments string) bool {
	call := json.RawMessage(`[{"id":"callid000","type":"function","function":{"name":"` + name + `","arguments":` + arguments + `}}]`)
	for _, content := range []any{"", nil} {
		text, err := t.Render(context.Background(), Input{Messages: []Message{
			{Role: "user", Content: "x"},
			{Role: "assistant", Content: content, ToolCalls: call},
		}})
		if err == nil && strings.Contains(text, probeName) {
			return true
		}
	}
	return false
}

func (t *Template) probeTools() bool {
	tool := json.RawMessage(`{"type":"function","function":{"name":"` + probeName + `","description":"x","parameters":{"type":"object","properties":{}}}}`)
	text, err := t.Render(context.Background(), Input{
		Messages: []Message{{Role: "user", Content: "x"}}, Tools: []any{tool}, AddGenerationPrompt: true,
	})
	return err == nil && strings.Contains(text, probeName)
}
