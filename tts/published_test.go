package tts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	grammarbudget "github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/text"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// unclear are published templates whose calls no form covers, and why.
var unclear = map[string]string{
	"MiniMax-M3":                        "elements within elements, named by their keys",
	"vllm-tool_chat_template_phi4_mini": "arguments are no JSON: quotes are those of Python",
	"xinference-deepseek_v3":            "arguments are no JSON: quotes are those of Python",
	"xinference-MiniMax_M3":             "elements within elements",
	"xinference-qwen1_5_moe_chat":       "a quote is missing behind the name",
	"xinference-qwen2_instruct":         "a quote is missing behind the name",
	"xinference-qwen2_moe_instruct":     "a quote is missing behind the name",
	"xinference-qwen1_5_chat":           "a quote is missing behind the name",
}

// templatesIn returns templates by name: our own, and the ones in the folders that LUTRA_TEMPLATES and LUTRA_GOLDEN name.
func templatesIn(t *testing.T) (all map[string]*template.Template, published int) {
	t.Helper()
	all = map[string]*template.Template{}
	read := func(prefix, pattern string) (n int) {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tmpl, err := template.Parse(string(source))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			all[prefix+strings.TrimSuffix(filepath.Base(path), ".jinja")] = tmpl
			n++
		}
		return n
	}
	read("own ", filepath.Join("toolcall", "testdata", "*.jinja"))
	read("own, with thoughts: ", filepath.Join("toolcall", "testdata", "thoughts", "*.jinja"))
	if dir := os.Getenv("LUTRA_GOLDEN"); dir != "" {
		published += read("", filepath.Join(dir, "templates", "*.jinja"))
	}
	dir := os.Getenv("LUTRA_TEMPLATES")
	if dir == "" {
		t.Log("LUTRA_TEMPLATES names no folder of published chat templates (.ci/templates makes one): our own alone")
		return all, published
	}
	return all, published + read("", filepath.Join(dir, "*.jinja"))
}

// probeCalls are the calls of the test.
var probeCalls = []toolcall.Call{
	{Name: template.ProbeTools[0], Arguments: `{"city": "Bad \"Bonn\" am Rhein", "note": "a, b) = {c}"}`},
	{Index: 1, Name: template.ProbeTools[1], Arguments: `{"zone": "UTC"}`},
}

// family is a template with what has been found out of it.
type family struct {
	*testing.T
	template *template.Template
	format   *toolcall.Format
	marks    text.Marks
	tools    []toolcall.Tool
	header   string // what the prompt ends with
	thinks   bool   // within a thought
}

// ends are tokens that end an answer which calls tools, where texts end otherwise.
var ends = []string{"<|close|>message<|sep|>", "<|END_OF_TURN_TOKEN|>", "\n<|START_OF_TURN_TOKEN|>", "<|eom_id|>", "<|tool_response>", "<｜hy_eos:opensource｜>"}

