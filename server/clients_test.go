package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

func TestErrorsBeforeAnyHandlerHaveTheShapeOfTheirAPI(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	const openAI, anthropic, ollama = `{"error":{"message":"`, `{"type":"error","error":{"type":"`, `{"error":"`
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
		begins       string
	}{
		{"GET", "/v1/nowhere", nil, 404, openAI},
		{"GET", "/v1/chat/completions", nil, 405, openAI},
		{"POST", "/v1/messages/batches", nil, 404, anthropic},
		{"GET", "/v1/messages", nil, 405, anthropic},
		{"GET", "/v1/files", []string{"Anthropic-Version", "2023-06-01"}, 404, anthropic},
		{"GET", "/v1/models/nobody", []string{"Anthropic-Version", "2023-06-01"}, 404, anthropic},
		{"POST", "/v1/messages", []string{"Origin", "https://elsewhere.example"}, 403, anthropic},
		{"POST", "/api/nowhere", nil, 404, ollama},
		{"GET", "/api/chat", nil, 405, ollama},
		{"POST", "/api/chat", []string{"Origin", "https://elsewhere.example"}, 403, ollama},
	} {
		status, h, answer := f.do(c.method, c.path, strings.NewReader("{}"), c.headers...)
		if status != c.status || !strings.HasPrefix(string(answer), c.begins) || h.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %d %s, want %d and %s", c.method, c.path, status, answer, c.status, c.begins)
		}
		if got := h.Get("Request-Id") != ""; got != (c.begins == anthropic) {
			t.Errorf("%s %s: a header Request-Id: %v", c.method, c.path, got)
		}
	}
}

func TestAnthropicsClientsListTheModelsThatWrite(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	type card struct {
		ID, Type, Lifecycle string
		Name                string `json:"display_name"`
		Created             string `json:"created_at"`
		MaxInput            int    `json:"max_input_tokens"`
		MaxTokens           int    `json:"max_tokens"`
	}
	get := func(path string) []byte {
		status, _, answer := f.do("GET", path, nil, "Anthropic-Version", "2023-06-01")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
		return answer
	}
	list := strict[struct {
		Data  []card
		More  bool   `json:"has_more"`
		First string `json:"first_id"`
		Last  string `json:"last_id"`
	}](t, get("/v1/models?limit=20"))
	if len(list.Data) == 0 || list.First != "toy" || list.Data[0].Type != "model" || list.Last != list.Data[len(list.Data)-1].ID || list.More {
		t.Errorf("the list is %+v", list)
	}
	if one := strict[card](t, get("/v1/models/gpt-4o")); one.ID != "gpt-4o" || one.MaxInput != f.model.Context || one.Created == "" {
		t.Errorf("one model is %+v", one)
	}
}

