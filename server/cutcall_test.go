package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/toy"
)

const flatWeather = `[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}]`

// sent asserts that a request is answered, and returns the answer.
func (f *fixture) sent(path, body string) []byte {
	f.t.Helper()
	status, _, answer := f.post(path, body)
	if status != 200 {
		f.t.Fatalf("%s %.600s: %d %.600s", path, body, status, answer)
	}
	return answer
}

func TestACallThatWasCutOffCanBeSentBack(t *testing.T) {
	sweep.Full(t)
	for _, name := range slices.Sorted(maps.Keys(callFormats)) {
		t.Run(name, func(t *testing.T) {
			source := callFormats[name]
			message := formatOf(t, source).Write("get_weather", `{"city": "Berlin", "days": 3}`)
			f := start(t, says(t, message), nil)
			f.withTemplate(source)
			chat, response := 0, 0
			for most := 1; most < 100 && (chat == 0 || response == 0); most += 3 {
				chat += sendBackChat(f, most)
				response += sendBackResponse(f, most)
			}
			if chat == 0 || response == 0 {
				t.Errorf("%d chats and %d responses were cut off in a call", chat, response)
			}
		})
	}
}

// cut tells whether arguments hold no JSON.
func cut(arguments string) bool { return arguments != "" && !json.Valid([]byte(arguments)) }

// sendBackChat asks for an answer of most tokens and, if that ends within a call, sends
// it back with a result. It counts such answers.
func sendBackChat(f *fixture, most int) int {
	tools := `,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}]`
	var got struct {
		Choices []struct{ Message json.RawMessage }
	}
	var message struct {
		Calls []struct {
			ID       string
			Function struct{ Arguments string }
		} `json:"tool_calls"`
	}
	answer := f.sent("/v1/chat/completions", chatBody(fmt.Sprintf(`,"max_tokens":%d%s`, most, tools)))
	if json.Unmarshal(answer, &got) != nil || json.Unmarshal(got.Choices[0].Message, &message) != nil || len(message.Calls) == 0 || !cut(message.Calls[0].Function.Arguments) {
		return 0
	}
	f.sent("/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":"Hi"},%s,{"role":"tool","tool_call_id":%q,"content":"It was cut off."}],"max_tokens":4%s}`,
		got.Choices[0].Message, message.Calls[0].ID, tools))
	return 1
}

// sendBackResponse does the same with responses, whose items are sent back and referred
// to.
func sendBackResponse(f *fixture, most int) int {
	var got struct {
		ID     string
		Output []json.RawMessage
	}
	var call struct {
		ID        string `json:"call_id"`
		Arguments string
	}
	answer := f.sent("/v1/responses", fmt.Sprintf(`{"input":"Hi","max_output_tokens":%d,"tools":%s}`, most, flatWeather))
	if json.Unmarshal(answer, &got) != nil || len(got.Output) == 0 || json.Unmarshal(got.Output[len(got.Output)-1], &call) != nil || !cut(call.Arguments) {
		return 0
	}
	result := fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"It was cut off."}`, call.ID)
	f.sent("/v1/responses", fmt.Sprintf(`{"input":[{"role":"user","content":"Hi"},%s,%s],"max_output_tokens":4,"tools":%s}`, got.Output[len(got.Output)-1], result, flatWeather))
	f.sent("/v1/responses", fmt.Sprintf(`{"previous_response_id":%q,"input":[%s],"max_output_tokens":4,"tools":%s}`, got.ID, result, flatWeather))
	return 1
}

func TestPublishedTemplatesShowCallsThatWereCutOff(t *testing.T) {
	dir := os.Getenv("LUTRA_GOLDEN")
	if dir == "" {
		t.Skip("LUTRA_GOLDEN does not name the folder of reference data")
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "templates", "*.jinja"))
	if len(paths) == 0 {
		t.Fatal("no templates")
	}
	f := start(t, &toy.Model{}, nil)
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f.withTemplate(string(source))
		for _, arguments := range []string{`{"city": "Ber`, `[1]`, `7`, `{"city"`, `Berlin`} {
			written, _ := json.Marshal(arguments)
			status, _, answer := f.post("/apply-template", fmt.Sprintf(`{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"aaaaaaaa1","type":"function","function":{"name":"get_weather","arguments":%s}}]},{"role":"tool","tool_call_id":"aaaaaaaa1","content":"It was cut off."}],"tools":%s}`, written, twoTools))
			if status != 200 || !strings.Contains(strings.ReplaceAll(string(answer), `\`, ""), arguments) {
				t.Errorf("%s, %s: %d %.1500s", filepath.Base(path), arguments, status, answer)
			}
		}
	}
}
