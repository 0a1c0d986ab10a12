package anthropic

import (
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts"
)

// plain shows a conversation with nothing around it but roles.
const plain = `{% for t in tools or [] %}({{ t.function.name }}){% endfor %}{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}~{{ m.reasoning_content }}~{% endif %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}{% endfor %}`

// alternating refuses what many templates refuse: a system message that is not the first,
// and a role that speaks twice.
const alternating = `{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('a late system message') }}{% endif %}{% if not loop.first and m.role == messages[loop.index0 - 1].role %}{{ raise_exception('twice') }}{% endif %}[{{ m.role }}]{{ m.content or '' }}{% endfor %}`

// model reads conversations by a template.
func model(t testing.TB, source string) *tts.Model {
	t.Helper()
	file, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(file.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := template.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return tts.NewModel(&models.Bundle{Name: "toy", Model: &toy.Model{}, Tokenizer: tok, Template: tmpl}, nil)
}

// read gives what the model reads of a request, and the names of the tools that it may call.
func read(t *testing.T, m *tts.Model, body string) (text string, callable []string, err error) {
	t.Helper()
	parsed, err := jsonread.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	f := parsed
	var req tts.Request
	tools, _ := readPrompt(f, &req, m)
	if f.Err != nil {
		return "", nil, f.Err
	}
	for _, tool := range tools {
		if tool.callable {
			callable = append(callable, tool.name)
		}
	}
	text, err = m.Render(t.Context(), &req.Prompt)
	return text, callable, err
}

func TestMessagesBecomeTheConversationThatTheTemplateShows(t *testing.T) {
	const tools = `"tools":[{"name":"look","input_schema":{"type":"object"}},{"name":"send","description":"Sends <a> letter.","input_schema":{"type":"object"},"defer_loading":true}],`
	const shown = `<function>{"name":"send","description":"Sends <a> letter.","parameters":{"type":"object"}}</function>`
	const looked = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look","input":{}}]}`
	for _, c := range []struct{ name, source, body, want, callable string }{
		{"Claude Code's first line", plain, `{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=2;"},{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind."}],"messages":[{"role":"user","content":"Hi"}]}`,
			"[system]Be brief.\n\nBe kind.[user]Hi", ""},
		{"that line in a string", plain, `{"system":"x-anthropic-billing-header: cc_version=1; cch=2;\nBe brief.","messages":[{"role":"user","content":"Hi"}]}`,
			"[system]Be brief.[user]Hi", ""},
		{"that line alone", plain, `{"system":"x-anthropic-billing-header: cch=2;","messages":[{"role":"user","content":"Hi"}]}`, "[user]Hi", ""},
		{"a user who quotes that line", plain, `{"messages":[{"role":"user","content":"x-anthropic-billing-header: cch=2;"}]}`, "[user]x-anthropic-billing-header: cch=2;", ""},
		{"roles that speak twice", alternating, `{"messages":[{"role":"user","content":"One"},{"role":"user","content":[{"type":"text","text":"two"}]},{"role":"assistant","content":"Three"},{"role":"assistant","content":"four"},{"role":"user","content":"Five"}]}`,
			"[user]One\n\ntwo[assistant]Three\n\nfour[user]Five", ""},
		{"a system message among the others", plain, `{"system":"A","messages":[{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"text","text":"B"}]},{"role":"assistant","content":"Yes?"},{"role":"user","content":"Go on"}]}`,
			"[system]A[user]Hi[system]B[assistant]Yes?[user]Go on", ""},
		{"where templates refuse those", alternating, `{"system":"A","messages":[{"role":"user","content":"Hi"},{"role":"system","content":"B"},{"role":"assistant","content":"Yes?"},{"role":"user","content":"Go on"}]}`,
			"[system]A[user]Hi\n\n<system>\nB\n</system>[assistant]Yes?[user]Go on", ""},
		{"thoughts that cannot be read", plain, `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"redacted_thinking","data":"AAAA"},{"type":"thinking","thinking":"Hm.","signature":"s"},{"type":"text","text":"Yes?"}]},{"role":"user","content":"Go on"}]}`,
			"[user]Hi[assistant]~Hm.~Yes?[user]Go on", ""},
		{"calls in messages of their own", plain, `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"I look."},` + looked + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"7","is_error":false}]}]}`,
			"[user]Hi[assistant]I look.<look {}>[tool]7", ""},
		{"a tool that waits", plain, `{` + tools + `"messages":[{"role":"user","content":"Hi"}]}`, "(look)[user]Hi", "look"},
		{"a tool that was found", plain, `{` + tools + `"messages":[{"role":"user","content":"Hi"},` + looked + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"send"}]}]}]}`,
			"(look)[user]Hi[assistant]<look {}>[tool]<functions>\n" + shown + "\n</functions>", "look send"},
		{"a tool that comes", plain, `{` + tools + `"messages":[{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"text","text":"News:"},{"type":"tool_addition","tool":{"type":"tool_reference","name":"send"}}]}]}`,
			"(look)[user]Hi[system]News:\n\nFrom here on these can be called too:\n<functions>\n" + shown + "\n</functions>", "look send"},
		{"a tool that is new", plain, `{` + tools + `"messages":[{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"new","input_schema":{"type":"object"}}}}]}]}`,
			"(look)[user]Hi[system]From here on these can be called too:\n<functions>\n<function>{\"name\":\"new\",\"parameters\":{\"type\":\"object\"}}</function>\n</functions>", "look new"},
		{"a tool that goes", plain, `{` + tools + `"messages":[{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"look"}}]}]}`,
			"(look)[user]Hi[system]From here on look cannot be called any more.", ""},
	} {
		text, callable, err := read(t, model(t, c.source), c.body)
		if err != nil || text != c.want || strings.Join(callable, " ") != c.callable {
			t.Errorf("%s: the model reads %q and may call %v, %v; want %q and %s", c.name, text, callable, err, c.want, c.callable)
		}
	}
}

