package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// Requests as Claude Code 2.1 sends them: the fields and blocks are its own, the words are not.

// claudeCode returns a turn of a conversation. stamp is what the line before its system prompt
// says, rest the messages behind the first.
func claudeCode(stamp, rest string) string {
	return `{"model":"toy","metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"s\"}"},"max_tokens":32000,"stream":true,
	 "thinking":{"type":"adaptive","display":"updates"},"output_config":{"effort":"high"},
	 "safeguards":[{"type":"dangerous_tool_use","classifier_context":{"v":1}}],
	 "context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
	 "system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.` + stamp + `; cc_entrypoint=cli; cch=` + stamp + `;"},
	  {"type":"text","text":"You are a program that writes programs.","cache_control":{"type":"ephemeral"}},
	  {"type":"text","text":"` + strings.Repeat("Do as the user says. ", 40) + `","cache_control":{"type":"ephemeral","ttl":"1h"}}],
	 "tools":[{"name":"get_weather","description":"Of a city.","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false},"eager_input_streaming":true},
	  {"name":"Placeholder","description":"Do not call it.","input_schema":{"type":"object","properties":{}},"defer_loading":true,"cache_control":{"type":"ephemeral"}}],
	 "messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nSign what you write.\n</system-reminder>"},{"type":"text","text":"How is the weather?"}]},
	  {"role":"system","content":[{"type":"text","text":"# Environment\nLinux","cache_control":{"type":"ephemeral"}}]}` + rest + `]}`
}

// claudeTitle asks for a conversation's title.
func claudeTitle(length int) string {
	return `{"model":"toy","metadata":{"user_id":"u"},"max_tokens":1,"stream":true,
	 "output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"],"additionalProperties":false}}},
	 "system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.330.593; cc_entrypoint=cli;"},{"type":"text","text":"` + strings.Repeat("You name conversations. ", length) + `"}],
	 "messages":[{"role":"user","content":[{"type":"text","text":"<session>\nHow is the weather?\n</session>"}]}]}`
}

func TestWhatClaudeCodeSendsIsAnswered(t *testing.T) {
	f := start(t, says(t, "I look. "+toolcall.Hermes.Write("get_weather", inBerlin)), func(o *Options) {
		o.Strict, o.APIKeys = true, []string{"a-secret-of-some-length"}
	})
	f.withTemplate(template.ChatML)
	post := func(path, body string) []byte {
		t.Helper()
		status, _, answer := f.do("POST", path+"?beta=true", strings.NewReader(body), "Authorization", "Bearer a-secret-of-some-length",
			"Anthropic-Version", "2023-06-01", "Anthropic-Beta", "claude-code-20250219,context-management-2025-06-27", "X-App", "cli")
		if status != http.StatusOK {
			t.Fatalf("%s of %s: %d %s", path, body, status, answer)
		}
		return answer
	}
	stream := post("/v1/messages", claudeCode("a1", ""))
	first := claudeStream(t, stream)
	if got := first.said(); got != `text "I look." get_weather {"city":"Berlin"} tool_use` {
		t.Errorf("the first turn: %s", got)
	}
	if !strings.Contains(string(stream), `"context_management":{"applied_edits":[]}`) {
		t.Errorf("the stream does not say which edits were applied: %s", stream)
	}
	said := fmt.Sprintf(`,{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":""},{"type":"redacted_thinking","data":"AA=="},{"type":"tool_use","id":%q,"name":"get_weather","input":{"city":"Berlin"},"caller":{"type":"direct"}}]},
	 {"role":"user","content":[{"tool_use_id":%[1]q,"type":"tool_result","content":"Rain","is_error":false,"cache_control":{"type":"ephemeral"}}]}`, first.Content[1].ID)
	claudeStream(t, post("/v1/messages", claudeCode("b2", said)))
	claudeStream(t, post("/v1/messages", claudeTitle(1)))
	claudeStream(t, post("/v1/messages", claudeCode("b2", said+`,{"role":"user","content":[{"type":"text","text":"Answer in text alone: what has happened so far?"}]}`)))
	for _, body := range []string{
		`{"model":"toy","messages":[{"role":"user","content":"foo"}],"tools":[{"name":"f","description":"x","input_schema":{"type":"object"}}]}`,
		`{"model":"toy","messages":[{"role":"user","content":"foo"}],"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"thinking":{"type":"enabled","budget_tokens":1024}}`,
	} {
		var got struct {
			Input   int `json:"input_tokens"`
			Context *struct {
				Original int `json:"original_input_tokens"`
			} `json:"context_management"`
		}
		answer := post("/v1/messages/count_tokens", body)
		if err := json.Unmarshal(answer, &got); err != nil || got.Input == 0 || (got.Context != nil) != strings.Contains(body, "context_management") || got.Context != nil && got.Context.Original != got.Input {
			t.Errorf("count_tokens of %s: %s", body, answer)
		}
	}
	for _, path := range []string{"/api/hello", "/"} {
		if status, _, _ := f.do("HEAD", path, nil); status != http.StatusOK {
			t.Errorf("HEAD %s: %d", path, status)
		}
	}
}

