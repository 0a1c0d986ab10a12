package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/template"
)

// forecast is a schema of arguments, and meets tells whether some meet it.
const forecast = `{"$defs":{"City":{"enum":["Berlin","Rome"]}},"type":"object","properties":{"city":{"$ref":"#/$defs/City"},"days":{"type":"integer","minimum":1,"maximum":9}},"required":["city","days"],"additionalProperties":false}`

func meets(arguments string) error {
	var a struct {
		City string
		Days int
	}
	d := json.NewDecoder(strings.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil || a.City != "Berlin" && a.City != "Rome" || a.Days < 1 || a.Days > 9 {
		return fmt.Errorf("arguments %s: %w", arguments, err)
	}
	return nil
}

func forecasts(names ...string) (tools []goopenai.Tool) {
	for _, name := range names {
		tools = append(tools, goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{Name: name, Strict: true, Parameters: json.RawMessage(forecast)}})
	}
	return tools
}

func TestForcedCallsMeetTheirSchemaWhateverTheModelWrites(t *testing.T) {
	sweep.Full(t)
	sweep.NoRace(t)
	for name, source := range callFormats {
		said := "Nothing of the kind."
		if name == "harmony" {
			said = "<|channel|>commentary" // what is no thought, which would have no end
		}
		f := start(t, says(t, said), nil)
		f.withTemplate(source)
		for _, names := range [][]string{{"forecast"}, {"forecast", "climate"}} {
			for _, parallel := range []bool{false, true} {
				req := goopenai.ChatCompletionRequest{Model: "toy", Tools: forecasts(names...), ToolChoice: "required", ParallelToolCalls: parallel, Temperature: 1.5, N: 4, MaxCompletionTokens: 400,
					Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
				answer, err := f.client().CreateChatCompletion(t.Context(), req)
				if err != nil {
					t.Fatalf("%q: %v", name, err)
				}
				for _, c := range answer.Choices {
					calls := c.Message.ToolCalls
					if c.FinishReason == goopenai.FinishReasonLength && parallel && len(calls) > 1 {
						calls = calls[:len(calls)-1] // without end by chance: the last call is cut off
					} else if c.FinishReason != goopenai.FinishReasonToolCalls || len(calls) == 0 || c.Message.Content != "" || !parallel && len(calls) > 1 {
						t.Errorf("%s: %+v, want a call", name, c)
					}
					for _, call := range calls {
						if err := meets(call.Function.Arguments); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
				}
			}
		}
	}
}

func TestCallsOfStrictToolsMeetTheirSchemaAndTextIsFree(t *testing.T) {
	sweep.NoRace(t)
	for name, source := range callFormats {
		format := formatOf(t, source)
		const forbidden = `{"town": "Paris"}`
		said := "I look.\n" + format.Write("forecast", forbidden)
		content := "I look."
		switch name {
		case "llama3", "python-bare": // a call is the whole message
			said, content = format.Write("forecast", forbidden), ""
		case "functionary-3.2":
			said = "all\nI look.>>>" + format.Write("forecast", forbidden)
		}
		// The model writes arguments that the schema forbids, and is held to others.
		f := start(t, says(t, said), nil)
		f.withTemplate(source)
		req := goopenai.ChatCompletionRequest{Model: "toy", Tools: forecasts("forecast", "climate"), ParallelToolCalls: false, Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}, MaxCompletionTokens: 400}
		got := ask(t, f, req)
		if got.Content != content || len(got.ToolCalls) != 1 || got.ToolCalls[0].Function.Name != "forecast" {
			t.Errorf("%s: %q becomes %+v, want text and a call", name, said, got)
			continue
		}
		if err := meets(got.ToolCalls[0].Function.Arguments); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f = start(t, says(t, "No tool helps."), nil)
		f.withTemplate(source)
		if got := ask(t, f, req); got.Content != "No tool helps." || got.ToolCalls != nil {
			t.Errorf("%s: %+v, want text", name, got)
		}
	}
}

func TestStrictCallsAreHeldBehindThoughtsAndInSearches(t *testing.T) {
	const call = `<tool_call>{"name": "forecast", "arguments": {"town": "Paris"}}</tool_call>`
	const mention = "A <tool_call> may help."
	for _, c := range []struct{ name, source, said, reasoning, text string }{
		{"the prompt begins the thought", thinker, mention + "</think>\n\nI look.\n" + call, mention, "I look."},
		{"the model begins it", template.ChatML + "{# </think> #}", "<think>\n" + mention + "\n</think>\n\nI look.\n" + call, mention, "I look."},
		{"there is none", template.ChatML + "{# </think> #}", "I look.\n" + call, "", "I look."},
	} {
		for _, choice := range []string{"auto", "required"} {
			for _, plan := range []string{"", "sc2", "beam2x2;verifier=logprob"} {
				if choice == "required" && c.reasoning == "" {
					continue // by chance it would think without end
				}
				f := start(t, says(t, c.said), nil)
				f.withTemplate(c.source)
				tools, _ := json.Marshal(forecasts("forecast"))
				if c.source == thinker {
					prompt, _ := f.applied(`{"messages":[` + asks + `],"tools":` + string(tools) + `}`)
					f = start(t, followsWith(t, prompt, c.said), nil)
					f.withTemplate(c.source)
				}
				fields := `,"max_tokens":300,"parallel_tool_calls":false,"tool_choice":"` + choice + `","tools":` + string(tools)
				if plan != "" {
					fields += `,"test_time_scaling":"` + plan + `"`
				}
				status, _, answer := f.post("/v1/chat/completions", chatBody(fields))
				var got goopenai.ChatCompletionResponse
				if err := json.Unmarshal(answer, &got); err != nil || status != 200 {
					t.Fatalf("%s, %s, %s: %s", c.name, choice, plan, answer)
				}
				m := got.Choices[0].Message
				want := c.text
				if choice == "required" {
					want = ""
				}
				if m.ReasoningContent != c.reasoning || m.Content != want || len(m.ToolCalls) != 1 {
					t.Errorf("%s, %s, %s: %s, want a call", c.name, choice, plan, answer)
					continue
				}
				if err := meets(m.ToolCalls[0].Function.Arguments); err != nil {
					t.Errorf("%s, %s, %s: %v", c.name, choice, plan, err)
				}
			}
		}
	}
}

func TestOtherAPIsHoldAnswersToFormatsToo(t *testing.T) {
	f := start(t, says(t, "Nothing of the kind."), nil)
	f.withTemplate(template.ChatML)
	_, _, answer := f.post("/api/chat", `{"model":"toy","messages":[{"role":"user","content":"Hi"}],"format":`+forecast+`,"options":{"num_predict":200}}`)
	var text strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(string(answer)), "\n") {
		text.WriteString(strict[ollamaLine](t, []byte(line)).Message.Content)
	}
	if err := meets(text.String()); err != nil {
		t.Error(err)
	}
	_, _, answer = f.post("/v1/responses", `{"model":"toy","input":"Hi","max_output_tokens":200,"text":{"format":{"type":"json_schema","name":"forecast","strict":true,"schema":`+forecast+`}}}`)
	var got answered
	if err := json.Unmarshal(answer, &got); err != nil || len(got.Output) != 1 {
		t.Fatalf("%s", answer)
	}
	if err := meets(got.Output[0].Content[0].Text); err != nil {
		t.Error(err)
	}
}

