package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/residency"
)

// as sends a request with a key, without a network: it has been logged and counted when it returns.
func (f *fixture) as(method, path, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, r)
	return w
}

func TestAKeysTokensAreSetAsideChargedAndTold(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) {
		o.APIKeysFile, o.TokensPerMinute = keyFile(t, "alice: a\nbob: b tokens_per_minute=0 requests_per_minute=9", 0o600), 400
	})
	body := chatBody(`,"max_tokens":100,"n":2,"ignore_eos":true`)
	w := f.as("POST", "/v1/chat/completions", "a", body)
	u := wholeChat(t, w.Body.Bytes(), 2).Usage
	if w.Code != 200 || u.Completion != 200 {
		t.Fatalf("%d, %+v", w.Code, u)
	}
	h := w.Header()
	if h.Get("X-Ratelimit-Limit-Tokens") != "400" || h.Get("X-Ratelimit-Limit-Requests") != "" {
		t.Errorf("headers %v", h)
	}
	// The answer was told what was set aside for it: 200, and a token for four bytes of the body.
	left := 400 - 200 - len(body)/4
	if got := h.Get("X-Ratelimit-Remaining-Tokens"); got != fmtInt(left) {
		t.Errorf("%s tokens remain, want %d", got, left)
	}
	w = f.as("POST", "/v1/chat/completions", "a", body)
	wantError(t, "beyond the tokens", w.Code, w.Body.Bytes(), http.StatusTooManyRequests, "rate_limit_exceeded", "")
	if e := strict[api.Envelope](t, w.Body.Bytes()).Error; e.Type != "rate_limit_error" || !strings.Contains(e.Message, "tokens_per_minute") || w.Header().Get("Retry-After") == "" {
		t.Errorf("%+v with %v", e, w.Header())
	}
	for path, sign := range map[string]string{"/v1/messages": `"type":"rate_limit_error"`, "/api/chat": `{"error":"Rate limit reached`} {
		w := f.as("POST", path, "a", strings.Replace(body, `"n":2,"ignore_eos":true`, `"options":{"num_predict":300}`, 1))
		if path == "/v1/messages" {
			w = f.as("POST", path, "a", chatBody(`,"max_tokens":300`))
			if w.Header().Get("Anthropic-Ratelimit-Tokens-Limit") != "400" {
				t.Errorf("%s: headers %v", path, w.Header())
			}
		}
		if w.Code != 429 || !strings.Contains(w.Body.String(), sign) {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, sign)
		}
	}
	w = f.as("POST", "/v1/chat/completions", "b", chatBody(`,"max_tokens":1000,"stop":["x"]`))
	if h := w.Header(); w.Code != 200 || h.Get("X-Ratelimit-Limit-Tokens") != "" || h.Get("X-Ratelimit-Remaining-Requests") != "8" || h.Get("X-Ratelimit-Reset-Requests") == "" {
		t.Errorf("bob: %d with %v", w.Code, h)
	}
}

func fmtInt(n int) string { b, _ := json.Marshal(n); return string(b) }

func TestASearchIsChargedWithAllItsCandidates(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.APIKeysFile = keyFile(t, "alice: a tokens_per_minute=1000", 0o600) })
	body := chatBody(`,"max_tokens":10,"ignore_eos":true,"test_time_scaling":"sc8"`)
	w := f.as("POST", "/v1/chat/completions", "a", body)
	if w.Code != 200 || w.Header().Get("X-Ratelimit-Remaining-Tokens") != fmtInt(1000-80-len(body)/4) {
		t.Fatalf("%d %s with %v", w.Code, w.Body, w.Header())
	}
	list, _ := f.admitter.keys.Usage()
	_, left := list[0].Key.Rates()
	if u := list[0]; u.Completion != 80 || left.Remaining > 1000-80-int(u.Prompt)+1 || left.Remaining < 1000-80-int(u.Prompt)-1 {
		t.Errorf("usage %+v, %+v left", u, left)
	}
}

