package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/chat"
)

const toolList = `[{"type":"function","function":{"name":"add","parameters":{"type":"object"}},"command":["cat"]}]`

// fileOf is a file of a text.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// scripted is a server that answers chats with events and keeps their bodies.
func scripted(t *testing.T, events ...string) (url string, asked *map[string]any) {
	t.Helper()
	asked = &map[string]any{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"m","owned_by":"lutra"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		clear(*asked)
		if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestCallsOfToolsArePrintedAsJSON(t *testing.T) {
	url, asked := scripted(t,
		`{"choices":[{"index":0,"delta":{"reasoning_content":"Let me add."}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"id":"c2","function":{"name":"add","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	file := fileOf(t, toolList)
	var calls []chat.Call
	out := mustLutra(t, "ask", "--url", url, "--tools", file, "add")
	if err := json.Unmarshal([]byte(out), &calls); err != nil || len(calls) != 2 || calls[0].ID != "c1" || calls[0].Function != (chat.Function{Name: "add", Arguments: `{"a":1}`}) {
		t.Errorf("ask prints %s: %v", out, err)
	}
	if sent, _ := json.Marshal((*asked)["tools"]); string(sent) != `[{"function":{"name":"add","parameters":{"type":"object"}},"type":"function"}]` {
		t.Errorf("the server is sent the tools %s", sent)
	}
	var stats chat.Stats
	out = mustLutra(t, "ask", "--url", url, "--tools", file, "--json", "add")
	if err := json.Unmarshal([]byte(out), &stats); err != nil || len(stats.Calls) != 2 || stats.Reasoning != "Let me add." || stats.Finish != "tool_calls" {
		t.Errorf("ask --json prints %s: %v", out, err)
	}
	url, _ = scripted(t, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":7,"function":{"arguments":"1}"}}]}}]}`)
	if status, got := complain(t, "ask", "--url", url, "--tools", file, "add"); status != 1 || !strings.Contains(got, "a call of a tool has the index 7 after 0 calls") {
		t.Errorf("pieces of no call: status %d, %s", status, got)
	}
}

func TestAnswersAreHeldToASchema(t *testing.T) {
	file := fileOf(t, `{"type":"boolean"}`)
	if out := mustLutra(t, "ask", "--model", "lutra-tiny-s", "--schema", file, "Is 12 more than 7?"); out != "true\n" && out != "false\n" {
		t.Errorf("ask prints %q", out)
	}
	if out := mustLutra(t, "ask", "--model", "lutra-tiny-s", "--tools", fileOf(t, toolList), "What is 12 * 7?"); !strings.Contains(out, "84") {
		t.Errorf("with tools ask prints %q", out)
	}
	url, asked := scripted(t, `{"choices":[{"index":0,"delta":{"content":"true"},"finish_reason":"stop"}]}`)
	mustLutra(t, "ask", "--url", url, "--schema", file, "hi")
	if sent, _ := json.Marshal((*asked)["response_format"]); string(sent) != `{"json_schema":{"name":"answer","schema":{"type":"boolean"},"strict":true},"type":"json_schema"}` {
		t.Errorf("the server is sent the format %s", sent)
	}
	for _, c := range []struct{ flags, want string }{
		{"--schema nowhere.json", "--schema: there is no file nowhere.json"},
		{"--tools nowhere.json", "--tools: there is no file nowhere.json"},
		{"--schema " + file + " --tools " + fileOf(t, toolList), "--tools: an answer that is held to a schema can call no tools"},
		{"--model lutra-tiny-s --schema " + fileOf(t, `{"type":"banana"}`), "the schema: "},
	} {
		if status, got := complain(t, append(strings.Fields("ask "+c.flags), "hi")...); status == 0 || !strings.Contains(got, c.want) {
			t.Errorf("%s: status %d, %s", c.flags, status, got)
		}
	}
}

func TestSettingsOfAChatReachTheServer(t *testing.T) {
	url, asked := scripted(t, `{"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}`)
	against(t, "/set top_k 40\n/set min_p 0.125\n/set repetition_penalty 1.5\n/set presence_penalty 0.5\n/set frequency_penalty -0.5\n/set stop [\"END\"]\n/set temperature 0.75\n/set max_tokens 9\n/set seed 3\nhi\n",
		"chat", "--url", url)
	for field, want := range map[string]any{
		"top_k": 40.0, "min_p": 0.125, "repetition_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": -0.5, "temperature": 0.75, "max_tokens": 9.0, "seed": 3.0, "truncation": "auto",
	} {
		if got := (*asked)[field]; got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	if stop, _ := json.Marshal((*asked)["stop"]); string(stop) != `["END"]` {
		t.Errorf("stop is %s", stop)
	}
}