// message returns what a model writes of calls, as the template shows them, or else as the format writes them.
func (f *family) message(calls ...toolcall.Call) string {
	f.Helper()
	var list [2][]json.RawMessage
	written := ""
	for _, c := range calls {
		for i, id := range []string{fmt.Sprintf("aaaaaaaa%d", c.Index), fmt.Sprintf("functions.%s:%d", c.Name, c.Index)} {
			arguments, _ := json.Marshal(c.Arguments)
			list[i] = append(list[i], fmt.Appendf(nil, `{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, id, c.Name, arguments))
		}
		written += f.format.Write(c.Name, c.Arguments)
	}
	turn, err := f.template.Turn(template.Message{Role: "assistant", Content: "", ToolCalls: list[0]})
	if err == nil && !strings.Contains(turn, calls[0].Name) {
		turn, err = f.template.Turn(template.Message{Role: "assistant", Content: "", ToolCalls: list[1]})
	}
	said, err2 := f.template.Turn(template.Message{Role: "assistant", Content: "lutra_says"})
	if err != nil || err2 != nil || !f.template.ReadsCalls() {
		return written
	}
	if strings.Contains(turn, "city=Bad") || strings.Contains(turn, `="Bad "`) { // it does not quote what it writes as Python
		return written
	}
	before, after, _ := strings.Cut(said, "lutra_says")
	n := 0
	for n < min(len(before), len(turn)) && before[n] == turn[n] {
		n++
	}
	if open := strings.LastIndexByte(turn[:n], '<'); open > strings.LastIndexByte(turn[:n], '>') {
		n = open
	}
	if strings.HasPrefix(turn, f.header) {
		n = len(f.header)
	}
	turn = turn[n:]
	if rest, ended := strings.CutPrefix(strings.TrimSpace(turn), f.marks.End); ended && !f.thinks { // of a thought that the prompt has
		turn = rest
	}
	for _, end := range ends {
		turn, _, _ = strings.Cut(turn, end)
	}
	if end := strings.TrimSpace(after); end != "" && strings.HasSuffix(strings.TrimSpace(turn), end) {
		return strings.TrimSuffix(strings.TrimSpace(turn), end)
	}
	return turn
}

// read divides a message, byte by byte, as requests do.
func (f *family) read(message string) (reasoning, said string, calls []toolcall.Call) {
	thought, parser := f.marks.NewThought(f.thinks && strings.Contains(message, f.marks.End), false), f.format.NewParser(f.tools)
	for i := range len(message) + 1 {
		piece, last := "", i == len(message)
		if !last {
			piece = message[i : i+1]
		}
		r, answer := thought.Push(piece, last)
		reasoning += r
		for _, part := range parser.Push(answer, last) {
			reasoning, said = reasoning+part.Reasoning, said+part.Text
			calls = toolcall.Join(calls, part.Call)
		}
	}
	return reasoning, said, calls
}

// is tells whether calls are those that were made.
func is(got, want []toolcall.Call) bool {
	return slices.EqualFunc(got, want, func(a, b toolcall.Call) bool { return a.Canonical() == b.Canonical() })
}

// forced tells whether a grammar of a call that must be takes a message.
func (f *family) forced(message string) bool {
	f.Helper()
	g, err := f.format.Grammar(grammarbudget.Default(), f.tools, toolcall.CallConstraint{Required: true})
	if err != nil {
		f.Fatal(err)
	}
	accepts := func(message string) bool {
		s, n, err := g.Start().Read([]byte(message))
		return err == nil && n == len(message) && s.Accepts()
	}
	message = strings.TrimLeft(message, " \t\r\n")
	return accepts(message) || accepts(strings.TrimRight(message, " \t\r\n"))
}

func TestCallsOfPublishedTemplatesAreReadAndForced(t *testing.T) {
	all, published := templatesIn(t)
	if published > 0 && published < 14 {
		t.Fatalf("%d templates", published)
	}
	passed := map[string]int{} // by case, of published templates that show calls or whose format is listed
	var families []string      // those templates
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			format, why := toolcall.Of(all[name])
			if reason := unclear[name]; reason != "" || why != nil {
				if reason == "" || why == nil {
					t.Fatalf("unclear: %v, want %q", why, reason)
				}
				return
			}
			counts := !strings.HasPrefix(name, "own") && (all[name].ReadsCalls() || format != toolcall.Hermes)
			if counts {
				families = append(families, name)
			}
			check := func(ok bool, what, wrong string, args ...any) {
				t.Helper()
				if !ok {
					t.Errorf(what+": "+wrong, args...)
				} else if counts {
					passed[what]++
				}
			}
			f := &family{T: t, template: all[name], format: format, marks: text.MarksOf(all[name])}
			f.header, _ = all[name].Header()
			f.thinks = f.marks.EndsInThought(f.header)
			for _, c := range probeCalls {
				f.tools = append(f.tools, toolcall.Tool{Name: c.Name, Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"note":{"type":"string"},"zone":{"type":"string"}}}`)})
			}
			one := f.message(probeCalls[0])
			_, said, calls := f.read(one)
			check(is(calls, probeCalls[:1]) && strings.TrimSpace(said) == "", "one call", "%q is read as %q and %v", one, said, calls)
			bare := f.apart(one)
			if format != toolcall.Harmony && !strings.Contains(bare, "='") { // others are written in a second way
				check(f.forced(bare), "forced call", "%q is refused", bare)
			}
			if two := f.message(probeCalls...); format != toolcall.Llama && f.several(two) {
				_, said, calls = f.read(two)
				check(is(calls, probeCalls) && strings.TrimSpace(said) == "", "two calls", "%q is read as %q and %v", two, said, calls)
			}
			none := "Nothing <b> helps: {1, 2} < [3]."
			_, said, calls = f.read(none)
			check(said == none && len(calls) == 0 && !f.forced(none), "no call", "%q is read as %q and %v", none, said, calls)
			thought := "\nI look.\n" + f.marks.End + "\n" + bare
			if !f.thinks {
				thought = f.marks.Begin + thought
			}
			reasoning, said, calls := f.read(thought)
			check(strings.TrimSpace(reasoning) == "I look." && strings.TrimSpace(said) == "" && is(calls, probeCalls[:1]), "thought then call", "%q is read as %q, %q and %v", thought, reasoning, said, calls)
			at := cmp.Or(strings.Index(one, "Rhein"), 1)
			_, said, calls = f.read(one[:at])
			check(len(calls) == 1 && calls[0].Name == probeCalls[0].Name && !json.Valid([]byte(calls[0].Arguments)) && strings.TrimSpace(said) == "", "cut call", "%q is read as %q and %v", one[:at], said, calls)
		})
	}
	if os.Getenv("LUTRA_TEMPLATES") == "" {
		return
	}
	t.Logf("of %d published templates with calls: %v", len(families), passed)
	for _, what := range []string{"one call", "forced call", "two calls", "no call", "thought then call", "cut call"} {
		if passed[what] < 100 {
			t.Errorf("%s: %d templates", what, passed[what])
		}
	}
	for _, part := range wanted {
		if !slices.ContainsFunc(families, func(name string) bool { return strings.Contains(strings.ToLower(name), part) }) {
			t.Errorf("no template of %s is read", part)
		}
	}
}

