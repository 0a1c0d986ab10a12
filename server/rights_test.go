package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/residency"
)

// withKeys has a server without keys ask for the keys of a file.
func (f *fixture) withKeys(t *testing.T, text string) {
	t.Helper()
	list, err := admission.ReadKeys(keyFile(t, text, 0o600), admission.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	f.admitter.keys = admission.NewKeys(list, admission.Limits{})
}

func TestOnlyAnAdminKeyChangesWhatOthersGet(t *testing.T) {
	f := startOnDemand(t, nil)
	for range 8 {
		f.gate <- struct{}{}
	}
	if w := f.as("POST", "/models/load", "", `{"model":"late"}`); w.Code != 200 {
		t.Errorf("without keys: %d %s", w.Code, w.Body)
	}
	f.withKeys(t, "bob: b\nops: o admin")
	loaded := func() bool {
		st, err := must(f.models.known()).State("late")
		if err != nil {
			t.Fatal(err)
		}
		return st.Status == residency.Loaded
	}
	hi := `"prompt":"Hi","max_tokens":2,"keep_alive":`
	if w := f.as("POST", "/api/generate", "b", `{"model":"late","prompt":"Hi"}`); w.Code != 200 || !loaded() {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, c := range []struct{ path, body string }{
		{"/models/load", `{"model":"late"}`}, {"/models/unload", `{"model":"late"}`}, {"/lora-adapters", `[]`},
		{"/api/generate", `{"model":"late","keep_alive":0}`}, {"/api/chat", `{"model":"late","messages":[],"keep_alive":"0s"}`},
	} {
		w := f.as("POST", c.path, "b", c.body)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "admin key") || !loaded() {
			t.Errorf("%s %s: %d %s, want 403", c.path, c.body, w.Code, w.Body)
		}
	}
	for _, keep := range []string{"0", "-1", `"10m"`} {
		w := f.as("POST", "/api/generate", "b", `{"model":"late",`+hi+keep+`}`)
		st, _ := must(f.models.known()).State("late")
		if w.Code != 200 || !strings.Contains(w.Header().Get(api.Warning), "keep_alive") || !loaded() || !st.Expires.IsZero() {
			t.Errorf("keep_alive %s: %d %s with %v, and it is %+v", keep, w.Code, w.Body, w.Header(), st)
		}
	}
	if w := f.as("POST", "/api/generate", "o", `{"model":"late",`+hi+`"10m"}`); w.Code != 200 || w.Header().Get(api.Warning) != "" {
		t.Errorf("an admin's keep_alive: %d with %v", w.Code, w.Header())
	}
	if st, _ := must(f.models.known()).State("late"); st.Expires.IsZero() {
		t.Error("an admin's keep_alive does nothing")
	}
	if w := f.as("POST", "/models/unload", "o", `{"model":"late"}`); w.Code != 200 || loaded() {
		t.Errorf("an admin's /models/unload: %d %s", w.Code, w.Body)
	}
}

func TestEveryRouteThatWritesIsKnownToConcernItsCallerAloneOrTakesAnAdminKey(t *testing.T) {
	f := start(t, says(t, "Hi."), nil)
	own := []string{ // they answer, or change what their caller has stored
		"/v1/chat/completions", "/v1/chat/completions/render", "/v1/completions", "/v1/completions/render", "/v1/embeddings", "/v1/rerank", "/rerank", "/v2/rerank", "/v1/score", "/score", "/v1/rewards",
		"/v1/messages", "/v1/messages/count_tokens", "/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact", "/v1/responses/{id}", "/v1/responses/{id}/cancel",
		"/v1/files", "/v1/files/{id}", "/v1/batches", "/v1/batches/{id}/cancel", "/v1/messages/batches", "/v1/messages/batches/{id}", "/v1/messages/batches/{id}/cancel",
		"/infill", "/completion", "/completions", "/slots/{id}", "/apply-template", "/tokenize", "/detokenize",
		"/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show", // keep_alive asks by itself
		"/api/delete", "/api/pull", "/api/push", "/api/create", "/api/copy", "/api/blobs/{digest}", // refused
	}
	rules := map[string]bool{}
	for at, routes := range f.router.routes {
		for _, r := range routes {
			switch {
			case at.method == http.MethodGet:
			case r.Rules:
				rules[at.path] = true
			case !r.Admin && !slices.Contains(own, at.path):
				t.Errorf("%s %s may change what others get, and takes any key", at.method, at.path)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(rules)); !slices.Equal(got, []string{"/lora-adapters", "/models/load", "/models/unload"}) {
		t.Errorf("routes for admin keys: %v", got)
	}
}

func TestAKeysModelsBoundItsAdaptersToo(t *testing.T) {
	f := adapted(t)
	f.withKeys(t, "base: b models=base\none: o models=base,one\nadapter: a models=base:two")
	for _, c := range []struct {
		key, fields string
		status      int
	}{
		{"b", `"model":"base"`, 200}, {"b", `"model":"alias"`, 200}, {"b", `"model":"base:one"`, 404}, {"b", `"model":"alias:one"`, 404}, {"b", `"model":"one"`, 404},
		{"b", `"model":"base","lora":[{"id":0,"scale":1}]`, 404}, {"b", `"model":"base","lora":[{"id":0,"scale":0}]`, 200},
		{"o", `"model":"base:one"`, 200}, {"o", `"model":"one"`, 200}, {"o", `"model":"two"`, 404}, {"o", `"model":"base","lora":[{"id":0,"scale":1}]`, 200},
		{"o", `"model":"base","lora":[{"id":0,"scale":1},{"id":1,"scale":1}]`, 404},
		{"a", `"model":"base"`, 404}, {"a", `"model":"two"`, 200}, {"a", `"model":"alias:two"`, 200}, {"a", `"model":"one"`, 404},
	} {
		if w := f.as("POST", "/v1/completions", c.key, `{"prompt":"the","max_tokens":1,`+c.fields+`}`); w.Code != c.status {
			t.Errorf("%s with %s: %d %s, want %d", c.key, c.fields, w.Code, w.Body, c.status)
		}
	}
	if ids := listedFor(t, f, "b"); slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, "one") || strings.Contains(id, "two") }) || !slices.Contains(ids, "alias") {
		t.Errorf("the key for base is shown %v", ids)
	}
}

