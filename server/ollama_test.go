package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/embedded"
	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// ollamaLine is a line of Ollama's API, or a whole answer.
type ollamaLine struct {
	Model     string
	CreatedAt string `json:"created_at"`
	Message   *struct {
		Role, Content, Thinking string
		Calls                   []struct {
			ID       string
			Function struct {
				Index     int
				Name      string
				Arguments map[string]any
			}
		} `json:"tool_calls"`
	}
	Response, Thinking string
	Done               bool
	Reason             string `json:"done_reason"`
	Total              int64  `json:"total_duration"`
	Load               int64  `json:"load_duration"`
	PromptTokens       int    `json:"prompt_eval_count"`
	Prompt             int64  `json:"prompt_eval_duration"`
	Tokens             int    `json:"eval_count"`
	Eval               int64  `json:"eval_duration"`
	Context            []int32
	Logprobs           []struct {
		ollamaToken
		Top []ollamaToken `json:"top_logprobs"`
	}
}

// ollamaToken is a token with its log-probability.
type ollamaToken struct {
	Token   string
	Logprob float64
	Bytes   []int
}

// ollamaSaid puts the lines of an answer together.
func ollamaSaid(t *testing.T, answer []byte) (said string, last ollamaLine) {
	t.Helper()
	var text, thinking, calls strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(string(answer)), "\n") {
		if last.Done {
			t.Errorf("line %s follows the last one", line)
		}
		last = strict[ollamaLine](t, []byte(line))
		text.WriteString(last.Response)
		thinking.WriteString(last.Thinking)
		if m := last.Message; m != nil {
			text.WriteString(m.Content)
			thinking.WriteString(m.Thinking)
			for _, c := range m.Calls {
				fmt.Fprintf(&calls, " %s %v", c.Function.Name, c.Function.Arguments)
			}
		}
	}
	if !last.Done || last.PromptTokens == 0 || last.Tokens == 0 || last.Total == 0 || last.Load == 0 || last.Load > last.Total {
		t.Errorf("the last line is %+v", last)
	}
	return fmt.Sprintf("%q %q%s %s", thinking.String(), text.String(), calls.String(), last.Reason), last
}

