package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// showsThoughts is ChatML with the thoughts of former answers.
const showsThoughts = `{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + (m.reasoning_content or '') + (m.content or '') + '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}`

// created asserts that a response is made, and reads it.
func created[T any](f *fixture, fields string) (v T) {
	f.t.Helper()
	if err := json.Unmarshal(f.sent("/v1/responses", `{"model":"toy",`+fields+`}`), &v); err != nil {
		f.t.Fatal(err)
	}
	return v
}

// got asserts that there is something at a path, and reads it.
func got[T any](f *fixture, method, path string) (v T) {
	f.t.Helper()
	status, _, answer := f.do(method, path, nil)
	if err := json.Unmarshal(answer, &v); err != nil || status != 200 {
		f.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return v
}

func TestItemsOfStoredResponsesCanBeReferredTo(t *testing.T) {
	f := start(t, says(t, "Twelve apples."), nil)
	f.withTemplate(template.ChatML)
	first := created[answered](f, `"input":"How many?"`)
	items := got[itemPage](f, "GET", "/v1/responses/"+first.ID+"/input_items")
	const next = `{"role":"user","content":"And now?"}`
	spelt := created[answered](f, `"input":[{"role":"user","content":"How many?"},{"role":"assistant","content":"Twelve apples."},`+next+`]`)
	for _, kind := range []string{`"type":"item_reference",`, ""} {
		refers := created[answered](f, fmt.Sprintf(`"input":[{%s"id":%q},{%s"id":%q},%s]`, kind, items.Data[0].ID, kind, first.Output[0].ID, next))
		if refers.Usage.Input != spelt.Usage.Input {
			t.Errorf("%q: what refers reads %d tokens, what is spelt out %d", kind, refers.Usage.Input, spelt.Usage.Input)
		}
	}
	f.do("DELETE", "/v1/responses/"+first.ID, nil)
	for _, name := range []string{first.Output[0].ID} {
		if status, _, answer := f.post("/v1/responses", fmt.Sprintf(`{"input":[{"type":"item_reference","id":%q}]}`, name)); status != 200 {
			t.Errorf("an item that another response has kept: %d %s", status, answer)
		}
	}
}

// itemPage is a page of items.
type itemPage struct {
	Object string
	Data   []struct {
		ID, Type, Role string
		Output         string
		Content        []struct{ Type, Text string }
	}
	First string `json:"first_id"`
	Last  string `json:"last_id"`
	More  bool   `json:"has_more"`
}

func TestTheItemsThatAResponseAnswersAreListedInPages(t *testing.T) {
	call := toolcall.Hermes.Write("get_weather", inBerlin)
	f := start(t, says(t, call), nil)
	f.withTemplate(template.ChatML)
	first := created[answered](f, `"input":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"input_text","text":"Weather?"}]}],"tools":`+flatWeather)
	second := created[answered](f, fmt.Sprintf(`"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"Rain"},{"role":"user","id":"mine","content":"And?"},{"role":"user","id":"mine","content":"Well?"}]`, first.ID, first.Output[0].CallID))
	path := "/v1/responses/" + second.ID + "/input_items"
	kinds := func(l itemPage) (s []string) {
		for _, it := range l.Data {
			s = append(s, strings.TrimSpace(it.Type+" "+it.Role))
		}
		return s
	}
	want := []string{"message developer", "message user", "function_call", "function_call_output", "message user", "message user"}
	all := got[itemPage](f, "GET", path+"?order=asc")
	if !slices.Equal(kinds(all), want) || all.Object != "list" || all.More || all.First != all.Data[0].ID || all.Last != all.Data[5].ID || all.Data[4].ID != "mine" || all.Data[5].ID == "mine" {
		t.Errorf("the items are %+v, want %v", all, want)
	}
	var paged []string
	for after, more := "", true; more; {
		page := got[itemPage](f, "GET", path+"?limit=4&after="+after)
		paged, after, more = append(paged, kinds(page)...), page.Last, page.More
	}
	slices.Reverse(paged)
	if !slices.Equal(paged, want) {
		t.Errorf("the pages have %v backwards, want %v", paged, want)
	}
	for query, param := range map[string]string{"limit=0": "limit", "limit=101": "limit", "order=up": "order", "after=x": "after"} {
		status, _, answer := f.do("GET", path+"?"+query, nil)
		wantError(t, query, status, answer, 400, jsonread.CodeValue, param)
	}
}

func TestResponsesIncludeLogprobsOfTheirTextAlone(t *testing.T) {
	const tools = `,"tools":` + flatWeather
	type token struct {
		Token string
		Top   []struct{ Token string } `json:"top_logprobs"`
	}
	for said, text := range map[string]string{
		"Twelve apples.": "Twelve apples.",
		thoughtful:       "Answer: 12",
		"I look. " + toolcall.Hermes.Write("get_weather", inBerlin): "I look.",
	} {
		f := start(t, says(t, said), nil)
		f.withTemplate(template.ChatML)
		const fields = `"input":"Hi","include":["message.output_text.logprobs","reasoning.encrypted_content"],"top_logprobs":2` + tools
		check := func(what string, tokens []token) {
			t.Helper()
			joined := ""
			for _, tok := range tokens {
				if joined += tok.Token; len(tok.Top) != 2 {
					t.Errorf("%s: %+v has %d alternatives, want 2", what, tok, len(tok.Top))
				}
			}
			if strings.TrimSpace(joined) != text {
				t.Errorf("%s of %q: the tokens are %q, want %q", what, said, joined, text)
			}
		}
		type output struct {
			Output []struct {
				Type    string
				Content []struct{ Logprobs []token }
			}
		}
		message := func(o output) []token {
			for _, it := range o.Output {
				if it.Type == "message" {
					return it.Content[0].Logprobs
				}
			}
			return nil
		}
		check("the response", message(created[output](f, fields)))
		var deltas []token
		for e := range strings.SplitSeq(string(f.sent("/v1/responses", `{"stream":true,`+fields+`}`)), "\n\n") {
			var ev struct {
				Type     string
				Logprobs []token
				Response output
			}
			_, data, ok := strings.Cut(e, "data: ")
			if ok && json.Unmarshal([]byte(data), &ev) != nil {
				t.Fatal(e)
			}
			switch ev.Type {
			case "response.output_text.delta":
				deltas = append(deltas, ev.Logprobs...)
			case "response.output_text.done":
				check("the end of the text", ev.Logprobs)
			case "response.completed":
				check("the stream's response", message(ev.Response))
			}
		}
		check("the deltas", deltas)
	}
}

func TestAThoughtThatOnlyTheClientKeepsComesBack(t *testing.T) {
	f := start(t, says(t, thoughtful), nil)
	f.withTemplate(showsThoughts)
	type output struct {
		Output []map[string]any
		Usage  struct {
			Input int `json:"input_tokens"`
		}
	}
	first := created[output](f, `"input":"Hi","store":false,"include":["reasoning.encrypted_content"]`)
	again := func(thought map[string]any) int {
		raw, err := json.Marshal([]any{map[string]any{"role": "user", "content": "Hi"}, thought, first.Output[1], map[string]any{"role": "user", "content": "And?"}})
		if err != nil {
			t.Fatal(err)
		}
		return created[output](f, `"input":`+string(raw)).Usage.Input
	}
	thought := first.Output[0]
	if kept, _ := thought["encrypted_content"].(string); thought["type"] != "reasoning" || kept == "" || strings.Contains(kept, "What") {
		t.Fatalf("the thought is %v", thought)
	}
	whole := again(thought)
	delete(thought, "content")
	if n := again(thought); n != whole {
		t.Errorf("with what the client was given to keep the model reads %d tokens, with the thought %d", n, whole)
	}
	delete(thought, "encrypted_content")
	if n := again(thought); n >= whole {
		t.Errorf("without any thought the model reads %d tokens, with it %d", n, whole)
	}
}

func TestTheEventsOfAStoredResponseComeAgain(t *testing.T) {
	for name, text := range map[string]string{
		"text": "Twelve apples, äöü.", "thinking": thoughtful, "calls": "I look. " + toolcall.Hermes.Write("get_weather", inBerlin) + toolcall.Hermes.Write("note", `{"input": "a \"b\" 🦦\n"}`),
	} {
		f := start(t, says(t, text), nil)
		f.withTemplate(template.ChatML)
		fields := `"input":"Hi","include":["message.output_text.logprobs","reasoning.encrypted_content"],"top_logprobs":1,"tools":[{"type":"custom","name":"note"},` + flatWeather[1:]
		stream := string(f.sent("/v1/responses", `{"stream":true,`+fields+`}`))
		id := responseStream(t, []byte(stream)).ID
		_, _, again := f.do("GET", "/v1/responses/"+id+"?stream=true", nil)
		if string(again) != stream {
			t.Errorf("%s: the stream comes again as\n%s\nnot\n%s", name, again, stream)
		}
		events := strings.SplitAfter(stream, "\n\n")
		if _, _, rest := f.do("GET", "/v1/responses/"+id+"?stream=true&starting_after=4", nil); string(rest) != strings.Join(events[5:], "") {
			t.Errorf("%s: behind event 4 come\n%s", name, rest)
		}
		if _, _, rest := f.do("GET", "/v1/responses/"+id+"?stream=true&starting_after=100000", nil); len(rest) != 0 {
			t.Errorf("%s: behind the last event comes %s", name, rest)
		}
		whole := created[answered](f, fields)
		_, _, again = f.do("GET", "/v1/responses/"+whole.ID+"?stream=true", nil)
		if got := responseStream(t, again).said(); got != whole.said() {
			t.Errorf("%s: what was not streamed comes as %s, was %s", name, got, whole.said())
		}
		for query, param := range map[string]string{"stream=yes": "stream", "stream=true&starting_after=-1": "starting_after", "starting_after=1": "starting_after"} {
			status, _, answer := f.do("GET", "/v1/responses/"+id+"?"+query, nil)
			wantError(t, query, status, answer, 400, jsonread.CodeValue, param)
		}
	}
}

func TestAStreamedResponseCanBeCancelled(t *testing.T) {
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	var written atomic.Int32
	f := start(t, &toy.Model{Logits: func(_ []int32, row []float32) {
		clear(row)
		if row[20] = 50; written.Add(1) == 30 {
			<-gate
		}
	}}, func(o *Options) { o.APIKeys = []string{"one", "two"} })
	t.Cleanup(open)
	as := func(key, method, path, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	stream := as("one", "POST", "/v1/responses", `{"input":"Hi","stream":true}`)
	in := bufio.NewReader(stream.Body)
	type event struct {
		Type     string
		Response answered
	}
	next := func() (e event, err error) {
		line, err := in.ReadString('\n')
		for err == nil && !strings.HasPrefix(line, "data: ") {
			line, err = in.ReadString('\n')
		}
		if err == nil {
			err = json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e)
		}
		return e, err
	}
	first, err := next()
	if err != nil || first.Response.ID == "" {
		t.Fatal(err)
	}
	path := "/v1/responses/" + first.Response.ID
	if resp := as("two", "POST", path+"/cancel", ""); resp.StatusCode != 404 {
		t.Errorf("another key cancels it: %d", resp.StatusCode)
	}
	for e := first; e.Type != "response.output_text.delta" && err == nil; {
		e, err = next()
	}
	resp := as("one", "POST", path+"/cancel", "")
	open()
	var cancelled answered
	if err := json.NewDecoder(resp.Body).Decode(&cancelled); err != nil || resp.StatusCode != 200 || cancelled.Status != "cancelled" || len(cancelled.Output) != 1 || cancelled.Output[0].Status != "incomplete" {
		t.Errorf("%d %+v %v, want it cancelled in its output", resp.StatusCode, cancelled, err)
	}
	var last event
	for e := first; err == nil; e, err = next() {
		last = e
	}
	if last.Type != "response.incomplete" || last.Response.Status != "cancelled" {
		t.Errorf("the stream ends with %+v", last)
	}
	if resp := as("one", "GET", path, ""); resp.StatusCode != 200 {
		t.Errorf("it is not kept: %d", resp.StatusCode)
	}
	if resp := as("one", "POST", path+"/cancel", ""); resp.StatusCode != 400 {
		t.Errorf("it is cancelled again: %d", resp.StatusCode)
	}
	if resp := as("one", "POST", "/v1/responses/resp_x/cancel", ""); resp.StatusCode != 404 {
		t.Errorf("what is not there is cancelled: %d", resp.StatusCode)
	}
}

func TestTheTokensOfAnInputAreCounted(t *testing.T) {
	f := start(t, says(t, "Twelve."), nil)
	f.withTemplate(template.ChatML)
	first := created[answered](f, `"input":"Hi"`)
	for _, fields := range []string{
		`"input":"Hi","instructions":"Be brief."`,
		`"input":[{"role":"user","content":"Hi"}],"tools":[{"type":"custom","name":"note"},` + flatWeather[1:] + `,"tool_choice":"auto","parallel_tool_calls":true`,
		fmt.Sprintf(`"input":"And?","previous_response_id":%q,"truncation":"auto"`, first.ID),
		`"input":"Hi","text":{"format":{"type":"json_schema","name":"x","schema":{"type":"string"}}}`,
	} {
		var counted struct {
			Object string
			Tokens int `json:"input_tokens"`
		}
		if err := json.Unmarshal(f.sent("/v1/responses/input_tokens", `{"model":"toy",`+fields+`}`), &counted); err != nil {
			t.Fatal(err)
		}
		if want := created[answered](f, fields).Usage.Input; counted.Tokens != want || counted.Object != "response.input_tokens" {
			t.Errorf("%s: %+v, the response reads %d", fields, counted, want)
		}
	}
	status, _, answer := f.post("/v1/responses/input_tokens", `{"model":"toy"}`)
	wantError(t, "nothing", status, answer, 400, jsonread.CodeMissing, "input")
}

func TestAConversationIsCompacted(t *testing.T) {
	f := start(t, says(t, "Twelve apples were counted."), nil)
	f.withTemplate(template.ChatML)
	first := created[answered](f, `"input":[{"role":"system","content":"Be brief."},{"role":"user","content":"How many apples are there in the large basket?"}]`)
	var compacted struct {
		Object string
		Output []json.RawMessage
		Usage  struct {
			Output int `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal(f.sent("/v1/responses/compact", fmt.Sprintf(`{"model":"toy","previous_response_id":%q}`, first.ID)), &compacted); err != nil {
		t.Fatal(err)
	}
	if compacted.Object != "response.compaction" || len(compacted.Output) != 2 || compacted.Usage.Output == 0 {
		t.Fatalf("%+v", compacted)
	}
	input := func(items ...json.RawMessage) string {
		raw, err := json.Marshal(append(items, json.RawMessage(`{"role":"user","content":"And now?"}`)))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	goesOn := created[answered](f, `"input":`+input(compacted.Output...))
	without := created[answered](f, `"input":`+input(compacted.Output[0]))
	if n := goesOn.Usage.Input - without.Usage.Input; n <= compacted.Usage.Output {
		t.Errorf("the summary has %d tokens, the model reads %d of it", compacted.Usage.Output, n)
	}
}

func TestFunctionsOfANamespaceAreCalledByTheirOwnName(t *testing.T) {
	type output struct {
		Output []struct {
			Type, Name, Namespace, Arguments string
			CallID                           string `json:"call_id"`
		}
		Tools json.RawMessage
	}
	f := start(t, says(t, toolcall.Hermes.Write("agents__close", `{"target": "a"}`)), nil)
	f.withTemplate(template.ChatML)
	const space = `{"type":"namespace","name":"agents","description":"Others.","tools":[{"type":"function","name":"close","parameters":{"type":"object","properties":{"target":{"type":"string"}}},"strict":true}]}`
	const tools = `,"client_metadata":{"session_id":"s"},"tools":[{"type":"function","name":"close","parameters":null,"strict":false},` + space + `,{"type":"web_search","external_web_access":false}]`
	for _, choice := range []string{"", `,"tool_choice":{"type":"function","namespace":"agents","name":"close"}`} {
		status, h, answer := f.post("/v1/responses", `{"model":"toy","input":"Hi"`+tools+choice+`}`)
		var whole output
		if err := json.Unmarshal(answer, &whole); err != nil || status != 200 || len(whole.Output) != 1 {
			t.Fatalf("%s", answer)
		}
		if call := whole.Output[0]; call.Type != "function_call" || call.Namespace != "agents" || call.Name != "close" || call.Arguments != `{"target": "a"}` {
			t.Errorf("the call is %+v", call)
		}
		if !strings.Contains(h.Get(api.Warning), "web_search") {
			t.Errorf("the warning is %q", h.Get(api.Warning))
		}
		if !strings.Contains(string(whole.Tools), space) || strings.Contains(string(whole.Tools), "web_search") {
			t.Errorf("the tools are %s", whole.Tools)
		}
	}
	streamed := string(f.sent("/v1/responses", `{"input":"Hi","stream":true`+tools+`}`))
	if got := strings.Count(streamed, `"name":"close","namespace":"agents"`); got != 3 {
		t.Errorf("a stream names the namespace %d times, want it of the item's beginning and end and of the whole:\n%s", got, streamed)
	}
	prompt := string(f.sent("/v1/responses/input_tokens", `{"input":[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"x","name":"close","namespace":"agents","arguments":"{}"},{"type":"function_call_output","call_id":"x","output":"Done."}]`+tools+`}`))
	if !strings.Contains(prompt, "input_tokens") {
		t.Error(prompt)
	}
}

func TestCustomToolsAreCalledWithText(t *testing.T) {
	type output struct {
		Output []struct {
			Type, Name, Input string
			CallID            string `json:"call_id"`
		}
	}
	written := `say "hi" \ to 🦦` + "\n"
	arguments, _ := json.Marshal(map[string]string{"input": written})
	f := start(t, says(t, toolcall.Hermes.Write("note", string(arguments))), nil)
	f.withTemplate(template.ChatML)
	const tools = `,"tools":[{"type":"custom","name":"note","description":"Notes a text."}]`
	whole := created[output](f, `"input":"Hi"`+tools)
	if len(whole.Output) != 1 || whole.Output[0].Type != "custom_tool_call" || whole.Output[0].Name != "note" || whole.Output[0].Input != written {
		t.Fatalf("the call is %+v", whole.Output)
	}
	streamed := ""
	for e := range strings.SplitSeq(string(f.sent("/v1/responses", `{"input":"Hi","stream":true`+tools+`}`)), "\n\n") {
		var ev struct{ Type, Delta string }
		if _, data, ok := strings.Cut(e, "data: "); ok && json.Unmarshal([]byte(data), &ev) == nil && ev.Type == "response.custom_tool_call_input.delta" {
			streamed += ev.Delta
		}
	}
	if streamed != written {
		t.Errorf("the input is streamed as %q, want %q", streamed, written)
	}
	call := whole.Output[0]
	sent, _ := json.Marshal(written)
	created[output](f, fmt.Sprintf(`"input":[{"role":"user","content":"Hi"},{"type":"custom_tool_call","call_id":%q,"name":"note","input":%s},{"type":"custom_tool_call_output","call_id":%q,"output":"Done."}]%s`, call.CallID, sent, call.CallID, tools))

	f = start(t, &toy.Model{}, nil) // writes at random
	f.withTemplate(template.ChatML)
	pattern := regexp.MustCompile(`^[a-z]{3}-[0-9]{2}("|\\)$`)
	for range 10 {
		held := created[output](f, `"input":"Hi","tools":[{"type":"custom","name":"note","format":{"type":"grammar","syntax":"regex","definition":"[a-z]{3}-[0-9]{2}(\"|\\\\)"}}],"tool_choice":{"type":"custom","name":"note"}`)
		if len(held.Output) != 1 || !pattern.MatchString(held.Output[0].Input) {
			t.Errorf("the call is %+v", held.Output)
		}
	}
}
