package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
)

// FuzzRequest holds that whatever a client sends is either refused as its own
// mistake or a request the layers below accept.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		chatBody(`,"n":3,"stop":["a","b"],"logit_bias":{"5":-100},"seed":-1,"stream":true,"stream_options":{"include_usage":true}`),
		chatBody(`,"temperature":0,"top_p":0,"top_k":-1,"max_completion_tokens":9,"logprobs":true,"top_logprobs":20`),
		chatBody(`,"response_format":{"type":"text"},"tools":[],"tool_choice":"none","metadata":{"a":"b"},"chat_template_kwargs":{"x":[1]}`),
		`{"messages":[{"role":"developer","content":[{"type":"text","text":"a"}]},{"role":"tool","content":"x","tool_call_id":"1"}]}`,
		`{"prompt":["a","b"],"n":2,"echo":true,"logprobs":5,"max_tokens":0}`,
		`{"prompt":[[1,2],[3]],"best_of":1}`,
		`{"prompt":[],"messages":[null]}`,
		chatBody(`,"test_time_scaling":{"method":"beam_search","n":"auto","width":2,"verifier":"logprob","step":{"stop":["\n"],"max_tokens":9},"early_stop":{"consensus":0.9},"include":["tree"]}`),
		chatBody(`,"test_time_scaling":{"method":"dvts","n":-1,"budget":{"time_ms":1e9},"answer":{"extract":"regex:(a+)+"}},"temperature":0`),
		`{"model":"toy+beam16x4","messages":[{"role":"user","content":"a"}],"metadata":{"test_time_scaling":"sc4;step.stop=\"\\n\""}}`,
		`{"prompt":"a","best_of":8,"n":2,"test_time_scaling":"none"}`,
		chatBody(`,"min_tokens":3,"n_predict":9,"bad_words":["a"," b"],"allowed_token_ids":[5,6],"logit_bias":[[5,false],["ab",1.5]],"repeat_penalty":2,"repeat_last_n":-1`),
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"<think>d"}],"continue_final_message":true,"add_generation_prompt":false,"truncation":"auto","echo":true}`,
		`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},{"role":"tool","content":[]}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"}`,
		chatBody(`,"reasoning_effort":"none","enable_thinking":true,"reasoning":{"effort":"low"},"mirostat":2,"grammar":"root ::= a","include_reasoning":false`),
	} {
		f.Add([]byte(seed))
	}
	s := New(DefaultOptions())
	if err := s.Publish(registry.Served{Model: toyModel(f, &toy.Model{Context: 64}, "toy", nil)}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			object, err := jsonread.Parse(body)
			var g *api.Ask
			if err == nil {
				c := &api.Call{Request: httptest.NewRequest(http.MethodPost, path, nil), Server: &s.router.server, Body: object, Lease: s.admitter.memory.Lease()}
				g, err = s.router.routes[pattern{http.MethodPost, path}][0].Ask(c)
			}
			if err != nil {
				if f := toFault(err); f.Status != http.StatusBadRequest && f.Status != http.StatusNotFound || f.Code == "" || f.Message == "" {
					t.Fatalf("%q: %v, want the client's own mistake", body, err)
				}
				continue
			}
			if len(g.Requests) == 0 || g.Choices() > s.opt.MaxChoices || g.Encoder == nil {
				t.Fatalf("%q: %d requests with %d choices", body, len(g.Requests), g.Choices())
			}
			if g.Search != nil && (g.Search.Plan.N < g.Requests[0].N || g.Search.Plan.N > s.opt.Limits.N || g.Search.Plan.Width < 1) {
				t.Fatalf("%q: a search by %+v", body, g.Search.Plan)
			}
			for _, req := range g.Requests {
				if _, err := g.Model.Prepare(t.Context(), &req.Prompt, req.Sampling.MaxTokens); err != nil && toFault(err).Status != http.StatusBadRequest {
					t.Fatalf("%q: %v, want the client's own mistake", body, err)
				}
				if err := req.Sampling.Validate(); err != nil || req.Sampling.TopLogprobs > fields.MaxTopLogprobs {
					t.Fatalf("%q: %v", body, err)
				}
			}
		}
	})
}
