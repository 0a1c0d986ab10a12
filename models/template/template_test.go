package template

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/models/template/jinja"
)

func mustParse(t *testing.T, src string) *Template {
	t.Helper()
	tmpl, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

func mustRender(t *testing.T, src string, in Input) string {
	t.Helper()
	text, err := mustParse(t, src).Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestChatMLIsTheFallback(t *testing.T) {
	got := mustRender(t, ChatML, Input{
		Messages:            []Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "hi"}, {Role: "assistant"}},
		AddGenerationPrompt: true,
	})
	want := "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\n"
	if got != want {
		t.Errorf("Render = %q, want %q", got, want)
	}
}

func TestMessagesKeepTheOrderOfTheirKeys(t *testing.T) {
	var messages []Message
	err := json.Unmarshal([]byte(`[{"role":"user","content":[{"type":"text","text":"a","extra":{"z":1,"a":2}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{\"z\":1,\"a\":2.0}"}}],"reasoning_content":"hm"},
		{"role":"tool","content":"4","name":"f","tool_call_id":"1"}]`), &messages)
	if err != nil {
		t.Fatal(err)
	}
	src := "{% for m in messages %}{{ m | tojson }}\n{% endfor %}."
	want := `{"role": "user", "content": [{"type": "text", "text": "a", "extra": {"z": 1, "a": 2}}]}` + "\n" +
		`{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{\"z\":1,\"a\":2.0}"}}], "reasoning_content": "hm"}` + "\n" +
		`{"role": "tool", "content": "4", "name": "f", "tool_call_id": "1"}` + "\n."
	if got := mustRender(t, src, Input{Messages: messages}); got != want {
		t.Errorf("Render = %s, want %s", got, want)
	}
	parsed := strings.Replace(want, `"{\"z\":1,\"a\":2.0}"`, `{"z": 1, "a": 2.0}`, 1)
	if got := mustRender(t, src, Input{Messages: messages, Adapt: true}); got != parsed {
		t.Errorf("Render with parsed arguments = %s, want %s", got, parsed)
	}
}

func TestTemplatesSayWhetherTheyWantArgumentsAsObjects(t *testing.T) {
	const each = `{% for m in messages %}{% for c in m.tool_calls or [] %}`
	const end = `{% endfor %}{% endfor %}`
	for src, want := range map[string]bool{
		each + `{{ c.function.arguments | tojson }}` + end:                               true,
		each + `{% for k, v in c.function.arguments.items() %}{{ k }}{% endfor %}` + end: true,
		each + `{{ '<' + c.function.arguments + '>' }}` + end:                            false,
		ChatML: false,
	} {
		if got := mustParse(t, src).ObjectArguments(); got != want {
			t.Errorf("ObjectArguments of %q = %v, want %v", src, got, want)
		}
	}
}

