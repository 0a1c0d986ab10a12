package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/text"
)

// called is a call in a test: arguments as a model writes them.
type called struct{ name, arguments string }

// written returns a message of text and calls as a family's models write it; ok: they can.
func written(t *testing.T, family, text string, calls ...called) (message string, ok bool) {
	format := formatOf(t, callFormats[family])
	list := func(prefix, between, suffix string, one func(i int, c called) string) string {
		var parts []string
		for i, c := range calls {
			parts = append(parts, one(i, c))
		}
		if len(calls) == 0 {
			return text
		}
		return text + prefix + strings.Join(parts, between) + suffix
	}
	whole := func(_ int, c called) string { return format.Write(c.name, c.arguments) }
	object := func(_ int, c called) string {
		return fmt.Sprintf(`{"name": %q, "arguments": %s, "id": "aaaaaaaa1"}`, c.name, c.arguments)
	}
	switch family {
	case "hermes":
		return list("\n", "\n", "", whole), true
	case "llama3":
		return list("", "; ", "", whole), text == "" || len(calls) == 0
	case "mistral":
		return list("[TOOL_CALLS][", ", ", "]", object), true
	case "deepseek":
		return list("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>", func(_ int, c called) string {
			return "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + c.name + "\n```json\n" + c.arguments + "\n```<｜tool▁call▁end｜>"
		}), true
	case "kimi":
		return list("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>", func(i int, c called) string {
			return fmt.Sprintf("<|tool_call_begin|>functions.%s:%d<|tool_call_argument_begin|>%s<|tool_call_end|>", c.name, i, c.arguments)
		}), true
	case "functionary-3.1":
		return list("", "", "", whole), true
	case "functionary-3.2":
		if text != "" {
			text = "all\n" + text
			if len(calls) > 0 {
				text += ">>>"
			}
		}
		return list("", ">>>", "", whole), true
	case "gemma4":
		return list("", "", "", whole), true
	case "harmony": // its calls end messages
		if text != "" {
			text = "<|channel|>commentary<|message|>" + text + "<|end|>"
			if len(calls) > 0 {
				text += "<|start|>assistant"
			}
		}
		return list("", "", "", whole), len(calls) < 2
	}
	if len(calls) > 1 && slices.Contains([]string{"granite3", "lfm2", "phi4", "untaught"}, family) {
		return "", false // it leaves them to the model
	}
	if len(calls) > 1 && family == "turn" {
		return "", false // it shows one alone
	}
	return shown(t, callFormats[family], text, calls), formatOf(t, callFormats[family]).Marks != nil || text == "" || len(calls) == 0
}

// shown returns a message as a template writes it.
func shown(t *testing.T, source, text string, calls []called) string {
	t.Helper()
	tmpl, err := template.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	answer := template.Message{Role: "assistant", Content: text}
	var list []any
	for _, c := range calls {
		list = append(list, map[string]any{"id": "aaaaaaaa1", "type": "function", "function": map[string]any{"name": c.name, "arguments": c.arguments}})
	}
	if list != nil {
		answer.ToolCalls = list
	}
	if !tmpl.ReadsCalls() { // it leaves them to the model
		for _, c := range calls {
			text += formatOf(t, source).Write(c.name, c.arguments)
		}
		return text
	}
	header, err := tmpl.Header()
	if err != nil {
		t.Fatal(err)
	}
	turn, err := tmpl.Turn(answer)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(turn, header), "<|im_end|>\n")
}

// exact are families in whose messages arguments stand as the tests write them.
var exact = []string{"hermes", "llama3", "mistral", "deepseek", "kimi", "functionary-3.1", "functionary-3.2", "harmony"}

// scripted is a model that writes these tokens, and then ends its turn.
type scripted struct {
	*fixture
	reply atomic.Pointer[[]int32]
}