func TestAnthropicsStructuredAnswersMeetTheirSchema(t *testing.T) {
	f := start(t, says(t, "Nothing of the kind."), nil)
	const schema = `{"type":"json_schema","schema":{"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]}}`
	for _, field := range []string{`"output_config":{"effort":"low","format":` + schema + `}`, `"output_format":` + schema} {
		status, _, answer := f.post("/v1/messages", claudeBody(`,`+field))
		var got struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(answer, &got); err != nil || status != http.StatusOK || len(got.Content) != 1 {
			t.Errorf("%s: %d %s", field, status, answer)
			continue
		}
		var value map[string]bool
		if err := json.Unmarshal([]byte(got.Content[0].Text), &value); err != nil || len(value) != 1 {
			t.Errorf("%s: %s is no answer to the schema: %v", field, answer, err)
		}
	}
	for field, param := range map[string]string{
		`"output_config":{"effort":"huge"}`:                                                       "output_config.effort",
		`"output_config":{"format":{"type":"xml"}}`:                                               "output_config.format.type",
		`"output_config":{"format":{"type":"json_schema"}}`:                                       "output_config.format.schema",
		`"output_format":{"type":"json_schema","schema":{"type":"nonsense"}}`:                     "output_format",
		`"output_config":{"format":{"type":"json_schema","schema":{"$ref":"http://x.example/"}}}`: "output_config.format",
	} {
		status, _, answer := f.post("/v1/messages", claudeBody(`,`+field))
		if status != http.StatusBadRequest || !strings.Contains(string(answer), `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s, want 400 about %s", field, status, answer, param)
		}
	}
}

func TestFormerFunctionsAreRefusedWithWhatToSendInstead(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	call := `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`
	for _, c := range []struct{ body, param, hint string }{
		{chatBody(`,"functions":[{"name":"f","parameters":{}}]`), "functions", "'tools'"},
		{chatBody(`,"function_call":"auto"`), "function_call", "'tool_choice'"},
		{`{"messages":[` + asks + `,` + call + `]}`, "messages[1].function_call", "'tool_calls'"},
		{`{"messages":[` + asks + `,{"role":"function","name":"f","content":"1"}]}`, "messages[1].role", "role tool"},
	} {
		status, _, answer := f.post("/v1/chat/completions", c.body)
		wantError(t, c.body, status, answer, http.StatusBadRequest, jsonread.CodeUnsupported, c.param)
		if !strings.Contains(string(answer), c.hint) {
			t.Errorf("%s: %s does not name %s", c.body, answer, c.hint)
		}
	}
}

// TestOpenWebUIsRequestsAreAnswered sends what Open WebUI makes of its settings, those
// that it never sends on their own included.
func TestOpenWebUIsRequestsAreAnswered(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	for _, c := range []struct{ path, body string }{
		{"/api/chat", `{"model":"toy:latest","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi","images":[]},
			{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":{"a":1}}}]},
			{"role":"tool","content":"2","tool_call_id":"call_1"}],"stream":true,"think":false,"keep_alive":"5m","format":"",
			"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}],
			"options":{"temperature":0.8,"top_p":0.9,"seed":7,"mirostat":0,"mirostat_eta":0.1,"mirostat_tau":5.0,"num_ctx":2048,"num_batch":512,"num_keep":24,
				"num_predict":4,"repeat_last_n":64,"top_k":40,"min_p":0.0,"typical_p":1.0,"repeat_penalty":1.1,"presence_penalty":0.0,"frequency_penalty":0.0,
				"penalize_newline":true,"stop":["###"],"numa":false,"num_gpu":50,"main_gpu":0,"low_vram":false,"vocab_only":false,"use_mmap":true,"use_mlock":false,
				"num_thread":8,"tfs_z":1,"new_topic_penalty":0,"logits_all":true}}`},
		{"/api/generate", `{"model":"toy","prompt":"","keep_alive":0}`},
		{"/api/generate", `{"model":"toy","prompt":"Hi","suffix":"","images":null,"format":"","options":{"num_predict":2},"system":"","template":"","context":[],"stream":false,"raw":false}`},
		{"/api/show", `{"model":"toy:latest"}`},
		{"/api/show", `{"name":"toy"}`},
		{"/v1/chat/completions", `{"stream":true,"model":"toy","messages":[{"role":"user","content":"Hi"}],"stream_options":{"include_usage":true},"max_tokens":4,
			"temperature":0.8,"top_p":0.9,"min_p":0,"frequency_penalty":0,"presence_penalty":0,"seed":7,"stop":["###"],"logit_bias":{},"reasoning_effort":"low",
			"chat_id":"1","session_id":"2","id":"3","parent_id":null,"tool_ids":[],"files":[],"features":{"web_search":false},
			"variables":{"{{USER_NAME}}":"a"},"model_item":{},"background_tasks":{"title_generation":true}}`},
		{"/v1/chat/completions", `{"model":"toy","messages":[{"role":"user","content":"A title, please."}],"stream":false,"max_completion_tokens":4}`},
	} {
		if status, _, answer := f.post(c.path, c.body); status != http.StatusOK {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, answer)
		}
	}
	for _, path := range []string{"/api/tags", "/api/version", "/api/ps", "/v1/models"} {
		if status, _, answer := f.do("GET", path, nil, "X-OpenWebUI-User-Name", "a"); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
}

func TestPagesOfConfiguredOriginsMayDeleteResponses(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.CORSOrigins = []string{"https://chat.example"} })
	status, h, _ := f.do("OPTIONS", "/v1/responses/resp_1", nil, "Origin", "https://chat.example", "Access-Control-Request-Method", "DELETE")
	if methods := h.Get("Access-Control-Allow-Methods"); status != http.StatusNoContent || !slices.Contains(strings.Split(methods, ", "), "DELETE") {
		t.Errorf("%d, methods %q, want DELETE among them", status, methods)
	}
	if _, h, _ := f.do("PUT", "/v1/responses/resp_1", nil); fmt.Sprint(h.Values("Allow")) != "[GET DELETE]" {
		t.Errorf("Allow %v, want GET and DELETE", h.Values("Allow"))
	}
}

func TestAFingerprintStaysUntilTheModelIsAnother(t *testing.T) {
	print := func(m *toy.Model) string {
		f := start(t, m, nil)
		_, _, one := f.post("/v1/chat/completions", chatBody(`,"max_tokens":1`))
		_, _, two := f.post("/v1/completions", `{"prompt":"Hi","max_tokens":1}`)
		a, b := wholeChat(t, one, 1).Print, wholeText(t, two, 1).Print
		if a != b || !strings.HasPrefix(a, "fp_") {
			t.Errorf("one model has the fingerprints %q and %q", a, b)
		}
		return a
	}
	if a, b, c := print(&toy.Model{}), print(&toy.Model{}), print(&toy.Model{Context: 1000}); a != b || a == c {
		t.Errorf("fingerprints %q, %q and of another model %q", a, b, c)
	}
}
