package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// answered holds the parts of a response that the tests read.
type answered struct {
	ID, Object, Status string
	Incomplete         *struct{ Reason string } `json:"incomplete_details"`
	Output             []struct {
		ID, Type, Status, Name string
		CallID                 string `json:"call_id"`
		Arguments, Input       string
		Content                []struct{ Type, Text string }
	}
	Usage *struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
}

// said returns a response's output in short.
func (a *answered) said() string {
	var b strings.Builder
	for _, it := range a.Output {
		switch it.Type {
		case "function_call":
			fmt.Fprintf(&b, "%s %s (%s) ", it.Name, it.Arguments, it.Status)
		case "custom_tool_call":
			fmt.Fprintf(&b, "%s %q ", it.Name, it.Input)
		default:
			fmt.Fprintf(&b, "%s %q (%s) ", it.Type, it.Content[0].Text, it.Status)
		}
	}
	return b.String() + a.Status
}

// responseStream puts the deltas of a stream together and compares them with the
// response at its end.
func responseStream(t *testing.T, stream []byte) *answered {
	t.Helper()
	texts := map[string]string{} // by item
	var last *answered
	number := 0
	for e := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		head, data, _ := strings.Cut(e, "\ndata: ")
		var ev struct {
			Type     string
			Number   int `json:"sequence_number"`
			Response *answered
			Index    int    `json:"output_index"`
			ItemID   string `json:"item_id"`
			Delta    string
		}
		if err := json.Unmarshal([]byte(data), &ev); err != nil || head != "event: "+ev.Type || ev.Number != number {
			t.Fatalf("event %d: %q: %v", number, e, err)
		}
		number++
		texts[ev.ItemID] += ev.Delta
		if ev.Response != nil {
			last = ev.Response
		}
		if number == 1 && ev.Type != "response.created" {
			t.Errorf("the stream begins with %s", ev.Type)
		}
	}
	for _, it := range last.Output {
		whole := it.Arguments + it.Input
		if it.Content != nil {
			whole = it.Content[0].Text
		}
		if texts[it.ID] != whole {
			t.Errorf("the deltas of %s make %q, it is %q", it.Type, texts[it.ID], whole)
		}
	}
	return last
}

func TestResponsesComeWholeAndAsEvents(t *testing.T) {
	const tools = `,"tools":[{"type":"function","name":"get_weather","description":"Of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`
	for _, c := range []struct{ name, says, fields, want string }{
		{"text", "Twelve apples.", "", `message "Twelve apples." (completed) completed`},
		{"cut off", "Twelve apples.", `,"max_output_tokens":1`, `message "T" (incomplete) incomplete`},
		{"thinking", thoughtful, "", `reasoning "What is 3*4?" (completed) message "Answer: 12" (completed) completed`},
		{"calls", "I look. " + toolcall.Hermes.Write("get_weather", inBerlin) + toolcall.Hermes.Write("get_weather", "{}"), tools,
			`message "I look." (completed) get_weather {"city": "Berlin"} (completed) get_weather {} (completed) completed`},
		{"a named call", toolcall.Hermes.Begin("get_weather") + inBerlin + "}\n</tool_call>", tools + `,"tool_choice":{"type":"function","name":"get_weather"}`, `get_weather {"city": "Berlin"} (completed) completed`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t, says(t, c.says), nil)
			f.withTemplate(template.ChatML)
			_, _, answer := f.post("/v1/responses", `{"model":"toy","input":"Hi"`+c.fields+`}`)
			var whole answered
			if err := json.Unmarshal(answer, &whole); err != nil || whole.Object != "response" || whole.Usage == nil || whole.Usage.Input == 0 || whole.Usage.Output == 0 {
				t.Fatalf("%s", answer)
			}
			want := c.want
			if c.name == "cut off" {
				want = fmt.Sprintf("message %q (incomplete) incomplete", whole.Output[0].Content[0].Text)
			}
			if got := whole.said(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			_, _, answer = f.post("/v1/responses", `{"model":"toy","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]}],"stream":true`+c.fields+`}`)
			if got := responseStream(t, answer).said(); got != want {
				t.Errorf("streamed: %s, want %s", got, want)
			}
		})
	}
}