// spelling makes a server whose model has a token for each byte, for each of marks if
// they are special, and for each of texts.
func spelling(t *testing.T, source string, marks, texts []string) (s *scripted, id map[string]int32) {
	t.Helper()
	var tokens []string
	var types []int32
	id = map[string]int32{}
	add := func(text, token string, kind int32) {
		if _, known := id[text]; known {
			return
		}
		id[text] = int32(len(tokens))
		tokens, types = append(tokens, token), append(types, kind)
	}
	letters := map[byte]rune{} // of byte-level BPE
	for b, more := 0, rune(256); b < 256; b++ {
		letters[byte(b)] = rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			letters[byte(b)] = more
			more++
		}
	}
	spell := func(text string) string {
		var b strings.Builder
		for i := range len(text) {
			b.WriteRune(letters[text[i]])
		}
		return b.String()
	}
	const normal, control = 1, 3
	for b := range 256 {
		add(string([]byte{byte(b)}), spell(string([]byte{byte(b)})), normal)
	}
	for _, m := range append([]string{"<|im_start|>", "<|im_end|>"}, marks...) {
		add(m, m, control)
	}
	for _, text := range texts {
		add(text, spell(text), normal)
	}
	tok, err := tokenizer.New(gguf.Metadata{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "default", "tokenizer.ggml.merges": []string{},
		"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types, "tokenizer.ggml.eos_token_id": uint32(id["<|im_end|>"]),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tokens) > vocab {
		t.Fatalf("%d tokens, the toy model has %d", len(tokens), vocab)
	}
	s = &scripted{}
	header := int32(id["<|im_start|>"])
	behind := len("assistant\n")
	s.fixture = start(t, &toy.Model{Logits: func(tokens []int32, row []float32) {
		clear(row)
		said := -behind
		for i := len(tokens) - 1; i >= 0 && tokens[i] != header; i-- {
			said++
		}
		reply := *s.reply.Load()
		switch {
		case said >= 0 && said < len(reply):
			row[reply[said]] = 50
		default:
			row[id["<|im_end|>"]] = 50
		}
	}}, nil)
	s.model.Tokenizer, s.model.Formats = tok, constrain.NewFormats(tok)
	s.withTemplate(source)
	return s, id
}

// answer holds the parts of one answer that a client reads.
type answer struct {
	text, reasoning string
	calls           []called
	finish          goopenai.FinishReason
}

func (s *scripted) whole(t *testing.T, req goopenai.ChatCompletionRequest) (a answer) {
	t.Helper()
	got, err := s.client().CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	c := got.Choices[0]
	ids := map[string]bool{}
	for _, call := range c.Message.ToolCalls {
		if call.ID == "" || ids[call.ID] || call.Type != "function" {
			t.Errorf("a call %+v", call)
		}
		ids[call.ID] = true
		a.calls = append(a.calls, called{call.Function.Name, call.Function.Arguments})
	}
	a.text, a.reasoning, a.finish = c.Message.Content, c.Message.ReasoningContent, c.FinishReason
	return a
}

func (s *scripted) streamed(t *testing.T, req goopenai.ChatCompletionRequest) (a answer) {
	t.Helper()
	calls, text, finish := streamedCalls(t, s.fixture, req)
	ids := map[string]bool{}
	for i, call := range calls {
		if call.ID == "" || ids[call.ID] || call.Type != "function" || *call.Index != i {
			t.Errorf("the first piece of a call is %+v", call)
		}
		ids[call.ID] = true
		a.calls = append(a.calls, called{call.Function.Name, call.Function.Arguments})
	}
	a.text, a.finish = text, finish
	return a
}

