package template

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/models/template/jinja"
)

// What a template does with tools and messages is found by rendering some.

// probeName is a name that no template has.
const probeName = "lutra_probe"

// probeLimits are far beyond what templates take, and far below what one may of a conversation: dozens of probes
// come one after the other. They are of work alone: what a template shows does not depend on the clock.
var probeLimits = jinja.Limits{Steps: 500_000, Bytes: 8 << 20, Depth: 1000}

// findings answer questions about a template, each by rendering some when it is first asked.
type findings struct {
	render func(ctx context.Context, in Input) (string, error)

	objects, anyText, tools, calls, null, textBeside, severalCalls, longIDs, laterSystem func() bool
}

// find has the template, which render renders, be asked.
func (f *findings) find(render func(ctx context.Context, in Input) (string, error)) {
	f.render = render
	f.objects, f.anyText = sync.OnceValue(f.probeObjects), sync.OnceValue(f.probeAnyText)
	f.tools, f.calls = sync.OnceValue(f.probeTools), sync.OnceValue(f.probeCalls)
	f.null, f.textBeside = sync.OnceValue(f.probeNull), sync.OnceValue(f.probeText)
	f.severalCalls, f.longIDs = sync.OnceValue(f.probeSeveral), sync.OnceValue(f.probeIDs)
	f.laterSystem = sync.OnceValue(f.probeLaterSystem)
}

// probe renders within probeLimits.
func (f *findings) probe(in Input) (string, error) {
	in.Limits = probeLimits
	return f.render(context.Background(), in)
}

// ObjectArguments reports whether the template wants the arguments of tool calls as
// JSON objects rather than as text.
func (f *findings) ObjectArguments() bool { return f.objects() }

// ReadsTools reports whether the template tells the model which tools there are.
func (f *findings) ReadsTools() bool { return f.tools() }

// ReadsCalls reports whether the template shows the model its calls of tools.
func (f *findings) ReadsCalls() bool { return f.calls() }

// ReadsLaterSystem reports whether the template shows a system message in its place
// among the others, not at the beginning alone.
func (f *findings) ReadsLaterSystem() bool { return f.laterSystem() }

func (f *findings) probeLaterSystem() bool {
	asked := []Message{{Role: "system", Content: "x"}, {Role: "user", Content: "asked"}, {Role: "system", Content: probeName}}
	for _, messages := range [][]Message{asked, append(slices.Clone(asked), Message{Role: "assistant", Content: "said"}, Message{Role: "user", Content: "x"})} {
		text, err := f.probe(Input{Messages: messages})
		if at := strings.Index(text, probeName); err != nil || at < strings.Index(text, "asked") {
			return false
		}
	}
	return true
}

func (f *findings) probeObjects() bool { return f.shows("f", `{"`+probeName+`":"y"}`) }

// probeAnyText reports whether arguments may be a text that holds no object.
func (f *findings) probeAnyText() bool { return f.shows("f", `"{\"`+probeName+`\":\"y"`) }

func (f *findings) probeCalls() bool {
	if f.shows(probeName, `{"x":"y"}`) || f.shows(probeName, `"{\"x\":\"y\"}"`) {
		return true
	}
	text, err := f.probeMessages(f.silence(), "functions."+probeName+":0", "f") // by its id alone
	return err == nil && strings.Contains(text, probeName)
}

// probeNull reports whether a message that says nothing may have null for its content.
func (f *findings) probeNull() bool {
	text, err := f.probeMessages(nil, "callid000", probeName)
	return err == nil && strings.Contains(text, probeName) && !strings.Contains(text, "None")
}

// probeText reports whether calls are shown beside a text; or not even without one.
func (f *findings) probeText() bool {
	text, err := f.probeMessages("x", "callid000", probeName)
	if err == nil && strings.Contains(text, probeName) {
		return true
	}
	text, err = f.probeMessages(f.silence(), "callid000", probeName)
	return err != nil || !strings.Contains(text, probeName)
}

// probeSeveral reports whether a message may have two calls; or not even one.
func (f *findings) probeSeveral() bool {
	text, err := f.probeMessages(f.silence(), "callid000", "f", probeName)
	if err == nil && strings.Contains(text, probeName) {
		return true
	}
	text, err = f.probeMessages(f.silence(), "callid000", probeName)
	return err != nil || !strings.Contains(text, probeName)
}

// probeIDs reports whether calls may have ids of any form; or not even short ones.
func (f *findings) probeIDs() bool {
	if _, err := f.probeMessages(f.silence(), "call_"+probeName, "f"); err == nil {
		return true
	}
	_, err := f.probeMessages(f.silence(), "callid000", "f")
	return err != nil
}

// probeMessages renders calls of functions with those names, and the result of the first.
func (f *findings) probeMessages(content any, id string, names ...string) (string, error) {
	arguments := `"{\"x\":\"y\"}"`
	if f.ObjectArguments() {
		arguments = `{"x":"y"}`
	}
	var calls []json.RawMessage
	for _, name := range names {
		calls = append(calls, json.RawMessage(`{"id":"`+id+`","type":"function","function":{"name":"`+name+`","arguments":`+arguments+`}}`))
	}
	return f.probe(Input{Messages: []Message{
		{Role: "user", Content: "x"},
		{Role: "assistant", Content: content, ToolCalls: calls},
		{Role: "tool", Content: "x", ToolCallID: id},
	}})
}

// shows tells whether a call leaves the probe's name in the text.
func (f *findings) shows(name, arguments string) bool {
	call := json.RawMessage(`[{"id":"callid000","type":"function","function":{"name":"` + name + `","arguments":` + arguments + `}}]`)
	for _, content := range []any{"", nil} {
		text, err := f.probe(Input{Messages: []Message{
			{Role: "user", Content: "x"},
			{Role: "assistant", Content: content, ToolCalls: call},
		}})
		if err == nil && strings.Contains(text, probeName) {
			return true
		}
	}
	return false
}

func (f *findings) probeTools() bool {
	tool := json.RawMessage(`{"type":"function","function":{"name":"` + probeName + `","description":"x","parameters":{"type":"object","properties":{}}}}`)
	text, err := f.probe(Input{
		Messages: []Message{{Role: "user", Content: "x"}}, Tools: []any{tool}, AddGenerationPrompt: true,
	})
	return err == nil && strings.Contains(text, probeName)
}