// wanted are parts of the names of families that are to be read.
var wanted = []string{"apertus", "command_a", "command-r-plus", "command-r7b", "deepseek-v3.1", "deepseek-v3.2", "deepseek-v4", "devstral", "exaone4", "functionary-medium-v3.1", "functionary-medium-v3.2",
	"gemma-4", "gigachat3-", "gigachat3.1", "glm_4_5", "glm-4.6", "glm-4.7", "glm_5", "gpt-oss", "granite-3", "granite-4", "hermes-3", "kimi-k2", "kimi-k3", "kimi_k2_5", "laguna", "lfm2-", "lfm2.5", "ling-3", "llama-3.1", "llama-3.3",
	"minicpm5", "minimax-m1", "minimax-m2", "minimax_m2_7", "ministral-3", "mistral-nemo", "mistral-small", "muse-glimmer", "nemotron-3", "nemotron-nano-v2", "qwen2.5", "qwen3-0.6b", "qwen3-coder", "qwen3.5", "qwen3_6", "qwen3_8", "qwq",
	"reka", "seed-oss", "solar-open", "spark2.5", "stepfun3.5", "tencent-hy3"}

// several tells whether a message holds both calls: some templates write a turn for each.
func (f *family) several(message string) bool {
	one := f.message(probeCalls[0])
	header, _ := f.template.Header()
	turns := strings.Fields(strings.TrimSpace(header))
	return !(len(turns) > 0 && strings.Contains(message[min(len(message), len(one)/2):], turns[len(turns)-1]))
}

// apart returns a message without a thought that stands before it.
func (f *family) apart(message string) string {
	thought := f.marks.NewThought(f.thinks && strings.Contains(message, f.marks.End), false)
	_, answer := thought.Push(message, true)
	if rest, found := strings.CutPrefix(strings.TrimSpace(answer), f.marks.End); found { // of an empty thought whose beginning the prompt has
		answer = rest
	}
	return answer
}