// listedFor returns the names that GET /v1/models shows to a key.
func listedFor(t *testing.T, f *fixture, key string) (ids []string) {
	t.Helper()
	var list struct {
		Data []struct{ ID string }
	}
	w := f.as("GET", "/v1/models", key, "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	for _, c := range list.Data {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestAKeysModelsBoundItsVerifiersToo(t *testing.T) {
	f := judged(t, "math-shepherd.gguf")
	judge := f.models.loaded()[1].Name
	f.withKeys(t, "all: x\nboth: b models=lutra-tiny-s,"+judge+"\none: o models=lutra-tiny-s")
	ask := func(key, plan string) (int, string) {
		w := f.as("POST", "/v1/chat/completions", key, `{"model":"lutra-tiny-s","max_tokens":4,"messages":[{"role":"user","content":"1+1"}],"test_time_scaling":{"method":"best_of_n","n":2`+plan+`}}`)
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		key, plan string
		status    int
		judged    bool
	}{
		{"x", "", 200, true}, {"b", "", 200, true}, {"b", `,"verifier":"` + judge + `"`, 200, true},
		{"o", "", 200, false}, {"o", `,"verifier":"` + judge + `"`, 400, false}, {"o", `,"verifier":"logprob"`, 200, false},
	} {
		status, answer := ask(c.key, c.plan)
		judged := status == 200 && !strings.Contains(answer, `"verifier_tokens":0`)
		if status != c.status || judged != c.judged {
			t.Errorf("%s with %q: %d %s, want it judged: %v", c.key, c.plan, status, answer, c.judged)
		}
	}
	for key, want := range map[string]bool{"x": true, "b": true, "o": false} {
		for _, path := range []string{"/v1/models", "/v1/models/lutra-tiny-s"} {
			if w := f.as("GET", path, key, ""); strings.Contains(w.Body.String(), judge) != want {
				t.Errorf("%s shows %s: %s", path, key, w.Body)
			}
		}
	}
}
