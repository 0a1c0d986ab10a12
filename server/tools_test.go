package server

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// weather is a tool, asked for by a chat.
var weather = goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{
	Name: "get_weather", Description: "The weather of a city.",
	Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
}}

const inBerlin = `{"city": "Berlin"}`

func callsTools(choice any) goopenai.ChatCompletionRequest {
	return goopenai.ChatCompletionRequest{Model: "toy", Tools: []goopenai.Tool{weather}, ToolChoice: choice,
		Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
}

// callFormats are templates that write calls as families of models do, in our words; the header is the one that
// the toy model answers.
var callFormats = func() map[string]string {
	all := map[string]string{}
	paths, _ := filepath.Glob(filepath.Join("..", "tts", "toolcall", "testdata", "*.jinja"))
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".jinja")] = string(source)
	}
	return all
}()

// formatOf returns how a model with a template calls tools.
func formatOf(t *testing.T, source string) *toolcall.Format {
	t.Helper()
	tmpl, err := template.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	f, err := toolcall.Of(tmpl)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCallsOfToolsComeApartFromTheTextInEachFamilysFormat(t *testing.T) {
	sweep.NoRace(t)
	for name, source := range callFormats {
		t.Run(name, func(t *testing.T) {
			message := formatOf(t, source).Write("get_weather", inBerlin)
			f := start(t, says(t, message), nil)
			f.withTemplate(source)
			got := ask(t, f, callsTools("auto"))
			if len(got.ToolCalls) != 1 || got.Content != "" || got.ToolCalls[0].ID == "" || got.ToolCalls[0].Function.Name != "get_weather" || got.ToolCalls[0].Function.Arguments != inBerlin {
				t.Errorf("%q is answered as %+v, want a call", message, got)
			}
			calls, text, finish := streamedCalls(t, f, callsTools(nil))
			if len(calls) != 1 || text != "" || finish != goopenai.FinishReasonToolCalls || calls[0].Function.Arguments != inBerlin || calls[0].Type != "function" {
				t.Errorf("%q is streamed as %+v, %q, %s, want a call", message, calls, text, finish)
			}
			if plain := ask(t, f, callsTools("none")); plain.Content != message || plain.ToolCalls != nil {
				t.Errorf("with none to call %q is answered as %+v, want text", message, plain)
			}
		})
	}
}

// streamedCalls puts a stream's calls together.
func streamedCalls(t *testing.T, f *fixture, req goopenai.ChatCompletionRequest) (calls []goopenai.ToolCall, text string, finish goopenai.FinishReason) {
	t.Helper()
	stream, err := f.client().CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return calls, text, finish
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			text += c.Delta.Content
			if c.FinishReason != "" {
				finish = c.FinishReason
			}
			for _, call := range c.Delta.ToolCalls {
				if *call.Index == len(calls) {
					calls = append(calls, call)
				} else {
					calls[*call.Index].Function.Arguments += call.Function.Arguments
				}
			}
		}
	}
}

func TestAModelCanBeMadeToCallATool(t *testing.T) {
	// The prompt holds the call's beginning, so the model writes the rest of it.
	rest := inBerlin + "}\n</tool_call>"
	for _, choice := range []any{"required", goopenai.ToolChoice{Type: "function", Function: goopenai.ToolFunction{Name: "get_weather"}}} {
		f := start(t, says(t, toolcall.Hermes.Begin("get_weather")+rest), nil)
		f.withTemplate(template.ChatML)
		calls, text, finish := streamedCalls(t, f, callsTools(choice))
		if len(calls) != 1 || text != "" || finish != goopenai.FinishReasonToolCalls || calls[0].Function.Arguments != inBerlin {
			t.Errorf("%v: %+v, %q, %s, want a call", choice, calls, text, finish)
		}
	}
}

func TestOneCallIsAllWhereTheyMayNotBeParallel(t *testing.T) {
	two := toolcall.Hermes.Write("get_weather", inBerlin) + toolcall.Hermes.Write("get_weather", "{}")
	f := start(t, says(t, two), nil)
	f.withTemplate(template.ChatML)
	req := callsTools("auto")
	if got := ask(t, f, req); len(got.ToolCalls) != 2 {
		t.Errorf("%+v, want two calls", got.ToolCalls)
	}
	req.ParallelToolCalls = false
	if got := ask(t, f, req); len(got.ToolCalls) != 1 || got.ToolCalls[0].Function.Arguments != inBerlin {
		t.Errorf("%+v, want one call", got.ToolCalls)
	}
}

