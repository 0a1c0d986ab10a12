package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

func TestEqualBadRequestsGetEqualErrors(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.Strict = true })
	many := func(name string, n int) string {
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf(`"%s%d":1`, name, i)
		}
		return strings.Join(fields, ",")
	}
	const item = `{"role":"user","content":"a"},`
	crowd := `{"role":"user","content":"a",` + many("x", 126) + `},`
	for _, c := range []struct{ path, body string }{
		{"/v1/chat/completions", chatBody(`,"grammar":"root ::= \"a\"","json_schema":{"type":"object"}`)},
		{"/v1/chat/completions", chatBody(`,"json_schema":{"type":"object"},"min_tokens":1,"allowed_token_ids":[5],"ignore_eos":true`)},
		{"/v1/chat/completions", chatBody(`,"test_time_scaling":{"method":"beam_search","step":{"stop":7},"budget":{"tokens":"x"},"answer":{"extract":7}}`)},
		{"/v1/responses", `{"input":[` + item + item + crowd + crowd + strings.Repeat(item, 6) + strings.TrimSuffix(crowd, ",") + `]}`}, // the last one has no room for all of its fields
		{"/api/chat", `{"model":"toy","messages":[{"role":"user","content":"a"}],"options":{"grammar":"x","regex":"x","lora":[1],"suffix":"x","samplers":["x"],"mirostat":1}}`},
	} {
		var first string
		for range 20 { // a map's order is another one most times
			status, _, answer := f.post(c.path, c.body)
			answer = answer[:min(len(answer), 300)]
			if got := fmt.Sprintf("%d %s", status, answer); first == "" {
				if first = got; status != 400 {
					t.Errorf("%s: %s, want 400", jsonread.Brief(c.body), got)
				}
			} else if got != first {
				t.Errorf("%s: %s after %s", jsonread.Brief(c.body), got, first)
				break
			}
		}
	}
}

func TestBadPresetsAreNamedInOneOrder(t *testing.T) {
	presets := map[string]string{"a": "x", "b": "x", "c": "x", "d": "x"}
	for range 20 {
		opt := DefaultOptions()
		opt.Presets = presets
		if err := opt.Validate(); err == nil || !strings.Contains(err.Error(), "presets.a:") {
			t.Fatalf("%v, want the first preset's fault", err)
		}
	}
}

func TestResponsesAreForTheirKeyAlone(t *testing.T) {
	// The hashes of these two begin with the same four bytes.
	const alice, bob = "key-8337", "key-15029"
	f := start(t, says(t, "Secret."), func(o *Options) { o.APIKeys = []string{alice, bob} })
	as := func(key, method, path, body string) (int, []byte) {
		status, _, answer := f.do(method, path, strings.NewReader(body), "Authorization", "Bearer "+key)
		return status, answer
	}
	status, answer := as(alice, "POST", "/v1/responses", `{"input":"Hi"}`)
	response := parts[answered](t, answer)[0]
	if status != 200 || response.ID == "" {
		t.Fatalf("%d %s", status, answer)
	}
	path := "/v1/responses/" + response.ID
	if status, answer := as(alice, "GET", path, ""); status != 200 {
		t.Errorf("its owner gets %d %s", status, answer)
	}
	if status, answer := as(bob, "GET", path, ""); status != 404 {
		t.Errorf("another key reads it: %d %s", status, answer)
	}
	if status, answer := as(bob, "POST", "/v1/responses", `{"input":"What?","previous_response_id":"`+response.ID+`"}`); status != 400 {
		t.Errorf("another key follows it: %d %s", status, answer)
	}
	if status, _ := as(bob, "DELETE", path, ""); status != 404 {
		t.Errorf("another key deletes it: %d", status)
	}
}