// blockLen is the tokens of a block of the fixture's cache.
const blockLen = 16

func TestALineThatChangesWithEveryRequestLeavesThePrefixInTheCache(t *testing.T) {
	f := start(t, says(t, "Hi."), nil)
	f.withTemplate(template.ChatML)
	usage := func(body string) claudeUsage {
		t.Helper()
		_, _, answer := f.post("/v1/messages", body)
		return claudeStream(t, answer).Usage
	}
	first := usage(claudeCode("a1", ""))
	if first.CacheRead != 0 || first.Input < 10*blockLen {
		t.Fatalf("the first request: %+v", first)
	}
	if second := usage(claudeCode("b2", "")); second.Input+second.CacheRead != first.Input || second.Input > blockLen {
		t.Errorf("another line: %+v, want all but the last block of %d tokens from the cache", second, first.Input)
	}
	// A title in between, and then the next turn.
	usage(claudeTitle(10))
	const next = `,{"role":"assistant","content":[{"type":"text","text":"Hi."}]},{"role":"user","content":"Go on."}`
	third := usage(claudeCode("c3", next))
	if third.CacheRead < first.Input-blockLen {
		t.Errorf("behind a title: %+v, want the %d tokens of the former prompt from the cache", third, first.Input)
	}
	// A tool that was found stands among the others, but the model reads of it where it was.
	const found = next + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"get_weather","input":{}}]},
	 {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"fetch"}]},{"type":"text","text":"Loaded."}]}`
	body := strings.Replace(claudeCode("d4", found), `"tools":[`, `"tools":[{"name":"fetch","description":"Of a page.","input_schema":{"type":"object"},"defer_loading":true},`, 1)
	if fourth := usage(body); fourth.CacheRead < third.Input+third.CacheRead-blockLen {
		t.Errorf("with a tool that was found: %+v, want the %d tokens of the former prompt from the cache", fourth, third.Input+third.CacheRead)
	}
}

func TestATitleTakesWhatIsOldestFromAFullCache(t *testing.T) {
	f := start(t, says(t, "Hi."), nil)
	f.withTemplate(template.ChatML)
	usage := func(body string) claudeUsage {
		t.Helper()
		_, _, answer := f.post("/v1/messages", body)
		return claudeStream(t, answer).Usage
	}
	// Old conversations fill the cache.
	for i := range 10 {
		usage(strings.Replace(claudeCode("a1", ""), "You are", fmt.Sprintf("Number %d. You are %s", i, strings.Repeat("truly ", 900)), 1))
	}
	first := usage(claudeCode("a1", ""))
	if st := f.engine.Stats(); int(st.PromptTokens) < 2*st.Blocks*blockLen {
		t.Fatalf("the cache is not full: %+v", st)
	}
	usage(claudeTitle(30))
	if second := usage(claudeCode("b2", "")); second.Input > blockLen {
		t.Errorf("behind a title: %+v, want all but the last block of %d tokens from the cache", second, first.Input)
	}
}
