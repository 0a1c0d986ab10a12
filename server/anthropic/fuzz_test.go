package anthropic

import (
	"errors"
	"testing"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// FuzzMessages holds that whatever a client sends is refused as its own mistake, or makes
// a conversation that the template can show, before edits and after.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{
		`{"max_tokens":9,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}},{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":0},"keep":{"type":"tool_uses","value":0},"clear_at_least":{"type":"input_tokens","value":1},"exclude_tools":["note"],"clear_tool_inputs":["look"]}]},` + longTalk + `}`,
		`{"max_tokens":9,"system":[{"type":"text","text":"x-anthropic-billing-header: a"}],"messages":[{"role":"system","content":"a"},{"role":"user","content":[]},{"role":"assistant","content":[{"type":"redacted_thinking","data":7}]}]}`,
		`{"max_tokens":9,"tools":[{"name":"f","input_schema":{},"defer_loading":true}],"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"a"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}},{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}},{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"g","input_schema":{"type":"object"}}}}]}]}`,
		`{"max_tokens":1,"messages":[null],"context_management":{"edits":[null]},"output_config":{"effort":"max","format":{"type":"json_schema","schema":{}}},"thinking":{"type":"adaptive"},"safeguards":[]}`,
	} {
		f.Add([]byte(seed))
	}
	m := model(f, plain)
	f.Fuzz(func(t *testing.T, body []byte) {
		parsed, err := jsonread.Parse(body)
		if err != nil {
			return
		}
		var req tts.Request
		_, edits, _ := readMessage(parsed, &req, m)
		if fault := (*jsonread.Error)(nil); parsed.Err != nil {
			if !errors.As(parsed.Err, &fault) {
				t.Fatalf("%q: %v, want the client's own mistake", body, parsed.Err)
			}
			return
		}
		show := func(p *tts.Prompt) (int, error) {
			text, err := m.Render(t.Context(), p)
			if err != nil && !errors.Is(err, tts.ErrTemplate) {
				t.Fatalf("%q: %v", body, err)
			}
			return len(text), nil
		}
		if _, err := edits.apply(&req.Prompt, show); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		_, _ = show(&req.Prompt)
	})
}
