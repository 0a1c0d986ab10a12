package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

func TestEveryMalformedHistoryIsRefusedWithItsMessageAndField(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(template.ChatML)
	call := func(rest string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},` + rest + `]}`
	}
	result := func(id string) string { return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"7"}`, id) }
	good := call(`{"id":"b","type":"function","function":{"name":"f","arguments":{}}}`)
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	for _, c := range []struct{ messages, code, param string }{
		{result("a"), jsonread.CodeValue, "messages[1].role"},
		{good + "," + result("c"), jsonread.CodeValue, "messages[2].tool_call_id"},
		{good + "," + asks + "," + result("a"), jsonread.CodeValue, "messages[3].role"},
		{good + "," + result("a") + `,{"role":"assistant","content":"7."},` + result("b"), jsonread.CodeValue, "messages[4].role"},
		{call(`{"id":7,"type":"function","function":{"name":"f","arguments":"{}"}}`), jsonread.CodeType, "messages[1].tool_calls[1].id"},
		{call(`{"id":"b","type":"custom","function":{"name":"f","arguments":"{}"}}`), jsonread.CodeUnsupported, "messages[1].tool_calls[1].type"},
		{call(`{"id":"b","type":"function"}`), jsonread.CodeMissing, "messages[1].tool_calls[1].function"},
		{call(`{"id":"b","type":"function","function":{"arguments":"{}"}}`), jsonread.CodeMissing, "messages[1].tool_calls[1].function.name"},
		{call(`{"id":"b","type":"function","function":{"name":"f","arguments":7}}`), jsonread.CodeType, "messages[1].tool_calls[1].function.arguments"},
		{call(`{"id":"b","type":"function","function":{"name":"f"}}`), jsonread.CodeType, "messages[1].tool_calls[1].function.arguments"},
		{call(`7`), jsonread.CodeType, "messages[1].tool_calls[1]"},
		{`{"role":"assistant","content":null,"tool_calls":{}}`, jsonread.CodeType, "messages[1].tool_calls"},
		{good + `,{"role":"tool","tool_call_id":7,"content":"7"}`, jsonread.CodeType, "messages[2].tool_call_id"},
		{good + `,{"role":"tool","tool_call_id":"a"}`, jsonread.CodeMissing, "messages[2].content"},
		{good + `,{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, jsonread.CodeUnsupported, "messages[2].content[0].type"},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_audio"}]}`, jsonread.CodeUnsupported, "messages[1].content[1].type"},
		{`{"role":"function","name":"f","content":"7"}`, jsonread.CodeUnsupported, "messages[1].role"},
		{`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, jsonread.CodeUnsupported, "messages[1].function_call"},
		{`{"role":"assistant","content":"a","reasoning_content":7}`, jsonread.CodeType, "messages[1].reasoning_content"},
		{`7`, jsonread.CodeType, "messages[1]"},
		{`{"role":"user","content":"a","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, jsonread.CodeValue, "messages[1].tool_calls"},
		{strings.TrimSuffix(strings.Repeat(asks+",", 100_000), ","), jsonread.CodeValue, "messages"},
		{call(`{"id":"b","type":"function","function":{"name":"f","arguments":{"x":` + deep + `}}}`), jsonread.CodeValue, ""},
	} {
		body := `{"messages":[` + asks + `,` + c.messages + `]}`
		status, _, answer := f.post("/v1/chat/completions", body)
		if c.param == "" && status == 400 {
			continue // as a whole: it is nested too deep
		}
		wantError(t, body[:min(len(body), 300)], status, answer, 400, c.code, c.param)
	}
}

func TestResultsAreOneMessageWhereATemplateWantsTurns(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(`{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}`)
	const calls = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`
	got, _ := f.applied(`{"messages":[` + asks + `,` + calls + `,{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"},` + asks + `]}`)
	if want := "[user]<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>\nHi"; !strings.HasSuffix(got, want) {
		t.Errorf("the model reads %q, want %q at its end", got, want)
	}
}

func TestAHistoryMayLackResultsAndHaveThemInAnyOrder(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	f.withTemplate(`{% for m in messages %}{{ m.role[0] }}:{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %};{% endfor %}`)
	const calls = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":""}}]}`
	for messages, want := range map[string]string{
		calls + "," + asks: "u:Hi;a:fg;u:Hi;",
		calls + `,{"role":"tool","tool_call_id":"b","content":"2"},` + asks:                                          "u:Hi;a:fg;t:2;u:Hi;",
		calls + `,{"role":"tool","tool_call_id":"b","content":"2"},{"role":"tool","tool_call_id":"a","content":"1"}`: "u:Hi;a:fg;t:1;t:2;",
	} {
		if got, _ := f.applied(`{"messages":[` + asks + `,` + messages + `]}`); got != want {
			t.Errorf("%s: the model reads %q, want %q", messages, got, want)
		}
	}
}