func TestAModelWhoseTemplateKnowsNoToolsIsToldOfThem(t *testing.T) {
	f := start(t, says(t, "None."), nil)
	f.withTemplate(template.ChatML)
	tools, _ := json.Marshal([]goopenai.Tool{weather})
	history := asks + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Berlin\"}"}}]},{"role":"tool","tool_call_id":"a","content":"Rain"}`
	got, _ := f.applied(`{"messages":[` + history + `],"tools":` + string(tools) + `}`)
	for _, want := range []string{"<|im_start|>system\nYou can call functions.", `"name":"get_weather"`, toolcall.Hermes.Write("get_weather", `{"city":"Berlin"}`), "<|im_start|>user\n<tool_response>\nRain\n</tool_response>"} {
		if !strings.Contains(got, want) {
			t.Errorf("the model reads %q, which lacks %q", got, want)
		}
	}
	f.withTemplate(`{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}`)
	if got, _ := f.applied(`{"messages":[` + asks + `],"tools":` + string(tools) + `}`); !strings.HasPrefix(got, "[user]You can call functions.") || !strings.HasSuffix(got, "Hi") {
		t.Errorf("where no system message may be, the model reads %q", got)
	}
}

func TestEveryBadUseOfToolsIsRefusedWithItsReason(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	const tool = `{"type":"function","function":{"name":"f","parameters":{}}}`
	const calls = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	message := func(rest string) string { return `{"messages":[` + asks + `,` + rest + `]}` }
	for _, c := range []struct{ body, code, param string }{
		{chatBody(`,"tools":[{"type":"function"}]`), jsonread.CodeMissing, "tools[0].function"},
		{chatBody(`,"tools":[` + tool + `,` + tool + `]`), jsonread.CodeValue, "tools[1].function.name"},
		{chatBody(`,"tools":[{"type":"function","function":{"name":"a b"}}]`), jsonread.CodeValue, "tools[0].function.name"},
		{chatBody(`,"tools":[{"type":"function","function":{"name":"f","parameters":7}}]`), jsonread.CodeType, "tools[0].function"},
		{chatBody(`,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","$dynamicRef":"#x"}}}]`), jsonread.CodeUnsupported, "tools"},
		{chatBody(`,"tools":[` + tool + `],"grammar":"root ::= \"a\""`), jsonread.CodeValue, "grammar"},
		{chatBody(`,"tools":[` + tool + `],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":7}}}`), jsonread.CodeValue, "response_format"},
		{chatBody(`,"tools":[{"type":"web_search"}]`), jsonread.CodeUnsupported, "tools[0].type"},
		{chatBody(`,"tool_choice":"required"`), jsonread.CodeValue, "tool_choice"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":"any"`), jsonread.CodeValue, "tool_choice"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":7`), jsonread.CodeType, "tool_choice"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":{"type":"custom"}`), jsonread.CodeUnsupported, "tool_choice.type"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":{"type":"function","function":{}}`), jsonread.CodeMissing, "tool_choice.function.name"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":{"type":"function","function":{"name":"g"}}`), jsonread.CodeValue, "tool_choice"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[` + tool + `]}}`), jsonread.CodeValue, "tool_choice.allowed_tools.mode"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`), jsonread.CodeMissing, "tool_choice.allowed_tools.tools"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp"}]}`), jsonread.CodeUnsupported, "tool_choice.tools[0].type"},
		{chatBody(`,"tools":[` + tool + `],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`), jsonread.CodeValue, "tool_choice"},
		{chatBody(`,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`), jsonread.CodeValue, "tool_choice"},
		{chatBody(`,"tools":[` + tool + `],"parallel_tool_calls":1`), jsonread.CodeType, "parallel_tool_calls"},
		{`{"messages":[` + asks + `,` + answers + `],"tools":[` + tool + `],"tool_choice":"required"}`, jsonread.CodeValue, "tool_choice"},
		{message(`{"role":"tool","tool_call_id":"a","content":"7"}`), jsonread.CodeValue, "messages[1].role"},
		{message(calls + `,{"role":"tool","tool_call_id":"b","content":"7"}`), jsonread.CodeValue, "messages[2].tool_call_id"},
		{message(strings.Replace(calls, `"{}"`, `[]`, 1)), jsonread.CodeType, "messages[1].tool_calls[0].function.arguments"},
	} {
		status, _, answer := f.post("/v1/chat/completions", c.body)
		wantError(t, c.body, status, answer, 400, c.code, c.param)
	}
}

