package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// nested puts a field that belongs into an object there.
func nested(name, value string) string {
	if outer, inner, ok := strings.Cut(name, "."); ok && outer != "speculative" {
		return fmt.Sprintf(`%q:{%q:%s}`, outer, inner, value)
	}
	return fmt.Sprintf(`%q:%s`, name, value)
}

func TestFieldsThatAreNotSupportedAreRefusedByName(t *testing.T) {
	sweep.NoRace(t)
	f := start(t, &toy.Model{}, func(o *Options) { o.Strict = true })
	for path, begin := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1,`,
		"/v1/completions":      `{"prompt":"Hi","max_tokens":1,`,
	} {
		for _, name := range slices.Sorted(maps.Keys(fields.Unsupported)) {
			// Read by an endpoint of their own accord, and tested with it.
			own := []string{"modalities", "tools", "tool_choice", "top_logprobs", "truncation"}
			if path == "/v1/completions" {
				own = []string{"add_special_tokens", "best_of", "return_tokens", "suffix"}
			}
			own = append(own, "grammar", "guided_choice", "guided_grammar", "guided_json", "guided_regex", "json_schema", "response_format", "structured_outputs", "receipt", "prompt_logprobs", "return_token_ids")
			if slices.Contains(own, name) {
				continue
			}
			stream := ""
			if strings.HasPrefix(name, "stream_options.") {
				stream = `"stream":true,`
			}
			for _, value := range []string{`7`, `"x"`, `true`, `{"a":1}`, `[1]`} {
				status, _, answer := f.post(path, begin+stream+nested(name, value)+`}`)
				wantError(t, path+" "+name+"="+value, status, answer, 400, jsonread.CodeUnsupported, name)
			}
			neutral := []string{"null", "false", "[]", "{}", `""`, `"none"`, `"disabled"`}
			for _, v := range []string{"0", "1", "-1", "0.0", "1.0"} {
				var number float64
				if json.Unmarshal([]byte(v), &number) == nil && fields.Unsupported[name](number) {
					neutral = append(neutral, v)
				}
			}
			for _, value := range neutral {
				if name == "web_search_options" && value == "{}" { // a search with OpenAI's defaults
					status, _, answer := f.post(path, begin+nested(name, value)+`}`)
					wantError(t, path+" "+name+"="+value, status, answer, 400, jsonread.CodeUnsupported, name)
					continue
				}
				if status, _, answer := f.post(path, begin+stream+nested(name, value)+`}`); status != http.StatusOK {
					t.Errorf("%s %s=%s: %d %s, want 200", path, name, value, status, answer)
				}
			}
		}
	}
}

func TestHarmlessFieldsAreNoFaultEvenWhereUnknownOnesAre(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.Strict = true })
	for name := range fields.Harmless {
		if strings.HasPrefix(name, "stream_options.") || slices.Contains([]string{"reasoning", "reasoning_effort", "reasoning_format", "enable_thinking", "include_reasoning", "repeat_last_n", "parallel_tool_calls", "reasoning_budget", "reasoning_budget_tokens", "thinking_budget_tokens", "thinking_token_budget"}, name) {
			continue // read by chats
		}
		if fields.Unsupported[name] != nil {
			t.Errorf("%s is both harmless and unsupported", name)
		}
		for _, body := range []string{chatBody(`,"max_tokens":1,` + nested(name, "7")), `{"prompt":"Hi","max_tokens":1,` + nested(name, "7") + `}`} {
			if status, _, answer := f.post(map[bool]string{true: "/v1/completions", false: "/v1/chat/completions"}[strings.Contains(body, `"prompt"`)], body); status != http.StatusOK {
				t.Errorf("%s: %d %s", name, status, answer)
			}
		}
	}
}