func TestAMessageThatCannotBeReadNamesItsField(t *testing.T) {
	m := model(t, plain)
	const asked = `{"role":"user","content":"Hi"}`
	for body, param := range map[string]string{
		`{"messages":[{"role":"king","content":"Hi"}]}`:                                                                                                   "messages[0].role",
		`{"messages":[{"role":"user"}]}`:                                                                                                                  "messages[0].content",
		`{"messages":[{"role":"user","content":7}]}`:                                                                                                      "messages[0].content",
		`{"messages":[{"role":"user","content":[{"type":"redacted_thinking","data":"A"}]}]}`:                                                              "messages[0].content[0].type",
		`{"messages":[` + asked + `,{"role":"system","content":[{"type":"image"}]}]}`:                                                                     "messages[1].content[0].type",
		`{"messages":[` + asked + `,{"role":"system","content":[{"type":"tool_addition"}]}]}`:                                                             "messages[1].content[0].tool",
		`{"messages":[` + asked + `,{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}}]}]}`:                 "messages[1].content[0].tool.name",
		`{"messages":[` + asked + `,{"role":"system","content":[{"type":"tool_removal","tool":{"type":"mcp_toolset_reference"}}]}]}`:                      "messages[1].content[0].tool.type",
		`{"messages":[` + asked + `,{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"f"}}}]}]}`: "messages[1].content[0].tool.definition.input_schema",
		`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"tool_reference","tool_name":"f"}]}]}]}`:       "messages[0].content[0].content[0].tool_name",
		`{"messages":[` + asked + `],"tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{},"defer_loading":true}]}`:                       "tools[1]",
		`{"messages":[` + asked + `],"context_management":{"edits":[{"type":"compact_20260112"}]}}`:                                                       "context_management.edits[0].type",
		`{"messages":[` + asked + `],"context_management":{"edits":[{"type":"clear_tool_uses_20250919","keep":{"type":"all"}}]}}`:                         "context_management.edits[0].keep.type",
		`{"messages":[` + asked + `],"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses"}}]}}`:                "context_management.edits[0].trigger.value",
		`{"messages":[` + asked + `],"context_management":{"edits":[{"type":"clear_tool_uses_20250919","clear_tool_inputs":"x"}]}}`:                       "context_management.edits[0].clear_tool_inputs",
		`{"messages":[` + asked + `],"context_management":{"edits":[{"type":"clear_tool_uses_20250919","exclude_tools":[7]}]}}`:                           "context_management.edits[0].exclude_tools[0]",
		`{"messages":[` + asked + `],"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"some"}]}}`:                                  "context_management.edits[0].keep",
		`{"messages":[` + asked + `],"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":0}}]}}`:     "context_management.edits[0].keep.value",
	} {
		_, _, err := read(t, m, body)
		var fault *jsonread.Error
		if e, ok := err.(*jsonread.Error); ok {
			fault = e
		}
		if fault == nil || fault.Param != param {
			t.Errorf("%s: %v, want an error about %s", body, err, param)
		}
	}
}