func TestAKeyHasNoMoreRequestsUnderWayThanItsLimit(t *testing.T) {
	entered, gate := make(chan struct{}, 1), make(chan struct{})
	m := says(t, "Hi.")
	m.Before = func(*models.Batch) error {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-gate
		return nil
	}
	f := start(t, m, func(o *Options) { o.APIKeysFile = keyFile(t, "alice: a max_requests=1\nops: o admin", 0o600) })
	first := make(chan int)
	go func() { first <- f.as("POST", "/v1/chat/completions", "a", chatBody("")).Code }()
	<-entered
	w := f.as("POST", "/v1/chat/completions", "a", chatBody(""))
	wantError(t, "the second at once", w.Code, w.Body.Bytes(), 429, "rate_limit_exceeded", "")
	var seen struct{ Running, Waiting, Recent []requestState }
	w = f.as("GET", "/debug/requests", "o", "")
	if err := json.Unmarshal(w.Body.Bytes(), &seen); err != nil || len(seen.Running)+len(seen.Waiting) != 1 || len(seen.Recent) != 0 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if r := append(seen.Running, seen.Waiting...)[0]; r.Key != "alice" || r.Model != "toy" || r.Path != "/v1/chat/completions" || r.Strategy != "single" || r.Completion != 0 {
		t.Errorf("under way is %+v", r)
	}
	close(gate)
	if status := <-first; status != 200 {
		t.Errorf("the first: %d", status)
	}
	if w := f.as("POST", "/v1/chat/completions", "a", chatBody("")); w.Code != 200 {
		t.Errorf("after the first: %d", w.Code)
	}
	w = f.as("GET", "/debug/requests", "o", "")
	if err := json.Unmarshal(w.Body.Bytes(), &seen); err != nil || len(seen.Running)+len(seen.Waiting) != 0 || len(seen.Recent) != 2 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	if r := seen.Recent[1]; r.State != "ended" || r.Status != 200 || r.Finish != "stop" || r.Prompt == 0 || r.Completion == 0 || r.Prefill <= 0 || r.Age < r.Queue+r.Prefill {
		t.Errorf("the first has ended as %+v", r)
	}
	if strings.Contains(w.Body.String(), "Hi") {
		t.Errorf("a prompt is shown: %s", w.Body)
	}
}

func TestEndedRequestsAreForgottenInTurn(t *testing.T) {
	var q requests
	for i := range mostRecent + 3 {
		rec := &record{id: fmtInt(i), start: time.Now()}
		q.enter(rec, "/")
		q.leave(rec, 200)
		q.leave(rec, 200) // once
	}
	q.leave(&record{id: "no place"}, 429)
	_, recent := q.list()
	if len(recent) != mostRecent || recent[0].ID != fmtInt(mostRecent+2) || recent[mostRecent-1].ID != "3" {
		t.Errorf("%d are remembered, from %s to %s", len(recent), recent[0].ID, recent[len(recent)-1].ID)
	}
}

func TestAKeySeesAndUsesItsModelsAlone(t *testing.T) {
	f := startOnDemand(t, func(o *Options, _ *residency.Options) {
		o.APIKeysFile = keyFile(t, "all: x\nlate: l models=later\nboth: b models=toy,late\nnone: n models=other", 0o600)
	})
	f.gate <- struct{}{}
	for _, c := range []struct {
		key, model string
		status     int
	}{
		{"x", "toy", 200}, {"x", "nothing", 404}, {"b", "toy", 200}, {"b", "toy+sc8", 200}, {"b", "", 200},
		{"n", "toy", 404}, {"n", "other", 404}, {"l", "toy", 404}, {"l", "toy+sc8", 404}, {"l", "toy:latest", 404}, {"l", "", 404}, {"l", "default", 404}, {"l", "nothing", 404},
		{"l", "late", 200}, {"l", "later", 200}, {"l", "later:latest", 200},
	} {
		w := f.as("POST", "/v1/chat/completions", c.key, `{"model":"`+c.model+`","max_tokens":3,"messages":[{"role":"user","content":"Hi"}]}`)
		if w.Code != c.status {
			t.Errorf("%s asks %q: %d %s, want %d", c.key, c.model, w.Code, w.Body, c.status)
		}
		if c.status == 404 {
			wantError(t, c.key+" asks "+c.model, w.Code, w.Body.Bytes(), 404, "model_not_found", "model")
		}
	}
	names := func(path, field, list string) (got []string) {
		var all map[string]json.RawMessage
		var cards []map[string]any
		w := f.as("GET", path, "l", "")
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
			t.Fatalf("%s: %s", path, w.Body)
		}
		if err := json.Unmarshal(all[list], &cards); err != nil {
			t.Fatal(err)
		}
		for _, card := range cards {
			got = append(got, card[field].(string))
		}
		return got
	}
	for _, c := range [][3]string{{"/v1/models", "id", "data"}, {"/models", "id", "data"}, {"/api/tags", "name", "models"}, {"/api/ps", "name", "models"}} {
		got := names(c[0], c[1], c[2])
		if len(got) == 0 || slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, "toy") }) {
			t.Errorf("%s lists %v", c[0], got)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/models/toy", ""}, {"POST", "/api/show", `{"model":"toy"}`},
		{"POST", "/api/generate", `{"model":"toy","keep_alive":0}`}, {"POST", "/tokenize", `{"model":"toy","prompt":"Hi"}`}, {"POST", "/v1/messages", chatBody(`,"max_tokens":3`)},
	} {
		if w := f.as(c.method, c.path, "l", c.body); w.Code != 404 {
			t.Errorf("%s %s: %d %s, want 404", c.method, c.path, w.Code, w.Body)
		}
	}
}