// toolsOfFamilies returns the tools of the families' tests, whose arguments are texts.
func toolsOfFamilies() []goopenai.Tool {
	var list []goopenai.Tool
	for _, name := range []string{"get_weather", "now"} {
		list = append(list, goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{Name: name,
			Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string"}}}`)}})
	}
	return list
}

// sayings lists the answers of the tests' models, in the terms of a client.
var sayings = []struct {
	name, text string
	calls      []called
}{
	{"text", "The set {1, 2} < 3, \"Grüße\".", nil},
	{"a call", "", []called{{"get_weather", `{"city": "Berlin"}`}}},
	{"text before a call", "Ich schaue nach: 東京.", []called{{"get_weather", `{"city": "東京 🦦", "unit": "°C"}`}}},
	{"two calls", "", []called{{"get_weather", `{"city": "Bonn"}`}, {"now", `{}`}}},
	{"text before two calls with marks and escapes in their strings", "I look.", []called{
		{"get_weather", `{"city": "\"}]\\ </tool_call> {[<｜tool▁call▁end｜> <|call|> [TOOL_CALLS] >>> \ud83e\udda6"}`}, {"now", `{"unit": "a; {b}"}`}}},
}

// same tells whether a family's arguments equal a saying's. Arguments that are no JSON are read and written as JSON.
func same(family, got, want string) bool {
	if slices.Contains(exact, family) {
		return got == want
	}
	var a, b map[string]any
	return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && fmt.Sprint(a) == fmt.Sprint(b)
}

func (a answer) is(family, text string, calls []called) bool {
	finish := goopenai.FinishReasonStop
	if len(calls) > 0 {
		finish = goopenai.FinishReasonToolCalls
	}
	if a.text != text || a.finish != finish || len(a.calls) != len(calls) {
		return false
	}
	for i, c := range calls {
		if a.calls[i].name != c.name || !same(family, a.calls[i].arguments, c.arguments) {
			return false
		}
	}
	return true
}

func TestEachFamilysMessagesArriveByteByByteAndWithMarksAsTokens(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	for family, source := range callFormats {
		for _, marks := range [][]string{nil, formatOf(t, source).Marks} {
			s, _ := spelling(t, source, marks, nil)
			for _, say := range sayings {
				message, ok := written(t, family, say.text, say.calls...)
				if !ok {
					continue
				}
				reply := s.model.Tokenizer.Encode(nil, message, tokenizer.Options{ParseSpecial: true})
				s.reply.Store(&reply)
				req := goopenai.ChatCompletionRequest{Model: "toy", Tools: toolsOfFamilies(), Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
				if got := s.whole(t, req); !got.is(family, say.text, say.calls) {
					t.Errorf("%s, %s, special marks %v: %q is answered as %+v", family, say.name, marks != nil, message, got)
				}
				if got := s.streamed(t, req); !got.is(family, say.text, say.calls) {
					t.Errorf("%s, %s, special marks %v: %q is streamed as %+v", family, say.name, marks != nil, message, got)
				}
			}
		}
	}
}

func TestGemmasThoughtsComeApartFromItsTextAndCalls(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "tts", "toolcall", "testdata", "thoughts", "gemma4.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	source := string(data)
	for _, marks := range [][]string{nil, formatOf(t, source).Marks} {
		s, _ := spelling(t, source, marks, nil)
		message := "<|channel>thought\nIt rains {\"a\": 1}.\n<channel|>" + formatOf(t, source).Write("get_weather", `{"city": "Berlin", "days": 3}`)
		for _, c := range []struct {
			message, text string
			calls         []called
			tools         []goopenai.Tool
		}{
			{message, "", []called{{"get_weather", `{"city": "Berlin", "days": 3}`}}, toolsOfFamilies()},
			{message, "", []called{{"get_weather", `{"city": "Berlin", "days": 3}`}}, forecasts("get_weather")}, // strict
			{"<|channel>thought\nIt rains {\"a\": 1}.\n<channel|>Yes.<|channel>thought\n<channel|>", "Yes.", nil, nil},
		} {
			reply := s.model.Tokenizer.Encode(nil, c.message, tokenizer.Options{ParseSpecial: true})
			s.reply.Store(&reply)
			req := goopenai.ChatCompletionRequest{Model: "toy", Tools: c.tools, Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}, MaxCompletionTokens: 500}
			if got := s.whole(t, req); !got.is("gemma4", c.text, c.calls) || got.reasoning != `It rains {"a": 1}.` {
				t.Errorf("special marks %v: %q is answered as %+v", marks != nil, c.message, got)
			}
			if got := s.streamed(t, req); !got.is("gemma4", c.text, c.calls) {
				t.Errorf("special marks %v: %q is streamed as %+v", marks != nil, c.message, got)
			}
		}
	}
}

func TestThoughtsBetweenMarksOfAnyTemplateComeApart(t *testing.T) {
	sweep.Full(t)
	paths, _ := filepath.Glob(filepath.Join("..", "tts", "toolcall", "testdata", "thoughts", "*.jinja"))
	if len(paths) < 10 {
		t.Fatalf("%d templates", len(paths))
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := template.Parse(string(source))
		if err != nil {
			t.Fatal(err)
		}
		marks, format := text.MarksOf(tmpl), formatOf(t, string(source))
		begin, _, _ := strings.Cut(marks.Begin, ">thought") // which Gemma has for two tokens
		if begin != marks.Begin {
			begin += ">"
		}
		message := marks.Begin + "\nIt rains.\n" + marks.End + "\n" + format.Write("get_weather", `{"city": "Berlin"}`)
		for _, tokens := range [][]string{nil, append([]string{begin, marks.End}, format.Marks...)} {
			s, _ := spelling(t, string(source), tokens, nil)
			for _, tools := range [][]goopenai.Tool{nil, toolsOfFamilies()} {
				req := goopenai.ChatCompletionRequest{Model: "toy", Tools: tools, Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
				for _, thought := range []string{"", marks.Begin + "It rains." + marks.End} {
					answer := thought + marks.Before + "Two < three." + marks.After
					reply := s.model.Tokenizer.Encode(nil, answer, tokenizer.Options{ParseSpecial: true})
					s.reply.Store(&reply)
					if got := s.whole(t, req); got.text != "Two < three." || got.reasoning != strings.TrimSuffix(strings.TrimPrefix(thought, marks.Begin), marks.End) || len(got.calls) > 0 {
						t.Errorf("%s, marks are tokens %v, tools %v: %q is answered as %+v", filepath.Base(path), tokens != nil, tools != nil, answer, got)
					}
				}
				reply := s.model.Tokenizer.Encode(nil, message, tokenizer.Options{ParseSpecial: true})
				s.reply.Store(&reply)
				got := s.whole(t, req)
				if got.reasoning != "It rains." || strings.Contains(got.text, "rains") || tools != nil && (got.text != "" || len(got.calls) != 1) {
					t.Errorf("%s, marks are tokens %v, tools %v: %q is answered as %+v", filepath.Base(path), tokens != nil, tools != nil, message, got)
				}
			}
		}
	}
}

func TestMarksMayHoldTheEndsOfLinesBehindThem(t *testing.T) {
	s, _ := spelling(t, callFormats["turn"], []string{"<|message_sep|>\n\n", "<|role_sep|>\n"}, nil)
	message, _ := written(t, "turn", "I look.", called{"forecast", `{"city": "Berlin", "days": 3}`})
	reply := s.model.Tokenizer.Encode(nil, message, tokenizer.Options{ParseSpecial: true})
	s.reply.Store(&reply)
	for _, choice := range []string{"auto", "required"} {
		req := goopenai.ChatCompletionRequest{Model: "toy", Tools: forecasts("forecast"), ToolChoice: choice, MaxCompletionTokens: 500,
			Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
		if choice == "required" {
			reply := s.model.Tokenizer.Encode(nil, strings.TrimPrefix(message, "I look."), tokenizer.Options{ParseSpecial: true})
			s.reply.Store(&reply)
		}
		got := s.streamed(t, req)
		if text := map[string]string{"auto": "I look."}[choice]; got.text != text || len(got.calls) != 1 || got.calls[0].arguments != `{"city": "Berlin", "days": 3}` {
			t.Errorf("%s: %q becomes %+v", choice, message, got)
		}
	}
}

func TestStrictCallsAreHeldWhereMarksAreTokens(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	for family, source := range callFormats {
		s, _ := spelling(t, source, formatOf(t, source).Marks, nil)
		message, ok := written(t, family, "I look.", called{"forecast", `{"city": "Paris"}`})
		text := "I look."
		if !ok {
			message, _ = written(t, family, "", called{"forecast", `{"city": "Paris"}`})
			text = ""
		}
		reply := s.model.Tokenizer.Encode(nil, message, tokenizer.Options{ParseSpecial: true})
		s.reply.Store(&reply)
		req := goopenai.ChatCompletionRequest{Model: "toy", Tools: forecasts("forecast"), ParallelToolCalls: false, MaxCompletionTokens: 500,
			Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
		got := s.streamed(t, req)
		if got.text != text || len(got.calls) != 1 || got.calls[0].name != "forecast" || got.finish != goopenai.FinishReasonToolCalls {
			t.Errorf("%s: %q becomes %+v, want text and a call", family, message, got)
			continue
		}
		if err := meets(got.calls[0].arguments); err != nil {
			t.Errorf("%s: %v", family, err)
		}
	}
}

func TestSeveralStrictCallsArriveAsTheyWereWritten(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	calls := []called{{"forecast", `{"city": "Berlin", "days": 3}`}, {"climate", `{"city": "Rome", "days": 1}`}}
	for family, source := range callFormats {
		for _, marks := range [][]string{nil, formatOf(t, source).Marks} {
			message, ok := written(t, family, "", calls...)
			if !ok || slices.Contains([]string{"qwen3-coder", "glm", "seed", "invoke", "typed"}, family) { // their elements name other tools
				continue
			}
			s, _ := spelling(t, source, marks, nil)
			reply := s.model.Tokenizer.Encode(nil, strings.TrimSpace(message), tokenizer.Options{ParseSpecial: true})
			s.reply.Store(&reply)
			for _, choice := range []string{"auto", "required"} {
				req := goopenai.ChatCompletionRequest{Model: "toy", Tools: forecasts("forecast", "climate"), ToolChoice: choice, MaxCompletionTokens: 900,
					Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
				if got := s.streamed(t, req); !got.is(family, "", calls) {
					t.Errorf("%s, %s, special marks %v: %q becomes %+v", family, choice, marks != nil, message, got)
				}
			}
		}
	}
}

func TestEachFamilysMessagesArriveHoweverTwoTokensDivideThem(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	for family, source := range callFormats {
		say := sayings[2]
		message, ok := written(t, family, say.text, say.calls...)
		if !ok {
			say = sayings[3]
			message, _ = written(t, family, say.text, say.calls...)
		}
		var halves []string
		for i := 1; i < len(message); i++ {
			halves = append(halves, message[:i], message[i:])
		}
		s, id := spelling(t, source, nil, halves)
		req := goopenai.ChatCompletionRequest{Model: "toy", Tools: toolsOfFamilies(), Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
		for i := 1; i < len(message); i += sweep.Of(t, 3, 1) {
			s.reply.Store(&[]int32{id[message[:i]], id[message[i:]]})
			if got := s.streamed(t, req); !got.is(family, say.text, say.calls) {
				t.Errorf("%s: %q divided at byte %d is streamed as %+v", family, message, i, got)
				break
			}
		}
	}
}

func TestACallThatTheLimitCutsOffIsABeginningOfIt(t *testing.T) {
	sweep.NoRace(t)
	sweep.Full(t)
	for family, source := range callFormats {
		s, _ := spelling(t, source, nil, nil)
		say := sayings[1]
		message, _ := written(t, family, say.text, say.calls...)
		reply := s.model.Tokenizer.Encode(nil, message, tokenizer.Options{ParseSpecial: true})
		s.reply.Store(&reply)
		req := goopenai.ChatCompletionRequest{Model: "toy", Tools: toolsOfFamilies(), Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
		for n := 1; n < len(reply); n += sweep.Of(t, 8, 3) {
			req.MaxCompletionTokens = n
			whole, streamed := s.whole(t, req), s.streamed(t, req)
			if whole.finish != goopenai.FinishReasonLength || streamed.finish != whole.finish || streamed.text != whole.text || fmt.Sprint(streamed.calls) != fmt.Sprint(whole.calls) {
				t.Errorf("%s, %d tokens: %+v, streamed %+v", family, n, whole, streamed)
			}
			for _, c := range whole.calls {
				if c.name != "get_weather" || whole.text != "" || !strings.HasPrefix(`{"city": "Berlin"}`, c.arguments) {
					t.Errorf("%s, %d tokens: the call is %+v behind the text %q", family, n, c, whole.text)
				}
			}
		}
	}
}