func TestAResponseFollowsAnother(t *testing.T) {
	call := toolcall.Hermes.Write("get_weather", inBerlin)
	f := start(t, says(t, call), nil)
	f.withTemplate(template.ChatML + `{# {{ tools }} #}`)
	create := func(fields string) (a answered) {
		t.Helper()
		_, _, answer := f.post("/v1/responses", `{"model":"toy",`+fields+`}`)
		if err := json.Unmarshal(answer, &a); err != nil || a.ID == "" {
			t.Fatalf("%s: %s", fields, answer)
		}
		return a
	}
	const tools = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{}}}]`
	first := create(`"instructions":"Be brief.","input":"Weather?",` + tools)
	result := fmt.Sprintf(`"input":[{"type":"function_call_output","call_id":%q,"output":"Rain"}]`, first.Output[0].CallID)
	second := create(fmt.Sprintf(`"previous_response_id":%q,%s,%s`, first.ID, result, tools))
	said := fmt.Sprintf(`"input":[{"role":"user","content":"Weather?"},{"type":"function_call","call_id":%q,"name":"get_weather","arguments":"{\"city\": \"Berlin\"}"},{"type":"function_call_output","call_id":%q,"output":"Rain"}],`, first.Output[0].CallID, first.Output[0].CallID)
	if spelt := create(said + tools); spelt.Usage.Input != second.Usage.Input {
		t.Errorf("the response that follows reads %d tokens, the conversation spelt out has %d", second.Usage.Input, spelt.Usage.Input)
	}
	_, _, answer := f.do("GET", "/v1/responses/"+first.ID, nil)
	var got answered
	if err := json.Unmarshal(answer, &got); err != nil || got.said() != first.said() {
		t.Errorf("stored: %s", answer)
	}
	if status, _, _ := f.do("DELETE", "/v1/responses/"+first.ID, nil); status != 200 {
		t.Errorf("deleting: %d", status)
	}
	if status, _, _ := f.do("GET", "/v1/responses/"+first.ID, nil); status != 404 {
		t.Errorf("deleted and still there: %d", status)
	}
	secret := create(`"input":"Hi","store":false`)
	status, _, answer := f.post("/v1/responses", fmt.Sprintf(`{"input":"Hi","previous_response_id":%q}`, secret.ID))
	wantError(t, "not stored", status, answer, 400, jsonread.CodeValue, "previous_response_id")
}

func TestEveryBadResponseRequestIsRefusedWithItsReason(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	for _, c := range []struct{ body, code, param string }{
		{`{}`, jsonread.CodeMissing, "input"},
		{`{"input":[]}`, jsonread.CodeMissing, "input"},
		{`{"input":7}`, jsonread.CodeType, "input"},
		{`{"input":[{"role":"king","content":"a"}]}`, jsonread.CodeValue, "input[0].role"},
		{`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`, jsonread.CodeUnsupported, "input[0].content[0].type"},
		{`{"input":[{"type":"item_reference","id":"x"}]}`, jsonread.CodeValue, "input[0].id"},
		{`{"input":[{"id":"x"}]}`, jsonread.CodeValue, "input[0].id"},
		{`{"input":[{"type":"function_call_output","call_id":"x","output":"y"}]}`, jsonread.CodeValue, "input[0].call_id"},
		{`{"input":[{"type":"function_call","call_id":"x","name":"f","arguments":["a"]}]}`, jsonread.CodeType, "input[0].arguments"},
		{`{"input":[{"type":"custom_tool_call","call_id":"x","input":"a"}]}`, jsonread.CodeMissing, "input[0].name"},
		{`{"input":[{"type":"custom_tool_call","call_id":"x","name":"f","input":"","namespace":"n"}]}`, jsonread.CodeUnsupported, "input[0].namespace"},
		{`{"input":[{"type":"reasoning","summary":[],"encrypted_content":"gAAAA"}]}`, jsonread.CodeValue, "input[0].encrypted_content"},
		{`{"input":[{"type":"compaction","encrypted_content":"lutra1.!"}]}`, jsonread.CodeValue, "input[0].encrypted_content"},
		{`{"input":[{"type":"computer_call","id":"x"}]}`, jsonread.CodeUnsupported, "input[0].type"},
		{`{"input":"Hi","tools":[{"type":"file_search"}]}`, jsonread.CodeUnsupported, "tools[0].type"},
		{`{"input":"Hi","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}}`, jsonread.CodeUnsupported, "tool_choice.type"},
		{`{"input":"Hi","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"f"}]}]}`, jsonread.CodeUnsupported, "tools[0].tools[0].type"},
		{`{"input":"Hi","tools":[{"type":"namespace","name":"a b","tools":[]}]}`, jsonread.CodeValue, "tools[0].name"},
		{`{"input":"Hi","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"` + strings.Repeat("f", 64) + `"}]}]}`, jsonread.CodeValue, "tools[0].tools[0].name"},
		{`{"input":"Hi","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]},{"type":"function","name":"n__f"}]}`, jsonread.CodeValue, "tools[1].name"},
		{`{"input":"Hi","tools":[{"type":"function","name":"a b"}]}`, jsonread.CodeValue, "tools[0].name"},
		{`{"input":"Hi","tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}]}`, jsonread.CodeValue, "tools[1].name"},
		{`{"input":"Hi","tools":[{"type":"function","name":"f","parameters":7}]}`, jsonread.CodeType, "tools[0].parameters"},
		{`{"input":"Hi","tools":[{"type":"function","name":"f","defer_loading":true}]}`, jsonread.CodeUnsupported, "tools[0].defer_loading"},
		{`{"input":"Hi","tools":[{"type":"custom","name":"f","format":{"type":"xml"}}]}`, jsonread.CodeUnsupported, "tools[0].format.type"},
		{`{"input":"Hi","tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"lark","definition":"start: \"a\""}}]}`, jsonread.CodeUnsupported, "tools[0].format.syntax"},
		{`{"input":"Hi","tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex"}}]}`, jsonread.CodeMissing, "tools[0].format.definition"},
		{`{"input":"Hi","tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"("}}]}`, jsonread.CodeValue, "tools[0].format.definition"},
		{`{"input":"Hi","include":["everything"]}`, jsonread.CodeValue, "include[0]"},
		{`{"input":"Hi","top_logprobs":21}`, jsonread.CodeValue, "top_logprobs"},
		{`{"input":"Hi","max_tool_calls":0}`, jsonread.CodeValue, "max_tool_calls"},
		{`{"input":"Hi","moderation":{"model":"x"}}`, jsonread.CodeUnsupported, "moderation"},
		{`{"input":"Hi","context_management":[{"type":"compaction"}]}`, jsonread.CodeUnsupported, "context_management"},
		{`{"input":"Hi","background":true}`, jsonread.CodeUnsupported, "background"},
		{`{"input":"Hi","text":{"format":{"type":"xml"}}}`, jsonread.CodeUnsupported, "text.format.type"},
		{`{"input":"Hi","text":{"format":{"type":"json_schema","name":"x"}}}`, jsonread.CodeMissing, "text.format.schema"},
		{`{"input":"Hi","reasoning":{"effort":"much"}}`, jsonread.CodeValue, "reasoning.effort"},
		{`{"input":"Hi","truncation":"never"}`, jsonread.CodeValue, "truncation"},
		{`{"input":"Hi","max_output_tokens":0}`, jsonread.CodeValue, "max_output_tokens"},
		{`{"input":"Hi","previous_response_id":"resp_x"}`, jsonread.CodeValue, "previous_response_id"},
	} {
		status, _, answer := f.post("/v1/responses", c.body)
		wantError(t, c.body, status, answer, 400, c.code, c.param)
	}
}