func TestASearchAgreesOnCalls(t *testing.T) {
	f := start(t, says(t, toolcall.Hermes.Write("get_weather", inBerlin)), nil)
	f.withTemplate(template.ChatML)
	req := callsTools("auto")
	req.Metadata = map[string]string{"test_time_scaling": "sc4"}
	calls, text, finish := streamedCalls(t, f, req)
	if len(calls) != 1 || text != "" || finish != goopenai.FinishReasonToolCalls || calls[0].Function.Arguments != inBerlin {
		t.Errorf("%+v, %q, %s, want a call", calls, text, finish)
	}
	tools, _ := json.Marshal(req.Tools)
	_, _, answer := f.post("/v1/chat/completions", chatBody(`,"test_time_scaling":"sc4","tools":`+string(tools)))
	var got struct {
		Choices []struct {
			Scaling struct {
				Answer string
				Votes  int
			} `json:"test_time_scaling"`
		}
		Scaling struct{ Agreement float64 } `json:"test_time_scaling"`
	}
	if err := json.Unmarshal(answer, &got); err != nil || len(got.Choices) != 1 || got.Choices[0].Scaling.Answer != `get_weather({"city":"Berlin"})` || got.Scaling.Agreement != 1 {
		t.Errorf("%s", answer)
	}
}

// weatherAndTime are a tool that the model wants to call, and another.
const weatherAndTime = `{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{},"additionalProperties":false}}},
	{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{},"additionalProperties":false}}}`

func TestOnlyAllowedToolsAreCalledAndThePromptShowsAll(t *testing.T) {
	f := start(t, says(t, toolcall.Hermes.Write("get_weather", "{}")), nil)
	f.withTemplate(template.ChatML)
	// Responses have tools and choices without an object inside.
	flat := strings.NewReplacer(`"type":"function","function":{`, `"type":"function",`, `}}}`, `}}`, `false}}}`, `false}}`)
	for _, c := range []struct{ choice, calls string }{
		{`"auto"`, "get_weather"},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"get_weather"}}]}}`, "get_weather"},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"get_time"}}]}}`, "get_time"},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"get_time"}}]}}`, "get_time"},
		{`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"get_time"}},{"type":"function","function":{"name":"get_weather"}}]}}`, "get_weather"},
		{`{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"get_time"}]}`, "get_time"},
	} {
		_, _, free := f.post("/v1/chat/completions", chatBody(`,"max_tokens":1,"tools":[`+weatherAndTime+`]`))
		_, _, answer := f.post("/v1/chat/completions", chatBody(`,"temperature":0,"max_tokens":60,"tools":[`+weatherAndTime+`],"tool_choice":`+c.choice))
		var plain, chat struct {
			Choices []struct {
				Message struct {
					Calls []struct{ Function struct{ Name string } } `json:"tool_calls"`
				}
			}
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		if err := errors.Join(json.Unmarshal(free, &plain), json.Unmarshal(answer, &chat)); err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, call := range chat.Choices[0].Message.Calls {
			names += call.Function.Name
		}
		if names != c.calls || chat.Usage.Prompt != plain.Usage.Prompt {
			t.Errorf("%s in a chat: %s, want a call of %s and a prompt of %d tokens", c.choice, answer, c.calls, plain.Usage.Prompt)
		}
		choice := strings.NewReplacer(`"allowed_tools":{"mode"`, `"mode"`, `"function":{"name":"get_time"}`, `"name":"get_time"`, `"function":{"name":"get_weather"}`, `"name":"get_weather"`, `}]}}`, `}]}`).Replace(c.choice)
		_, _, answer = f.post("/v1/responses", `{"model":"toy","input":"Hi","temperature":0,"max_output_tokens":60,"tools":[`+flat.Replace(weatherAndTime)+`],"tool_choice":`+choice+`}`)
		var response answered
		if err := json.Unmarshal(answer, &response); err != nil {
			t.Fatal(err)
		}
		names = ""
		for _, item := range response.Output {
			names += item.Name
		}
		if names != c.calls {
			t.Errorf("%s in a response: %s, want a call of %s", choice, answer, c.calls)
		}
	}
}

func TestAStreamThatMayBeACallBeginsWithoutText(t *testing.T) {
	f := start(t, says(t, toolcall.Hermes.Write("get_weather", "{}")), nil)
	f.withTemplate(template.ChatML)
	for fields, content := range map[string]string{
		`,"tools":[` + weatherAndTime + `]`:                          `null`,
		`,"tools":[` + weatherAndTime + `],"tool_choice":"required"`: `null`,
		`,"tools":[` + weatherAndTime + `],"tool_choice":"none"`:     `""`,
		"": `""`,
	} {
		_, _, stream := f.post("/v1/chat/completions", chatBody(`,"stream":true,"max_tokens":30`+fields))
		first, _, _ := strings.Cut(string(stream), "\n\n")
		if want := `"delta":{"role":"assistant","content":` + content + `}`; !strings.Contains(first, want) {
			t.Errorf("%s begins with %s, want %s", fields, first, want)
		}
	}
}
