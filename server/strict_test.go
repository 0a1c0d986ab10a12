package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/tts/toolcall"
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
	for _, source := range []string{"", "{# <|python_tag|> #}", "{# [TOOL_CALLS] #}", "{# <｜tool▁call▁begin｜> #}"} {
		f := start(t, says(t, "Nothing of the kind."), nil)
		f.withTemplate(source + template.ChatML)
		for _, names := range [][]string{{"forecast"}, {"forecast", "climate"}} {
			if len(names) > 1 && strings.Contains(source, "begin") {
				continue // a name and an object cannot be held together
			}
			req := goopenai.ChatCompletionRequest{Model: "toy", Tools: forecasts(names...), ToolChoice: "required", Temperature: 1.5, N: 4, MaxCompletionTokens: 200,
				Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
			answer, err := f.client().CreateChatCompletion(t.Context(), req)
			if err != nil {
				t.Fatalf("%q: %v", source, err)
			}
			for _, c := range answer.Choices {
				if len(c.Message.ToolCalls) != 1 || c.FinishReason != goopenai.FinishReasonToolCalls || c.Message.Content != "" {
					t.Errorf("%q: %+v, want a call", source, c)
					continue
				}
				if err := meets(c.Message.ToolCalls[0].Function.Arguments); err != nil {
					t.Errorf("%q: %v", source, err)
				}
			}
		}
	}
}

func TestCallsOfStrictToolsMeetTheirSchemaAndTextIsFree(t *testing.T) {
	// The model writes arguments that the schema forbids, and is held to others.
	f := start(t, says(t, "I look.\n"+toolcall.Hermes.Write("forecast", `{"town": "Paris"}`)), nil)
	f.withTemplate(template.ChatML)
	req := goopenai.ChatCompletionRequest{Model: "toy", Tools: forecasts("forecast"), Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}, MaxCompletionTokens: 200}
	got := ask(t, f, req)
	if got.Content != "I look." || len(got.ToolCalls) != 1 {
		t.Fatalf("%+v, want text and a call", got)
	}
	if err := meets(got.ToolCalls[0].Function.Arguments); err != nil {
		t.Error(err)
	}
	f = start(t, says(t, "No tool helps."), nil)
	f.withTemplate(template.ChatML)
	if got := ask(t, f, req); got.Content != "No tool helps." || got.ToolCalls != nil {
		t.Errorf("%+v, want text", got)
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
