package toolcall

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/models/template"
)

func TestATemplateThatCannotTellIsNotGuessedAt(t *testing.T) {
	const before, after = "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\n' + (m.content or '') -}}{%- for c in m.tool_calls or [] -%}{%- set f = c.function -%}", "{%- endfor -%}{{- '<|im_end|>' -}}{%- endfor -%}"
	for call, want := range map[string]string{
		`{{- '<call to=' + f.name + '><' + f.name + '>' + (f.arguments | tojson) + '</call>' -}}`:                                  "the name stands more than once",
		`{{- '<call>' + f.name -}}{%- for k, v in f.arguments | items -%}{{- '<' + k + '>' + v + '</' + k + '>' -}}{%- endfor -%}`: "form of arguments",
		`{{- '<call>' + f.name + ' with ' + (f.arguments | length | string) -}}`:                                                   "arguments",
		`{{- '<call ' + c.id + f.name + (f.arguments | tojson) + '</call>' -}}`:                                                    "nothing begins a call",
		`{{- '<call\n{"name": "' + f.name + '", "arguments": ' + (f.arguments | tojson) + '}\n</call>' -}}`:                        "not read as two",
		"\b" + `{{- '{"name": "' + f.name + '", "parameters": ' + (f.arguments | tojson) + '}' -}}`:                                "not read as two",
		`{{- '<|im_end|><|im_start|>caller\n' + f.name + (f.arguments | tojson) -}}`:                                               "a turn ends",
	} {
		tmpl, err := template.Parse(before + call + after)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := Of(tmpl); f != Hermes || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %s, %v, want %q", call, f.Name, err, want)
		}
	}
}

func TestANameThatIsAskedForStandsAsTheTemplateWritesIt(t *testing.T) {
	for f, want := range map[*Format]string{
		Recipients: "to=now<|message|><x:calls>\n<x:invoke name=\"now\">\n<x:parameter name=\"a\">x</x:parameter>\n</x:invoke>\n</x:calls>",
		GLM:        "<tool_call>now\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
		Keyed:      `<|tools_prefix|>[{"now": {"a":"x"}}]<|tools_suffix|>`,
		Numbered:   "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"now\", \"parameters\": {\"a\":\"x\"}}\n]<|END_ACTION|>",
		Python:     `<|tool_call_start|>[now(a="x")]<|tool_call_end|>`,
		Kimi:       `<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{"a":"x"}<|tool_call_end|><|tool_calls_section_end|>`,
		Granite:    `<|tool_call|>[{"name": "now", "arguments": {"a":"x"}}]`,
	} {
		if got := f.Write("now", `{"a":"x"}`); got != want {
			t.Errorf("%s: %q, want %q", f.Name, got, want)
		}
	}
}

func FuzzATemplateGivesAFormThatReadsAnything(f *testing.F) {
	paths, _ := filepath.Glob(filepath.Join("testdata", "*.jinja"))
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(source), "I look.<tool_call>\n{\"name\": \"now\", \"arguments\": {}}", 9)
	}
	f.Fuzz(func(t *testing.T, source, message string, at int) {
		tmpl, err := template.Parse(source)
		if err != nil || len(message) > 1<<12 {
			return
		}
		format, _ := Of(tmpl)
		at = max(0, min(at, len(message)))
		whole := read(t, format, message)
		if parts := read(t, format, message[:at], message[at:]); parts != whole {
			t.Errorf("%q divided at %d:\n%s\nwhole:\n%s", message, at, parts, whole)
		}
		if call := format.Write("now", `{"a": "x"}`); utf8.ValidString(source) && !utf8.ValidString(call) {
			t.Errorf("a call is written as %q", call)
		}
		_, _ = format.Grammar(budget.Default(), tools, CallConstraint{}) // an error at most
	})
}
