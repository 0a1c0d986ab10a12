package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/mcp"
)

// toolServer stands in for a server of tools: its answers depend on the method that a message names.
func toolServer(t *testing.T, seen *[]*http.Request) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*seen = append(*seen, r)
		answer := func(status int, kind, text string) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, text)
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Mcp-Session-Id", "s1")
		switch _, method, _ := strings.Cut(strings.Trim(string(body), "{}"), ":"); strings.Trim(method, `"`) {
		case "tools/list":
			answer(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)
		case "tools/call":
			answer(200, "text/event-stream; charset=utf-8", "data: {}\n\n")
		case "said":
			answer(202, "text/plain", "ok")
		case "page":
			answer(200, "text/html", "<script>alert(1)</script>")
		case "gone":
			answer(404, "text/plain", "session not found")
		case "wrong":
			answer(400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32600}}`)
		case "secret":
			answer(401, "text/plain", "who are you?")
		case "away":
			w.Header().Set("Location", "http://169.254.169.254/")
			answer(307, "text/plain", "")
		case "broken":
			answer(500, "application/json", `{}`)
		case "huge":
			w.Header().Set("Content-Type", "application/json")
			for range 17 {
				fmt.Fprint(w, strings.Repeat(" ", 1<<20))
			}
		default:
			answer(200, "text/plain", "bye")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// send sends a message to a path, with headers by name and value.
func send(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		text = append(text, " broken off"...)
	}
	return resp, string(text)
}

func TestMessagesReachTheServersOfToolsThatAreConfigured(t *testing.T) {
	var seen []*http.Request
	tools := toolServer(t, &seen)
	f := start(t, &toy.Model{}, func(o *Options) {
		o.APIKeys = []string{"river"}
		o.MCPServers = map[string]mcp.Options{
			"docs": {URL: tools.URL + "/at?x=1", Headers: map[string]string{"Authorization": "Bearer upstream"}},
			"none": {URL: "http://127.0.0.1:1/"},
		}
	})
	const key = "Bearer river"
	if _, text := send(t, "GET", f.url+"/mcp", "", "Authorization", key); !strings.Contains(text, `"data":[{"id":"docs","object":"mcp_server"},{"id":"none"`) || strings.Contains(text, "127.0.0.1") {
		t.Errorf("GET /mcp: %s", text)
	}
	if resp, text := send(t, "POST", f.url+"/mcp/docs", `{"method":"tools/list"}`); resp.StatusCode != 401 || len(seen) > 0 {
		t.Errorf("without a key: %d %s", resp.StatusCode, text)
	}

	resp, text := send(t, "POST", f.url+"/mcp/docs", `{"method":"tools/list"}`, "Authorization", key, "Accept", "application/json, text/event-stream", "Content-Type", "application/json",
		"Mcp-Session-Id", "mine", "Mcp-Protocol-Version", "2025-06-18", "Cookie", "c=d", "X-Api-Key", "river")
	if resp.StatusCode != 200 || text != `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` || resp.Header.Get("Mcp-Session-Id") != "s1" || resp.Header.Get("Set-Cookie") != "" {
		t.Errorf("%d %s, headers %v", resp.StatusCode, text, resp.Header)
	}
	up := seen[0]
	if h := up.Header; up.URL.String() != "/at?x=1" || h.Get("Authorization") != "Bearer upstream" || h.Get("Mcp-Session-Id") != "mine" || h.Get("Mcp-Protocol-Version") != "2025-06-18" ||
		h.Get("Accept") != "application/json, text/event-stream" || h.Get("Cookie") != "" || h.Get("X-Api-Key") != "" {
		t.Errorf("the server of tools gets %s with %v", up.URL, h)
	}

	for _, c := range []struct {
		method, name, body string
		status             int
		want               string
	}{
		{"POST", "docs", `{"method":"tools/call"}`, 200, "data: {}\n\n"},
		{"POST", "docs", `{"method":"said"}`, 202, ""},
		{"DELETE", "docs", "", 200, ""},
		{"POST", "docs", `{"method":"wrong"}`, 400, `{"jsonrpc":"2.0","error":{"code":-32600}}`},
		{"POST", "docs", `{"method":"gone"}`, 404, "status 404: session not found"},
		{"POST", "docs", `{"method":"page"}`, 502, "not with JSON or events"},
		{"POST", "docs", `{"method":"secret"}`, 502, "refuses what headers of the configuration say"},
		{"POST", "docs", `{"method":"away"}`, 502, "status 307"},
		{"POST", "docs", `{"method":"broken"}`, 502, "status 500"},
		{"POST", "docs", `{"method":"huge"}`, 200, " broken off"},
		{"POST", "docs", `[]`, 400, "must be a JSON object"},
		{"POST", "none", `{}`, 502, "cannot be reached"},
		{"POST", "else", `{}`, 404, "mcp_server_not_found"},
		{"GET", "docs", "", 405, "method_not_allowed"},
	} {
		resp, text := send(t, c.method, f.url+"/mcp/"+c.name, c.body, "Authorization", key)
		if resp.StatusCode != c.status || !strings.Contains(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%s %s %s: %d %.300s, want %d %s", c.method, c.name, c.body, resp.StatusCode, text, c.status, c.want)
		}
	}
	for _, r := range seen {
		if r.Header.Get("Authorization") != "Bearer upstream" {
			t.Errorf("a server of tools gets %q", r.Header.Get("Authorization"))
		}
	}
}

// Whatever waits for a server of tools, requests for models go on, and one whose client leaves ends.
func TestAServerOfToolsThatHangsTakesNoPlaceOfARequestForAModel(t *testing.T) {
	came, left := make(chan struct{}, 8), make(chan struct{}, 8)
	tools := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else it does not hear that the relay has gone
		came <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	t.Cleanup(tools.Close)
	f := start(t, &toy.Model{}, func(o *Options) {
		o.MaxRequests = 1
		o.MCPServers = map[string]mcp.Options{"docs": {URL: tools.URL}}
	})
	ctx, leave := context.WithCancel(t.Context())
	const n = 3
	ended := make(chan string, n)
	for range n {
		go func() {
			r, err := http.NewRequestWithContext(ctx, "POST", f.url+"/mcp/docs", strings.NewReader(`{"method":"tools/call"}`))
			if err != nil {
				ended <- err.Error()
				return
			}
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			ended <- fmt.Sprint(errors.Is(err, context.Canceled), resp, err)
		}()
		select {
		case <-came:
		case how := <-ended:
			t.Fatalf("a message does not reach the server of tools: %s", how)
		}
	}
	if status, _, body := f.post("/v1/chat/completions", chatBody(`,"max_tokens":2`)); status != 200 {
		t.Errorf("beside %d messages that wait a chat gets %d: %s", n, status, body)
	}
	leave()
	for range n {
		<-left
		if how := <-ended; !strings.HasPrefix(how, "true") {
			t.Errorf("a message whose client leaves ends with %s", how)
		}
	}
}

func TestServersOfToolsAreCheckedByName(t *testing.T) {
	many := map[string]mcp.Options{}
	for i := range 33 {
		many[fmt.Sprint(i)] = mcp.Options{URL: "http://a/"}
	}
	for want, servers := range map[string]map[string]mcp.Options{
		"server.mcp_servers: 33 are more than 32":                many,
		`server.mcp_servers: "a b" is not a name`:                {"a b": {URL: "http://a/"}},
		"server.mcp_servers.a.url: must be http://HOST/PATH":     {"a": {URL: "ftp://a/"}},
		"server.mcp_servers.b.url: must be http://HOST/PATH or ": {"b": {URL: "http://user:word@a/"}},
		"server.mcp_servers.a.timeout: -1s is outside":           {"a": {URL: "http://a/", Timeout: -time.Second}},
		"server.mcp_servers.a.timeout: 2h0m0s is outside":        {"a": {URL: "http://a/", Timeout: 2 * time.Hour}},
		`server.mcp_servers.a.headers: "x y" is no header`:       {"a": {URL: "http://a/", Headers: map[string]string{"x y": "z"}}},
		`server.mcp_servers.a.headers: "X" is no header`:         {"a": {URL: "http://a/", Headers: map[string]string{"X": "a\r\nb"}}},
	} {
		o := DefaultOptions()
		o.MCPServers = servers
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
