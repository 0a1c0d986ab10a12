package server

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/reward"
)

// listed returns unit so many times, with commas between.
func listed(unit string, n int) string {
	return strings.TrimSuffix(strings.Repeat(unit+",", n), ",")
}

// numbered returns what format makes of 0 to n-1, with commas between.
func numbered(format string, n int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

// letters returns a JSON string of so many bytes.
func letters(n int) string { return `"` + strings.Repeat("a", n) + `"` }

// bound is a row of the table in docs/api.md, and how to be at it: body makes a
// request that has so many of what it bounds.
type bound struct {
	row, path string
	most      int
	param     string
	body      func(n int) string
}

// bounds returns all bounds except the ones of headers and bodies.
func bounds() []bound {
	const chat, text = "/v1/chat/completions", "/v1/completions"
	field := func(name string, value func(n int) string) func(int) string {
		return func(n int) string { return chatBody(`,"max_tokens":1,"` + name + `":` + value(n)) }
	}
	message := func(fields func(n int) string) func(int) string {
		return func(n int) string {
			return `{"max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b",` + fields(n) + `},{"role":"user","content":"c"}]}`
		}
	}
	call := `{"type":"function","function":{"name":"f","arguments":"{}"}}`
	padded := func(size int) string { // a call or a tool of so many bytes
		const head, tail = `{"type":"function","function":{"name":"f","arguments":"{`, `}"}}`
		return head + strings.Repeat(" ", size-len(head)-len(tail)) + tail
	}
	search := func(value func(n int) string) func(int) string {
		return field(api.ScalingField, func(n int) string { return `{"method":"best_of_n","n":2,"verifier":"logprob",` + value(n) + `}` })
	}
	return []bound{
		{"levels", chat, jsonread.MaxDepth, "", field("chat_template_kwargs", func(n int) string { return `{"a":` + strings.Repeat("[", n-2) + strings.Repeat("]", n-2) + `}` })},
		{"fields of an object", chat, jsonread.MaxFields, "messages[0]", func(n int) string {
			return `{"max_tokens":1,"messages":[{"role":"user","content":"a",` + numbered(`"f%d":1`, n-2) + `}]}`
		}},
		{"a field's name", chat, jsonread.MaxNameLen, "", func(n int) string { return chatBody(`,"max_tokens":1,` + letters(n) + `:1`) }},
		{"a string", chat, jsonread.MaxString, "user", field("user", letters)},
		{"`messages`", chat, fields.MaxMessages, "messages", func(n int) string {
			return `{"max_tokens":1,"messages":[` + listed(`{"role":"user","content":"a"}`, n) + `]}`
		}},
		{"`content`", chat, fields.MaxParts, "messages[0].content", func(n int) string {
			return `{"max_tokens":1,"messages":[{"role":"user","content":[` + listed(`{"type":"text","text":"a"}`, n) + `]}]}`
		}},
		{"`tool_calls`", chat, fields.MaxTools, "messages[1].tool_calls", message(func(n int) string { return `"tool_calls":[` + listed(call, n) + `]` })},
		{"`tool_calls`", chat, fields.MaxFunctions, "messages", message(func(n int) string { return `"tool_calls":[` + padded(n) + `]` })},
		{"`tools`", chat, fields.MaxTools, "tools", field("tools", func(n int) string { return `[` + listed(call, n) + `],"tool_choice":"none"` })},
		{"`tools`", chat, fields.MaxFunctions, "tools", field("tools", func(n int) string { return `[` + padded(n) + `],"tool_choice":"none"` })},
		{"`chat_template_kwargs`", chat, fields.MaxKwargs, "chat_template_kwargs", field("chat_template_kwargs", func(n int) string { return `{"a":` + letters(n-8) + `}` })},
		{"`prompt`", text, 128, "prompt", func(n int) string { return `{"max_tokens":1,"prompt":[` + listed(`"a"`, n) + `]}` }},
		{"`candidates`, `begun`", text, 128, "candidates", func(n int) string { return `{"prompt":[5],"max_tokens":1,"candidates":[` + numbered("%d", n) + `]}` }},
		{"`candidates`, `begun`", text, fields.MaxCandidate, "candidates[0]", func(n int) string { return `{"prompt":[5],"max_tokens":1,"candidates":[` + strconv.Itoa(n) + `]}` }},
		{"`delimiters`", text, fields.MaxDelimiters, "delimiters", func(n int) string {
			return `{"prompt":[5],"max_tokens":1,"candidates":[0],"delimiters":[` + listed(`"a"`, n) + `]}`
		}},
		{"`delimiters`", text, fields.MaxDelimiterLen, "delimiters[0]", func(n int) string {
			return `{"prompt":[5],"max_tokens":1,"candidates":[0],"delimiters":[` + letters(n) + `]}`
		}},
		{"`n`", chat, 128, "n", field("n", strconv.Itoa)},
		{"`best_of`", text, 128, "best_of", func(n int) string { return `{"prompt":"a","max_tokens":1,"best_of":` + strconv.Itoa(n) + `}` }},
		{"`stop`", chat, fields.MaxStops, "stop", field("stop", func(n int) string { return `[` + listed(`"a"`, n) + `]` })},
		{"`stop`", chat, fields.MaxStopLen, "stop", field("stop", letters)},
		{"`dry_sequence_breakers`", chat, fields.MaxBreakers, "dry_sequence_breakers", field("dry_sequence_breakers", func(n int) string { return `[` + listed(`"a"`, n) + `]` })},
		{"`dry_sequence_breakers`", chat, fields.MaxStopLen, "dry_sequence_breakers", field("dry_sequence_breakers", letters)},
		{"`stop_token_ids`", chat, fields.MaxStopTokens, "stop_token_ids", field("stop_token_ids", func(n int) string { return `[` + listed("7", n) + `]` })},
		{"`bad_words`", chat, fields.MaxBadWords, "bad_words", field("bad_words", func(n int) string { return `[` + listed(`"a"`, n) + `]` })},
		{"`bad_words`", chat, fields.MaxBadWordLen, "bad_words[0]", field("bad_words", func(n int) string { return `[` + letters(n) + `]` })},
		{"`allowed_token_ids`", chat, fields.MaxAllowed, "allowed_token_ids", field("allowed_token_ids", func(n int) string { return `[` + listed("7", n) + `]` })},
		{"`logit_bias`", chat, fields.MaxLogitBias, "logit_bias", field("logit_bias", func(n int) string { return `{` + numbered(`"%d":1`, n) + `}` })},
		{"`logit_bias`", chat, fields.MaxLogitBias, "logit_bias", field("logit_bias", func(n int) string { return `[` + listed(`[7,1]`, n) + `]` })},
		{"`top_logprobs`, `logprobs`", chat, fields.MaxTopLogprobs, "top_logprobs", field("top_logprobs", func(n int) string { return strconv.Itoa(n) + `,"logprobs":true` })},
		{"`top_logprobs`, `logprobs`", text, fields.MaxTopLogprobs, "logprobs", func(n int) string { return `{"prompt":"a","max_tokens":1,"logprobs":` + strconv.Itoa(n) + `}` }},
		{"`metadata`", chat, fields.MaxMetadata, "metadata", field("metadata", func(n int) string { return `{` + numbered(`"a%d":"b"`, n) + `}` })},
		{"`metadata`", chat, fields.MaxMetadataName, "metadata", field("metadata", func(n int) string { return `{` + letters(n) + `:"b"}` })},
		{"`metadata`", chat, fields.MaxMetadataValue, "metadata", field("metadata", func(n int) string { return `{"a":` + letters(n) + `}` })},
		{"`test_time_scaling`, `X-Lutra-Scaling`", chat, 2048, api.ScalingField, field(api.ScalingField, func(n int) string { return `"bon2;verifier=logprob` + strings.Repeat(" ", n-21) + `"` })},
		{"`test_time_scaling.step.stop`", chat, 8, api.ScalingField + ".step.stop", search(func(n int) string { return `"step":{"stop":[` + listed(`"a"`, n) + `]}` })},
		{"`test_time_scaling.step.stop`", chat, 64, api.ScalingField + ".step.stop", search(func(n int) string { return `"step":{"stop":[` + letters(n) + `]}` })},
		{"`test_time_scaling.answer.extract`", chat, 512, api.ScalingField + ".answer", search(func(n int) string {
			return `"answer":{"extract":"regex:` + strings.Repeat("a", n) + `"}`
		})},
		{"`test_time_scaling.answer.extract`", chat, 1000, api.ScalingField + ".answer", search(func(n int) string {
			return fmt.Sprintf(`"answer":{"extract":"regex:a{%d}"}`, n-2) // which begin and end a program
		})},
		{"`test_time_scaling.include`", chat, fields.MaxIncludes, api.ScalingField + ".include", search(func(n int) string { return `"include":[` + listed(`"tree"`, n) + `]` })},
		{"`tokens`", "/detokenize", fields.MaxDetokenize, "tokens", func(n int) string { return `{"tokens":[` + listed("7", n) + `]}` }},
		{"`input` of texts", "/v1/embeddings", fields.MaxInputs, "input", func(n int) string {
			return `{"model":"vectors","input":[` + listed(`"a"`, n) + `]}`
		}},
		{"`documents`", "/v1/rerank", fields.MaxInputs, "documents", func(n int) string {
			return `{"model":"vectors","query":"a","documents":[` + listed(`"a"`, n) + `]}`
		}},
		{"`text_1`, `text_2`", "/v1/score", fields.MaxInputs, "text_2", func(n int) string {
			return `{"model":"vectors","text_1":"a","text_2":[` + listed(`"a"`, n) + `]}`
		}},
		{"`responses`", "/v1/rewards", 128, "responses", func(n int) string {
			return `{"prompt":"a","responses":[` + listed(`"a"`, n) + `]}`
		}},
		{"`responses`", "/v1/rewards", reward.MaxSteps, "responses", func(n int) string {
			return `{"prompt":"a","responses":["` + strings.Repeat(`a\n`, n) + `"]}`
		}},
	}
}

// documented returns the rows of the table of bounds in docs/api.md: what the first
// column says, and the last.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Bounds\n")
	if !ok {
		t.Fatal("docs/api.md has no section of bounds")
	}
	section, _, _ = strings.Cut(section, "\n### ")
	rows := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == 3 {
			rows[strings.TrimSpace(cells[0])] = strings.TrimSpace(cells[2])
		}
	}
	return rows
}

