package template

import (
	"encoding/json"
	"testing"
)

// Templates that know calls in one way alone, as published ones do.
const (
	firstCallAlone = `{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}{{ raise_exception("one at once") }}{% endif %}[{{ m.content or "" }}{{ m.tool_calls[0].function.name }}]{% else %}({{ m.content }}){% endif %}{% endfor %}`
	shortIDsAlone  = `{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception("ids") }}{% endif %}{{ c.function.name }}={{ c.id }};{% endfor %}{% elif m.role == "tool" %}{% if m.tool_call_id | length != 9 %}{{ raise_exception("ids") }}{% endif %}{{ m.content }}={{ m.tool_call_id }};{% endif %}{% endfor %}`
	nullAlone      = `{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}{{ c.function.name + " " + c.function.arguments }};{% endfor %}{% else %}{{ m.content }};{% endif %}{% endfor %}`
	printsNone     = `{% for m in messages %}{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %};{% endfor %}`
)

func TestHistoriesTakeTheFormThatATemplateShows(t *testing.T) {
	calls := json.RawMessage(`[{"id":"call_one","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},{"id":"call_two","type":"function","function":{"name":"g","arguments":{"y":2}}}]`)
	history := func(content any) []Message {
		return []Message{
			{Role: "user", Content: "Hi"}, {Role: "assistant", Content: content, ToolCalls: calls},
			{Role: "tool", Content: "second", ToolCallID: "call_two"}, {Role: "tool", Content: "first", ToolCallID: "call_one"},
			{Role: "user", Content: "So?"},
		}
	}
	one, two := shortID("call_one"), shortID("call_two")
	for _, c := range []struct {
		source  string
		content any
		want    string
	}{
		{firstCallAlone, nil, "(Hi)[f](first)[g](second)(So?)"},
		{firstCallAlone, "I look.", "(Hi)[I look.f](first)[g](second)(So?)"},
		{shortIDsAlone, nil, "f=" + one + ";g=" + two + ";first=" + one + ";second=" + two + ";"},
		{nullAlone, "", "Hi;f {\"x\": 1};g {\"y\": 2};first;second;So?;"},
		{nullAlone, "I look.", "Hi;f {\"x\": 1};g {\"y\": 2};first;second;So?;"}, // else the calls were lost
		{printsNone, nil, `user:Hi;assistant:f{"x": 1}g{"y": 2};tool:first;tool:second;user:So?;`},
	} {
		if got := mustRender(t, c.source, Input{Messages: history(c.content), Adapt: true}); got != c.want {
			t.Errorf("content %v: %q, want %q", c.content, got, c.want)
		}
	}
	if len(one) != 9 || one == two || shortID("abcDEF123") != "abcDEF123" {
		t.Errorf("ids %q, %q", one, two)
	}
}

func TestReasoningHasTheNameThatATemplateReads(t *testing.T) {
	const source = `{% for message in messages %}{{ message.thinking or "-" }}{{ message.reasoning_content or "-" }};{% endfor %}`
	call := json.RawMessage(`[{"id":"a","function":{"name":"f","arguments":"{}"}}]`)
	in := Input{Adapt: true, Messages: []Message{
		{Role: "assistant", Content: "Two.", ReasoningContent: "1+1"},
		{Role: "assistant", ReasoningContent: "I look.", ToolCalls: call},
	}}
	if got, want := mustRender(t, source, in), "1+11+1;I look.I look.;"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAHistoryThatATemplateCannotShowIsNotChanged(t *testing.T) {
	call := json.RawMessage(`[{"id":"call_one","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]`)
	in := Input{Adapt: true, Messages: []Message{{Role: "user", Content: "Hi"}, {Role: "assistant", Content: "I look.", ToolCalls: call}}}
	if got, want := mustRender(t, ChatML, in), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nI look.<|im_end|>\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, calls := range []json.RawMessage{json.RawMessage(`{}`), json.RawMessage(`[7]`), json.RawMessage(`[{"id":7}]`)} {
		in.Messages[1].ToolCalls = calls
		tmpl, err := Parse(ChatML)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tmpl.Render(t.Context(), in); err == nil {
			t.Errorf("calls %s are rendered", calls)
		}
	}
}

func TestArgumentsThatHoldNoObjectAreShownAsTextOrInOne(t *testing.T) {
	const begin, end = `{% for m in messages %}{% for c in m.tool_calls or [] %}`, `{% endfor %}{% endfor %}`
	for source, want := range map[string]string{
		begin + `{% for k, v in c.function.arguments | items %}{{ k }}={{ v }}{% endfor %}` + end:                                                 `arguments={"x": "cut`,
		begin + `{{ c.function.arguments | tojson }}` + end:                                                                                       `"{\"x\": \"cut"`,
		begin + `{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}{{ c.function.arguments | tojson }}{% endif %}` + end: `{"x": "cut`,
		begin + `{{ 'f ' + c.function.arguments }}` + end:                                                                                         `f {"x": "cut`,
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Render(t.Context(), Input{Adapt: true, Messages: []Message{
			{Role: "user", Content: "x"},
			{Role: "assistant", ToolCalls: json.RawMessage(`[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": \"cut"}}]`)},
		}})
		if err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", source, got, err, want)
		}
	}
}