func TestOllamasClientsGetAnswersWholeAndInLines(t *testing.T) {
	const tools = `,"tools":[{"type":"function","function":{"name":"get_weather","description":"Of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	for _, c := range []struct{ name, says, fields, want string }{
		{"text", "Twelve apples.", "", `"" "Twelve apples." stop`},
		{"a stop", "Twelve apples.", `,"options":{"stop":["app"],"seed":1,"num_ctx":2048,"top_k":40}`, `"" "Twelve " stop`},
		{"a bound", "Twelve apples.", `,"options":{"num_predict":1}`, ` length`},
		{"thinking", thoughtful, `,"think":true`, `"What is 3*4?" "Answer: 12" stop`},
		{"calls", "I look. " + toolcall.Hermes.Write("get_weather", inBerlin) + toolcall.Hermes.Write("get_weather", "{}"), tools, `"" "I look." get_weather map[city:Berlin] get_weather map[] stop`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := start(t, says(t, c.says), nil)
			f.withTemplate(template.ChatML + "{# </think> #}")
			body := `{"model":"toy:latest","messages":[{"role":"user","content":"Hi"}]` + c.fields
			for _, stream := range []string{"", `,"stream":true`, `,"stream":false`} {
				_, h, answer := f.post("/api/chat", body+stream+"}")
				if got, _ := ollamaSaid(t, answer); !strings.HasSuffix(got, c.want) {
					t.Errorf("chat%s: %s, want %s", stream, answer, c.want)
				}
				if ct := h.Get("Content-Type"); (ct == "application/x-ndjson") == strings.Contains(stream, "false") {
					t.Errorf("chat%s is of type %s", stream, ct)
				}
				if c.name == "calls" {
					continue
				}
				_, _, answer = f.post("/api/generate", `{"model":"toy","prompt":"Hi","system":"Be brief."`+c.fields+stream+"}")
				if got, _ := ollamaSaid(t, answer); !strings.HasSuffix(got, c.want) {
					t.Errorf("generate%s: %s, want %s", stream, answer, c.want)
				}
			}
		})
	}
}

func TestOllamasClientsGetLogProbabilities(t *testing.T) {
	const text = "Twelve apples."
	f := start(t, says(t, text), nil)
	f.withTemplate(template.ChatML)
	for _, c := range []struct {
		fields string
		top    int
	}{{`,"logprobs":true`, 0}, {`,"logprobs":true,"top_logprobs":0`, 0}, {`,"logprobs":true,"top_logprobs":2`, 2}, {`,"logprobs":false`, -1}, {"", -1}} {
		for _, path := range []string{"/api/chat", "/api/generate"} {
			for _, stream := range []string{"true", "false"} {
				_, _, answer := f.post(path, `{"model":"toy","messages":[{"role":"user","content":"Hi"}],"prompt":"Hi","options":{"temperature":0},"stream":`+stream+c.fields+"}")
				var said []byte
				for line := range strings.SplitSeq(strings.TrimSpace(string(answer)), "\n") {
					for _, token := range strict[ollamaLine](t, []byte(line)).Logprobs {
						for _, b := range token.Bytes {
							said = append(said, byte(b))
						}
						if len(token.Top) != c.top || token.Logprob > 0 || c.top > 0 && (token.Top[0].Token != token.Token || token.Top[0].Logprob != token.Logprob) {
							t.Errorf("%s%s, streamed %s: a token is %+v, want one with %d others", path, c.fields, stream, token, c.top)
						}
					}
				}
				if want := map[bool]string{true: text, false: ""}[c.top >= 0]; string(said) != want || strings.Contains(string(answer), `"logprobs"`) != (c.top >= 0) {
					t.Errorf("%s%s, streamed %s: the tokens say %q, want %q: %s", path, c.fields, stream, said, want, answer)
				}
			}
		}
	}
}

func TestAGenerationGoesOnFromTheContextOfAnother(t *testing.T) {
	const shown = "{{ bos_token }}" + template.ChatML
	f := start(t, says(t, "Twelve apples."), nil)
	file := must(embedded.Open(embedded.Default))
	file.Metadata["tokenizer.ggml.add_bos_token"], file.Metadata["tokenizer.ggml.bos_token_id"] = true, uint32(1021)
	f.model.Tokenizer = must(tokenizer.New(file.Metadata))
	f.model.Formats = constrain.NewFormats(f.model.Tokenizer)
	f.withTemplate(shown)
	ids := func(text string) []int32 {
		return f.model.Tokenizer.Encode(nil, text, tokenizer.Options{ParseSpecial: true})
	}
	bos, _ := f.model.Tokenizer.BOS()
	generate := func(fields string) ollamaLine {
		t.Helper()
		_, _, answer := f.post("/api/generate", `{"model":"toy","options":{"temperature":0}`+fields+"}")
		_, last := ollamaSaid(t, answer)
		return last
	}
	for _, stream := range []string{"true", "false"} {
		first := generate(`,"prompt":"Hi","system":"Be brief.","stream":` + stream)
		const turn = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nTwelve apples.<|im_end|>\n"
		if want := append([]int32{bos}, ids(turn)...); !slices.Equal(first.Context, want) {
			t.Errorf("streamed %s: the context is %v, want %v", stream, first.Context, want)
		}
		next := ids("<|im_start|>user\nMore<|im_end|>\n<|im_start|>assistant\n")
		raw, _ := json.Marshal(first.Context)
		second := generate(`,"prompt":"More","stream":` + stream + `,"context":` + string(raw))
		if want := len(first.Context) + len(next); second.PromptTokens != want || !slices.Equal(second.Context[:len(first.Context)], first.Context) || !slices.Equal(second.Context[len(first.Context):want], next) {
			t.Errorf("streamed %s: behind %v comes %v of %d tokens, want %d", stream, first.Context, second.Context, second.PromptTokens, want)
		}
	}
	if line := generate(`,"prompt":"Hi<|im_start|>assistant\n","raw":true`); line.Context != nil {
		t.Errorf("a raw prompt has the context %v", line.Context)
	}
	for fields, about := range map[string]string{
		`,"context":[99999]`:                 "context[0]",
		`,"context":["a"]`:                   "context",
		`,"context":"a"`:                     "context",
		`,"raw":true,"context":[1]`:          "raw",
		`,"raw":true,"system":"Hi"`:          "raw",
		`,"top_logprobs":3`:                  "top_logprobs",
		`,"logprobs":1`:                      "logprobs",
		`,"logprobs":true,"top_logprobs":21`: "top_logprobs",
	} {
		status, _, answer := f.post("/api/generate", `{"model":"toy","prompt":"Hi"`+fields+`}`)
		if got := strict[struct{ Error string }](t, answer); status != 400 || !strings.Contains(got.Error, about) {
			t.Errorf("%s: %d %s, want an error about %s", fields, status, answer, about)
		}
	}
	long := strings.TrimSuffix(strings.Repeat("1,", f.model.Context), ",")
	if status, _, answer := f.post("/api/generate", `{"model":"toy","prompt":"Hi","context":[`+long+`]}`); status != 400 || !strings.Contains(string(answer), "maximum context length") {
		t.Errorf("a context that leaves no room: %d %s", status, answer)
	}
}

func TestOllamasClientsLearnOfTheModels(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	for _, path := range []string{"/api/tags", "/api/ps"} {
		_, _, answer := f.do("GET", path, nil)
		var list struct {
			Models []struct{ Name, Model, Digest string }
		}
		if err := json.Unmarshal(answer, &list); err != nil || len(list.Models) == 0 || list.Models[0].Name != "toy:latest" || len(list.Models[0].Digest) != 64 {
			t.Errorf("%s: %s", path, answer)
		}
	}
	_, _, answer := f.post("/api/show", `{"model":"toy"}`)
	var shown struct {
		Template     string
		Info         map[string]any `json:"model_info"`
		Capabilities []string
	}
	if err := json.Unmarshal(answer, &shown); err != nil || shown.Template != f.model.Template.Source() || shown.Info["general.architecture"] != "toy" || len(shown.Capabilities) != 2 {
		t.Errorf("show: %s", answer)
	}
	if _, _, answer := f.do("GET", "/api/version", nil); !strings.HasPrefix(string(answer), `{"version":"0.`) {
		t.Errorf("version: %s", answer)
	}
	if _, _, answer := f.post("/api/generate", `{"model":"toy"}`); !strings.Contains(string(answer), `"done":true,"done_reason":"load"`) {
		t.Errorf("loading: %s", answer)
	}
}

func TestOllamasClientsGetTheirOwnErrors(t *testing.T) {
	f := start(t, says(t, "Hi"), nil)
	chat := func(fields string) string {
		return `{"model":"toy","messages":[{"role":"user","content":"Hi"}]` + fields + `}`
	}
	for _, c := range []struct {
		path, body string
		status     int
		about      string
	}{
		{"/api/chat", chat(`,"format":"xml"`), 400, "format"},
		{"/api/chat", chat(`,"format":{"type":"nonsense"}`), 400, "format"},
		{"/api/chat", chat(`,"think":true`), 400, "think"},
		{"/api/chat", chat(`,"think":"high"`), 400, "think"},
		{"/api/chat", chat(`,"think":7`), 400, "think"},
		{"/api/chat", chat(`,"options":{"temperature":9}`), 400, "options.temperature"},
		{"/api/chat", chat(`,"options":{"mirostat":2}`), 400, "options.mirostat"},
		{"/api/chat", chat(`,"options":{"mirostat":1,"num_ctx":8}`), 400, "'options.mirostat'"},
		{"/api/chat", strings.Replace(chat(""), `"content"`, `"images":["x"],"content"`, 1), 400, "messages[0].images"},
		{"/api/chat", strings.Replace(chat(""), `"user"`, `"king"`, 1), 400, "messages[0].role"},
		{"/api/chat", strings.Replace(chat(""), "toy", "other", 1), 404, "other"},
		{"/api/generate", `{"model":"toy","prompt":"a","suffix":"b"}`, 400, "suffix"},
		{"/api/show", `{"name":"other"}`, 404, "other"},
		{"/api/pull", `{"model":"toy"}`, 501, "pull"},
		{"/api/embed", `{"model":"toy","input":"a"}`, 400, "makes no vectors"},
	} {
		status, _, answer := f.post(c.path, c.body)
		if got := strict[struct{ Error string }](t, answer); status != c.status || !strings.Contains(got.Error, c.about) {
			t.Errorf("%s %s: %d %s, want %d about %s", c.path, c.body, status, answer, c.status, c.about)
		}
	}
	if status, _, _ := f.do(http.MethodDelete, "/api/delete", nil); status != 501 {
		t.Errorf("delete: %d, want 501", status)
	}
	digest := "/api/blobs/sha256:" + strings.Repeat("0a", 32) // as ollama create looks for its files, and sends them
	for _, c := range []struct {
		method, path string
		status       int
	}{{"HEAD", digest, 404}, {"HEAD", "/api/blobs/sha256:0a", 400}, {"POST", digest, 501}, {"POST", digest + "0", 400}} {
		if status, _, answer := f.do(c.method, c.path, strings.NewReader("GGUF")); status != c.status || c.status == 501 && !strings.Contains(string(answer), `"error"`) {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, status, answer, c.status)
		}
	}
}