// longTalk has two turns with thoughts, and three uses of tools.
const longTalk = `"messages":[{"role":"user","content":"Hi"},
 {"role":"assistant","content":[{"type":"thinking","thinking":"T1"},{"type":"tool_use","id":"a","name":"look","input":{"at":"one"}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"R1 and the rest of what was found, line for line, at length"}]},
 {"role":"assistant","content":[{"type":"thinking","thinking":"T2"},{"type":"tool_use","id":"b","name":"note","input":{"at":"two"}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"R2 and the rest of what was found, line for line, at length"},{"type":"text","text":"and"}]},
 {"role":"assistant","content":"Fine."},
 {"role":"user","content":"More"},
 {"role":"assistant","content":[{"type":"thinking","thinking":"T3"},{"type":"tool_use","id":"c","name":"look","input":{"at":"three"}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"R3 and the rest of what was found, line for line, at length"}]}]`

func TestContextIsEditedAsTheRequestAsks(t *testing.T) {
	m := model(t, plain)
	const rest = " and the rest of what was found, line for line, at length"
	const whole = `[user]Hi[assistant]~T1~<look {"at": "one"}>[tool]R1` + rest + `[assistant]~T2~<note {"at": "two"}>[tool]R2` + rest + `[user]and[assistant]Fine.[user]More[assistant]~T3~<look {"at": "three"}>[tool]R3` + rest
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(whole) }
	for _, c := range []struct{ name, edits, want, applied string }{
		{"none", ``, whole, ""},
		{"what Claude Code sends", `{"type":"clear_thinking_20251015","keep":"all"}`, whole, ""},
		{"all, as an object", `{"type":"clear_thinking_20251015","keep":{"type":"all"}}`, whole, ""},
		{"old thoughts", `{"type":"clear_thinking_20251015"}`, change("~T1~", "", "~T2~", ""), "thinking 1"},
		{"thoughts of two turns", `{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":2}}`, whole, ""},
		{"below the usual trigger", `{"type":"clear_tool_uses_20250919","keep":{"type":"tool_uses","value":0}}`, whole, ""},
		{"old results", `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":2},"keep":{"type":"tool_uses","value":1}}`, change("R1"+rest, cleared, "R2"+rest, cleared), "tools 2"},
		{"not so many uses", `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":3},"keep":{"type":"tool_uses","value":1}}`, whole, ""},
		{"by tokens", `{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":10},"keep":{"type":"tool_uses","value":2}}`, change("R1"+rest, cleared), "tools 1"},
		{"but for a tool", `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":2},"keep":{"type":"tool_uses","value":0},"exclude_tools":["look"]}`, change("R2"+rest, cleared), "tools 1"},
		{"calls too", `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":2},"keep":{"type":"tool_uses","value":1},"clear_tool_inputs":true}`, change("R1"+rest, cleared, "R2"+rest, cleared, `{"at": "one"}`, "{}", `{"at": "two"}`, "{}"), "tools 2"},
		{"calls of a tool", `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":2},"keep":{"type":"tool_uses","value":1},"clear_tool_inputs":["note"]}`, change("R1"+rest, cleared, "R2"+rest, cleared, `{"at": "two"}`, "{}"), "tools 2"},
		{"too little to be worth it", `{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":2},"keep":{"type":"tool_uses","value":1},"clear_at_least":{"type":"input_tokens","value":1000}}`, whole, ""},
		{"both", `{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":2},"keep":{"type":"tool_uses","value":2}}`, change("~T1~", "", "~T2~", "", "R1"+rest, cleared), "thinking 1 tools 1"},
	} {
		parsed, err := jsonread.Parse([]byte(`{"context_management":{"edits":[` + c.edits + `]},` + longTalk + `}`))
		if err != nil {
			t.Fatal(err)
		}
		f := parsed
		var req tts.Request
		_, edits := readPrompt(f, &req, m)
		before := req.Prompt
		count := func(p *tts.Prompt) (int, error) {
			text, err := m.Render(t.Context(), p)
			return len(text), err
		}
		applied, err := edits.apply(&req.Prompt, count)
		if err != nil || f.Err != nil {
			t.Fatalf("%s: %v, %v", c.name, err, f.Err)
		}
		if text, _ := m.Render(t.Context(), &req.Prompt); text != c.want {
			t.Errorf("%s: the model reads\n%s\nwant\n%s", c.name, text, c.want)
		}
		if text, _ := m.Render(t.Context(), &before); text != whole {
			t.Errorf("%s: the former prompt has changed to %s", c.name, text)
		}
		var kinds []string
		saved := 0
		for _, a := range applied.List {
			done := a.(made)
			saved += done.Tokens
			if done.Type == clearToolUses {
				kinds = append(kinds, "tools", string(rune('0'+done.Uses)))
			} else {
				kinds = append(kinds, "thinking", string(rune('0'+done.Turns)))
			}
		}
		if got := strings.Join(kinds, " "); got != c.applied {
			t.Errorf("%s: applied %s, want %s", c.name, got, c.applied)
		}
		if len(kinds) > 0 && (applied.Original != len(whole) || saved != len(whole)-len(c.want)) {
			t.Errorf("%s: of %d characters %d were saved, want %d of %d", c.name, applied.Original, saved, len(whole)-len(c.want), len(whole))
		}
	}
}