func TestEveryBoundHoldsAsTheDocumentationSays(t *testing.T) {
	sweep.NoRace(t)
	rows := documented(t)
	toys := start(t, &toy.Model{Context: 1 << 20}, nil)
	judges, readers := real(t, nil), reading(t)
	for _, b := range bounds() {
		text, ok := rows[b.row]
		if !ok || !slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' }), strconv.Itoa(b.most)) {
			t.Errorf("docs/api.md says of %s %q, and it is at most %d", b.row, text, b.most)
		}
		f := toys
		if b.path == "/v1/rewards" {
			f = judges
		}
		if slices.Contains([]string{"/v1/embeddings", "/v1/rerank", "/v1/score"}, b.path) {
			f = readers
		}
		refused := func(n int) (bool, int, []byte) {
			status, _, answer := f.post(b.path, b.body(n))
			if status == http.StatusOK {
				return false, status, answer
			}
			e := strict[api.Envelope](t, answer).Error
			param := ""
			if e.Param != nil {
				param = *e.Param
			}
			// At a bound a request may still not fit the context.
			return status == 400 && (*e.Code == jsonread.CodeValue || *e.Code == jsonread.CodeJSON) && param == b.param, status, answer
		}
		if is, status, answer := refused(b.most); is || status >= 500 {
			t.Errorf("%s, %s: %d %s at %d, want it allowed", b.path, b.row, status, answer, b.most)
		}
		if is, status, answer := refused(b.most + 1); !is {
			t.Errorf("%s, %s: %d %.200s at %d, want it refused, naming %q", b.path, b.row, status, answer, b.most+1, b.param)
		}
	}
}

