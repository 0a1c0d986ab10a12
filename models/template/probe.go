package template

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template/jinja"
)

// What a template does with tools and messages is found by rendering some.

// probeName is a name that no template has.
const probeName = "lutra_probe"

// probeLimits are far beyond what templates take, and far below what one may of a conversation: dozens of probes
// come one after the other. They are of work alone: what a template shows does not depend on the clock.
var probeLimits = jinja.Limits{Steps: 500_000, Bytes: 8 << 20, Depth: 1000}

// probe renders within them.
func (t *Template) probe(in Input) (string, error) {
	in.Limits = probeLimits
	return t.Render(context.Background(), in)
}

// ObjectArguments reports whether the template wants the arguments of tool calls as
// JSON objects rather than as text.
func (t *Template) ObjectArguments() bool { return t.objects() }

// ReadsTools reports whether the template tells the model which tools there are.
func (t *Template) ReadsTools() bool { return t.tools() }

// ReadsCalls reports whether the template shows the model its calls of tools.
func (t *Template) ReadsCalls() bool { return t.calls() }

// ReadsLaterSystem reports whether the template shows a system message in its place
// among the others, not at the beginning alone.
func (t *Template) ReadsLaterSystem() bool { return t.laterSystem() }

func (t *Template) probeLaterSystem() bool {
	asked := []Message{{Role: "system", Content: "x"}, {Role: "user", Content: "asked"}, {Role: "system", Content: probeName}}
	for _, messages := range [][]Message{asked, append(slices.Clone(asked), Message{Role: "assistant", Content: "said"}, Message{Role: "user", Content: "x"})} {
		text, err := t.probe(Input{Messages: messages})
		if at := strings.Index(text, probeName); err != nil || at < strings.Index(text, "asked") {
			return false
		}
	}
	return true
}

func (t *Template) probeObjects() bool { return t.shows("f", `{"`+probeName+`":"y"}`) }

// probeAnyText reports whether arguments may be a text that holds no object.
func (t *Template) probeAnyText() bool { return t.shows("f", `"{\"`+probeName+`\":\"y"`) }

func (t *Template) probeCalls() bool {
	if t.shows(probeName, `{"x":"y"}`) || t.shows(probeName, `"{\"x\":\"y\"}"`) {
		return true
	}
	text, err := t.probeMessages(t.silence(), "functions."+probeName+":0", "f") // by its id alone
	return err == nil && strings.Contains(text, probeName)
}

// probeNull reports whether a message that says nothing may have null for its content.
func (t *Template) probeNull() bool {
	text, err := t.probeMessages(nil, "callid000", probeName)
	return err == nil && strings.Contains(text, probeName) && !strings.Contains(text, "None")
}

// probeText reports whether calls are shown beside a text; or not even without one.
func (t *Template) probeText() bool {
	text, err := t.probeMessages("x", "callid000", probeName)
	if err == nil && strings.Contains(text, probeName) {
		return true
	}
	text, err = t.probeMessages(t.silence(), "callid000", probeName)
	return err != nil || !strings.Contains(text, probeName)
}

// probeSeveral reports whether a message may have two calls; or not even one.
func (t *Template) probeSeveral() bool {
	text, err := t.probeMessages(t.silence(), "callid000", "f", probeName)
	if err == nil && strings.Contains(text, probeName) {
		return true
	}
	text, err = t.probeMessages(t.silence(), "callid000", probeName)
	return err != nil || !strings.Contains(text, probeName)
}

// probeIDs reports whether calls may have ids of any form; or not even short ones.
func (t *Template) probeIDs() bool {
	if _, err := t.probeMessages(t.silence(), "call_"+probeName, "f"); err == nil {
		return true
	}
	_, err := t.probeMessages(t.silence(), "callid000", "f")
	return err != nil
}

// probeMessages renders calls of functions with those names, and the result of the first.
func (t *Template) probeMessages(content any, id string, names ...string) (string, error) {
	arguments := `"{\"x\":\"y\"}"`
	if t.ObjectArguments() {
		arguments = `{"x":"y"}`
	}
	var calls []json.RawMessage
	for _, name := range names {
		calls = append(calls, json.RawMessage(`{"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":`+arguments+`}}`))
	}
	return t.probe(Input{Messages: []Message{
		{Role: "user", Content: "x"},
		{Role: "assistant", Content: content, ToolCalls: calls},
		{Role: "tool", Content: "x", ToolCallID: id},
	}})
}

// shows tells whether a call leaves the probe's name in the text.
func (t *Template) shows(name, arguments string) bool {
	call := json.RawMessage(`[{"id":"callid000","type":"function","function":{"name":"` + name + `","arguments":` + arguments + `}}]`)
	for _, content := range []any{"", nil} {
		text, err := t.probe(Input{Messages: []Message{
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
	text, err := t.probe(Input{
		Messages: []Message{{Role: "user", Content: "x"}}, Tools: []any{tool}, AddGenerationPrompt: true,
	})
	return err == nil && strings.Contains(text, probeName)
}