func TestAModelWithToolsAndAFormatCallsOneOrAnswersWithinTheFormatInEveryAPI(t *testing.T) {
	const call = `<tool_call>{"name": "look", "arguments": {"at": "Oslo"}}</tool_call>`
	tools := func(strict bool) []goopenai.Tool {
		return []goopenai.Tool{{Type: "function", Function: &goopenai.FunctionDefinition{Name: "look", Strict: strict,
			Parameters: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false}`)}}}
	}
	const answer = `{"city": "Rome", "days": 3}`
	for said, want := range map[string]string{call: "a call", answer: "an answer", "Nothing of the kind.": "either", "I look. " + call: "either"} {
		f := start(t, says(t, said), nil)
		f.withTemplate(template.ChatML)
		for _, strict := range []bool{false, true} {
			openai := string(must(json.Marshal(tools(strict))))
			flat := `[{"type":"function","name":"look","strict":` + fmt.Sprint(strict) + `,"parameters":` + string(tools(strict)[0].Function.Parameters.(json.RawMessage)) + `}]`
			anthropic := `[{"name":"look","strict":` + fmt.Sprint(strict) + `,"input_schema":` + string(tools(strict)[0].Function.Parameters.(json.RawMessage)) + `}]`
			for api, c := range map[string]struct {
				path, body string
				read       func(answer []byte) (call, text string)
			}{
				"chat": {"/v1/chat/completions", chatBody(`,"temperature":0,"max_tokens":200,"tools":` + openai + `,"response_format":{"type":"json_schema","json_schema":{"name":"f","schema":` + forecast + `}}`),
					func(answer []byte) (string, string) {
						var got goopenai.ChatCompletionResponse
						_ = json.Unmarshal(answer, &got)
						m := got.Choices[0].Message
						if len(m.ToolCalls) > 0 {
							return m.ToolCalls[0].Function.Name, m.Content
						}
						return "", m.Content
					}},
				"responses": {"/v1/responses", `{"model":"toy","input":"Hi","temperature":0,"max_output_tokens":200,"tools":` + flat + `,"text":{"format":{"type":"json_schema","name":"f","schema":` + forecast + `}}}`,
					func(answer []byte) (call, text string) {
						var got struct {
							Output []struct {
								Name    string
								Content []struct{ Text string }
							}
						}
						_ = json.Unmarshal(answer, &got)
						for _, o := range got.Output {
							call += o.Name
							for _, c := range o.Content {
								text += c.Text
							}
						}
						return call, text
					}},
				"messages": {"/v1/messages", `{"model":"toy","temperature":0,"max_tokens":200,"messages":[{"role":"user","content":"Hi"}],"tools":` + anthropic + `,"output_config":{"format":{"type":"json_schema","schema":` + forecast + `}}}`,
					func(answer []byte) (call, text string) {
						var got struct{ Content []struct{ Name, Text string } }
						_ = json.Unmarshal(answer, &got)
						for _, c := range got.Content {
							call, text = call+c.Name, text+c.Text
						}
						return call, text
					}},
				"ollama": {"/api/chat", `{"model":"toy","stream":false,"messages":[{"role":"user","content":"Hi"}],"options":{"num_predict":200,"temperature":0},"tools":` + openai + `,"format":` + forecast + `}`,
					func(answer []byte) (call, text string) {
						var got ollamaLine
						_ = json.Unmarshal(answer, &got)
						for _, c := range got.Message.Calls {
							call += c.Function.Name
						}
						return call, got.Message.Content
					}},
			} {
				status, _, answer := f.post(c.path, c.body)
				if status != 200 {
					t.Errorf("%s, strict %v: %s", api, strict, answer)
					continue
				}
				call, text := c.read(answer)
				fine := strings.HasPrefix(call, "look") && text == "" && want != "an answer" || call == "" && meets(text) == nil && want != "a call"
				if !fine {
					t.Errorf("%s, strict %v: %q becomes %s, want %s", api, strict, said, answer, want)
				}
			}
		}
	}
}