func TestAnAdminKeySeesWhatKeysHaveUsed(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) {
		o.APIKeysFile = keyFile(t, "alice: a requests_per_minute=2 models=toy\nops: o admin", 0o600)
	})
	for range 3 {
		f.as("POST", "/v1/chat/completions", "a", chatBody(""))
	}
	for _, path := range []string{"/usage", "/debug/requests"} {
		w := f.as("GET", path, "a", "")
		wantError(t, path, w.Code, w.Body.Bytes(), http.StatusForbidden, "admin_key_required", "")
		if w := f.as("GET", path, "x", ""); w.Code != 401 {
			t.Errorf("%s without a key: %d", path, w.Code)
		}
	}
	w := f.as("GET", "/usage", "o", "")
	type answer struct {
		Object string
		Since  int64
		Data   []keyUsage
	}
	got := strict[answer](t, w.Body.Bytes())
	if len(got.Data) != 2 || got.Since == 0 {
		t.Fatalf("%s", w.Body)
	}
	u := got.Data[0]
	if u.Key != "alice" || u.Requests != 2 || u.Refused["requests_per_minute"] != 1 || u.Prompt == 0 || u.Completion == 0 || u.InFlight != 0 ||
		u.Limits.Requests == nil || u.Limits.Requests.Limit != 2 || u.Limits.Tokens != nil || u.Limits.AtOnce != nil || !slices.Equal(u.Limits.Models, []string{"toy"}) {
		t.Errorf("alice's usage is %+v", u)
	}
	exposition := f.as("GET", "/metrics", "", "").Body.String()
	for name, want := range map[string]float64{"lutra_key_requests_total": 2, "lutra_key_refused_total": 1, "lutra_key_requests_in_flight": 0, "lutra_key_tokens_total": float64(u.Prompt)} {
		labels := map[string]string{"lutra_key_refused_total": `limit="requests_per_minute"`, "lutra_key_tokens_total": `kind="prompt"`}[name]
		lines := ""
		for line := range strings.Lines(exposition) {
			if strings.Contains(line, `key="alice"`) {
				lines += line
			}
		}
		if got := metric(t, lines, name, labels); got != want {
			t.Errorf("%s of alice is %v, want %v", name, got, want)
		}
	}
	open := start(t, says(t, "Hi."), nil)
	if w := open.as("GET", "/usage", "", ""); w.Code != http.StatusForbidden {
		t.Errorf("a server without keys shows /usage: %d", w.Code)
	}
}

func TestAFileOfKeysIsReadAgainWhenItChanges(t *testing.T) {
	log := &logged{}
	file := keyFile(t, "alice: key-a", 0o600)
	f := start(t, says(t, "Hi."), func(o *Options) { o.APIKeysFile = file; o.Log = zerolog.New(log) })
	opens := func(key string) bool { return f.as("GET", "/v1/models", key, "").Code == 200 }
	rewrite := func(text string) {
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	f.files.readChanged()
	if !opens("key-a") || strings.Contains(log.String(), "has been read") {
		t.Errorf("nothing has changed, and the log says\n%s", log)
	}
	rewrite("alice: key-a2\nbob: key-b2")
	f.files.readChanged()
	if opens("key-a") || !opens("key-a2") || !opens("key-b2") {
		t.Error("the new keys are not used")
	}
	for _, wrong := range []string{"", "alice: key-a3\nalice: key-b3"} {
		rewrite(wrong)
		f.files.readChanged()
		if !opens("key-a2") || opens("key-a3") || !strings.Contains(log.String(), "the changed file was refused") {
			t.Errorf("after a wrong file %q: log\n%s", wrong, log)
		}
		if err := f.Reload(); err == nil || !strings.Contains(err.Error(), "server.api_keys_file") {
			t.Errorf("Reload() = %v", err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	f.files.readChanged() // while it is exchanged
	if !opens("key-b2") {
		t.Error("without a file the keys are gone")
	}
	rewrite("carol: key-c")
	if err := f.Reload(); err != nil || opens("key-b2") || !opens("key-c") {
		t.Errorf("Reload() = %v", err)
	}
	if text := log.String(); strings.Contains(text, "key-") {
		t.Errorf("the log shows a key:\n%s", text)
	}
}

func TestALimitOfAKeyIsToldWithoutPackagesAndNanoseconds(t *testing.T) {
	log := &logged{}
	f := start(t, says(t, "Hi."), func(o *Options) {
		o.APIKeysFile, o.Log = keyFile(t, "alice: a requests_per_minute=1", 0o600), zerolog.New(log)
	})
	var answer string
	for range 2 {
		answer = f.as("POST", "/v1/chat/completions", "a", chatBody("")).Body.String()
	}
	digits := regexp.MustCompile(`\.[0-9]{4,}m?s`)
	for what, text := range map[string]string{"the answer": answer, "the log": log.String()} {
		if !strings.Contains(text, "requests_per_minute") || strings.Contains(text, "admission: ") || digits.MatchString(text) {
			t.Errorf("%s says %s", what, text)
		}
	}
}