func TestAResultShorterThanWhatWouldStandThereStays(t *testing.T) {
	m := model(t, plain)
	parsed, err := jsonread.Parse([]byte(`{"context_management":{"edits":[{"type":"clear_tool_uses_20250919","trigger":{"type":"tool_uses","value":0},"keep":{"type":"tool_uses","value":0}}]},
		"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"7"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var req tts.Request
	_, edits := readPrompt(parsed, &req, m)
	applied, err := edits.apply(&req.Prompt, func(p *tts.Prompt) (int, error) {
		text, err := m.Render(t.Context(), p)
		return len(text), err
	})
	if err != nil || len(applied.List) != 0 || req.Prompt.Messages[2].Content != "7" {
		t.Errorf("%v, %v: %v", applied, err, req.Prompt.Messages)
	}
}

func TestADefinitionIsWrittenOnceHoweverOftenItIsReferredTo(t *testing.T) {
	const size = 100_000
	const reference = `{"type":"tool_reference","tool_name":"big"}`
	references := reference + strings.Repeat(","+reference, maxBlocks-1)
	var results strings.Builder
	for i := range 8 {
		id := string(rune('a' + i))
		results.WriteString(`,{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":[` + references + `]}]}`)
	}
	text, callable, err := read(t, model(t, plain), `{"tools":[{"name":"look","input_schema":{"type":"object"}},{"name":"big","description":"`+strings.Repeat("x", size)+`","input_schema":{"type":"object"},"defer_loading":true}],
		"messages":[{"role":"user","content":"Hi"}`+results.String()+`]}`)
	if err != nil || len(callable) != 2 || len(text) > 2*size || strings.Count(text, `<function>{"name":"big"}</function>`) != 8*maxBlocks-1 {
		t.Errorf("%v, %v, a prompt of %d bytes", err, callable, len(text))
	}
}

func TestManyMessagesOfARoleAreOne(t *testing.T) {
	for _, role := range []string{"user", "assistant"} {
		message := `{"role":"` + role + `","content":"x"}`
		text, _, err := read(t, model(t, plain), `{"messages":[`+message+strings.Repeat(","+message, maxMessages-1)+`]}`)
		if want := "[" + role + "]x" + strings.Repeat("\n\nx", maxMessages-1); err != nil || text != want {
			t.Errorf("%v: %d bytes, want %d", err, len(text), len(want))
		}
	}
}