func TestEveryFieldThatCanBeLongHasABound(t *testing.T) {
	rows := documented(t)
	names := ""
	for row := range rows {
		names += row + " "
	}
	var api []byte
	for _, doc := range []string{"../docs/api.md", "../docs/clients.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		api = append(api, text...)
	}
	// Text for models is as long as bodies may be.
	texts := []string{"content", "prompt", "text", "reasoning_content", "thinking", "system", "description", "instructions", "arguments", "input", "encrypted_content", "definition", "suffix", "input_prefix", "input_suffix"}
	for _, call := range readsOfFields(t) {
		switch {
		case slices.Contains([]string{"List", "Items", "Each", "EachOf", "IDs", "Tokens", "functions"}, call.method) && !strings.Contains(names, call.field+"`"):
			t.Errorf("%s: the table of bounds in docs/api.md does not list %s", call.at, call.field)
		case call.method == "Text" && !slices.Contains(texts, call.field):
			t.Errorf("%s: %s is read as a text of any length; is it one for a model?", call.at, call.field)
		case !strings.Contains(string(api), call.field):
			t.Errorf("%s: neither docs/api.md nor docs/clients.md mentions %s", call.at, call.field)
		}
	}
}

// read is a call of a method of fields with a field's name.
type read struct{ at, method, field string }

// readsOfFields finds, in the source of this package and of those beneath it, where fields of requests are read.
func readsOfFields(t *testing.T) (reads []read) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	methods := []string{"Float32", "Int", "Bool", "String", "OneOf", "Text", "IDs", "Tokens", "List", "Items", "Each", "EachOf", "In", "Object", "functions", "Take"}
	set := token.NewFileSet()
	for _, name := range append(files, rooms...) {
		if strings.HasSuffix(name, "_test.go") || filepath.Dir(name) == "receipt" { // which reads users' files
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(methods, method.Sel.Name) {
				return true
			}
			if of, named := method.X.(*ast.Ident); !named || of.Name == "attribute" {
				return true // a chain, of a log line; what a trace says
			}
			if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				field, err := strconv.Unquote(lit.Value)
				if err == nil {
					reads = append(reads, read{set.Position(call.Pos()).String(), method.Sel.Name, field})
				}
			}
			return true
		})
	}
	if len(reads) < 50 {
		t.Fatalf("found %d reads of fields: the test has lost sight of them", len(reads))
	}
	return reads
}