func TestTheTemplatesOwnRefusalHasItsOwnError(t *testing.T) {
	_, err := mustParse(t, `{{ raise_exception('roles must alternate') }}`).Render(t.Context(), Input{})
	var raised *RaisedError
	if !errors.As(err, &raised) || raised.Message != "roles must alternate" {
		t.Errorf("Render = %v, want the template's message", err)
	}
	_, err = mustParse(t, `{{ strftime_now('%c' * 30000) }}`).Render(t.Context(), Input{Limits: jinja.Limits{Steps: 1000, Bytes: 1 << 20, Depth: 100}})
	if !errors.Is(err, jinja.ErrLimit) {
		t.Errorf("Render of a long date = %v, want %v", err, jinja.ErrLimit)
	}
	_, err = mustParse(t, `{{ 'a' * 10**12 }}`).Render(t.Context(), Input{})
	if !errors.Is(err, jinja.ErrLimit) {
		t.Errorf("Render = %v, want %v", err, jinja.ErrLimit)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = mustParse(t, `{% for i in range(9999) %}{{ i }}{% endfor %}`).Render(ctx, Input{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Render = %v, want %v", err, context.Canceled)
	}
}

func TestVariablesOfTheCallerReachTheTemplate(t *testing.T) {
	got := mustRender(t, `{{ enable_thinking }}{{ add_generation_prompt }}{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ o.b }}`, Input{
		BOS: "<s>", EOS: "</s>",
		Extra: map[string]any{"enable_thinking": false, "add_generation_prompt": true, "o": map[string]int{"b": 3}},
	})
	if want := "FalseFalse<s></s>True3"; got != want {
		t.Errorf("Render = %q, want %q", got, want)
	}
	_, err := mustParse(t, ChatML).Render(t.Context(), Input{Extra: map[string]any{"f": func() {}}})
	if err == nil {
		t.Error("a variable that JSON cannot hold was taken")
	}
}

func TestDatesAreWrittenAsStrftimeDoes(t *testing.T) {
	now := time.Date(2026, 8, 3, 9, 5, 7, 123456000, time.UTC)
	for format, want := range map[string]string{
		"%d %b %Y": "03 Aug 2026", "%Y-%m-%d": "2026-08-03", "%-d %B %y": "3 August 26", "%A, %a %H:%M:%S": "Monday, Mon 09:05:07",
		"%I:%M %p": "09:05 AM", "%j": "215", "100%%": "100%", "%-H%f": "9123456", "": "", "%F %T %Z": "2026-08-03 09:05:07 UTC",
	} {
		if got, err := strftime(now, format); err != nil || got != want {
			t.Errorf("strftime(%q) = %q, %v, want %q", format, got, err, want)
		}
	}
	for _, format := range []string{"%", "%-", "%Q"} {
		if got, err := strftime(now, format); err == nil {
			t.Errorf("strftime(%q) = %q, want an error", format, got)
		}
	}
}

func TestATemplateMayBeRenderedByManyAtOnce(t *testing.T) {
	tmpl := mustParse(t, `{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% set _ = messages.append(1) if ns.n == 1 %}{% endfor %}{{ ns.n }}{{ messages | length }}`)
	messages := []Message{{Role: "user", Content: "a"}, {Role: "user", Content: "b"}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				got, err := tmpl.Render(t.Context(), Input{Messages: messages})
				if err != nil || got != "23" {
					t.Errorf("Render = %q, %v, want 23", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestATemplateShowsSystemMessagesInTheirPlaceOrIsKnownNotTo(t *testing.T) {
	for source, want := range map[string]bool{
		ChatML: true,
		Plain:  true,
		`{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}{{ m.content }}{% endfor %}`:                                         false,
		`{% for m in messages %}{% if m.role != 'system' or loop.first %}{{ m.content }}{% endif %}{% endfor %}`:                                                                           false,
		`{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% endif %}{% endfor %}{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}{% endif %}{% endfor %}`: false,
		`{% for m in messages %}{% if m.role == 'system' and loop.last %}{{ raise_exception('last') }}{% endif %}{{ m.content }}{% endfor %}`:                                              false,
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := tmpl.ReadsLaterSystem(); got != want {
			t.Errorf("%s: %t, want %t", source, got, want)
		}
	}
}

func TestSeveralBadVariablesAreAlwaysRefusedForTheSameOne(t *testing.T) {
	tmpl, err := Parse(ChatML)
	if err != nil {
		t.Fatal(err)
	}
	bad := make(chan int) // which JSON does not know
	for range 30 {
		if _, err := tmpl.Render(t.Context(), Input{Extra: map[string]any{"c": bad, "a": bad, "b": bad}}); err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Fatalf("Render = %v, want an error about a", err)
		}
	}
}

func FuzzConversationsRender(f *testing.F) {
	f.Add("user", "hello", `[{"function":{"name":"f","arguments":{"a":1}}}]`)
	f.Add("", "\xff<|im_end|>", `{`)
	tmpl, err := Parse(ChatML)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, role, content, calls string) {
		in := Input{Messages: []Message{{Role: role, Content: content}}, Adapt: true}
		if calls != "" {
			in.Messages[0].ToolCalls = json.RawMessage(calls)
		}
		text, err := tmpl.Render(t.Context(), in)
		if err == nil && !strings.Contains(text, content) {
			t.Errorf("Render = %q without the content %q", text, content)
		}
	})
}
