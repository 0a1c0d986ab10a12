package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// wireRendered is vLLM's GenerateRequest, every field of which an answer must have.
type wireRendered struct {
	ID     string  `json:"request_id"`
	Tokens []int32 `json:"token_ids"`
	Params struct {
		N                 int      `json:"n"`
		Temperature       float64  `json:"temperature"`
		TopP              float64  `json:"top_p"`
		TopK              int      `json:"top_k"`
		MinP              float64  `json:"min_p"`
		PresencePenalty   float64  `json:"presence_penalty"`
		FrequencyPenalty  float64  `json:"frequency_penalty"`
		RepetitionPenalty float64  `json:"repetition_penalty"`
		Seed              *uint64  `json:"seed"`
		Stop              []string `json:"stop"`
		MinTokens         int      `json:"min_tokens"`
		MaxTokens         int      `json:"max_tokens"`
		IgnoreEOS         bool     `json:"ignore_eos"`
		Logprobs          *int     `json:"logprobs"`
	} `json:"sampling_params"`
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Features   any             `json:"features"`
	Salt       any             `json:"cache_salt"`
	Priority   int             `json:"priority"`
	Transfer   any             `json:"kv_transfer_params"`
	Truncation json.RawMessage `json:"truncation"`
}

// rendered returns what a render endpoint answers.
func rendered[T any](f *fixture, path, body string) T {
	f.t.Helper()
	status, _, answer := f.post(path+"/render", body)
	if status != 200 {
		f.t.Fatalf("POST %s/render: %d %s", path, status, answer)
	}
	return strict[T](f.t.(*testing.T), answer)
}

// The answer to a request's rendered ids is the answer to the request.
func TestAChatIsRenderedAsItIsAnswered(t *testing.T) {
	f := start(t, &toy.Model{Context: 512}, nil)
	const tools = `,"tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}]`
	long := strings.Repeat(`{"role":"user","content":"`+strings.Repeat("long ", 30)+`"},{"role":"assistant","content":"Yes."},`, 10)
	for name, body := range map[string]string{
		"plain":     `{"messages":[{"role":"user","content":"Twelve apples"}]`,
		"system":    `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hi"}]}]`,
		"picker":    `{"model":"toy","messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":true,"continue_final_message":false,"chat_template_kwargs":{}`,
		"tools":     `{"messages":[{"role":"user","content":"Hi"}],"tool_choice":"none"` + tools,
		"continued": `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"It is"}]`,
		"truncated": `{"messages":[` + long + `{"role":"user","content":"Hi"}],"truncation":"auto"`,
	} {
		body += `,"temperature":0,"max_tokens":9}`
		got := rendered[wireRendered](f, "/v1/chat/completions", body)
		_, _, answer := f.post("/v1/chat/completions", body)
		var said struct {
			Choices []struct{ Message struct{ Content *string } }
			Usage   struct {
				Prompt int `json:"prompt_tokens"`
			}
		}
		if err := json.Unmarshal(answer, &said); err != nil || len(said.Choices) != 1 {
			t.Fatalf("%s: %s", name, answer)
		}
		_, _, answer = f.post("/v1/completions", fmt.Sprintf(`{"prompt":%s,"temperature":0,"max_tokens":9}`, must(json.Marshal(got.Tokens))))
		again := wholeText(t, answer, 1)
		if content := said.Choices[0].Message.Content; content == nil || *content != again.Choices[0].Text || said.Usage.Prompt != len(got.Tokens) {
			t.Errorf("%s: answered %s from %d tokens, its %d rendered ids %q", name, answer, said.Usage.Prompt, len(got.Tokens), again.Choices[0].Text)
		}
		if dropped := len(got.Truncation) > 0; dropped != (name == "truncated") {
			t.Errorf("%s: truncation %s", name, got.Truncation)
		}
	}
}

func TestCompletionsAreRenderedOneAPrompt(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	got := rendered[[]wireRendered](f, "/v1/completions", `{"prompt":["Twelve apples","b"]}`)
	if len(got) != 2 {
		t.Fatalf("%d prompts rendered, want 2", len(got))
	}
	for i, prompt := range []string{"Twelve apples", "b"} {
		_, _, answer := f.post("/tokenize", fmt.Sprintf(`{"prompt":%q}`, prompt))
		want := strict[struct {
			Tokens []int32 `json:"tokens"`
			Count  int     `json:"count"`
			Max    int     `json:"max_model_len"`
			Names  any     `json:"token_strs"`
		}](t, answer)
		if !slices.Equal(got[i].Tokens, want.Tokens) || !strings.HasPrefix(got[i].ID, "cmpl-") || got[i].Params.MaxTokens != 16 {
			t.Errorf("prompt %q rendered as %+v, tokenised as %v", prompt, got[i], want.Tokens)
		}
	}
	if ids := rendered[[]wireRendered](f, "/v1/completions", `{"prompt":[5,6,7]}`); !slices.Equal(ids[0].Tokens, []int32{5, 6, 7}) {
		t.Errorf("ids are rendered as %v", ids[0].Tokens)
	}
}

func TestRenderingTellsHowTheRequestIsSampled(t *testing.T) {
	f := start(t, &toy.Model{Context: 64}, nil)
	got := rendered[wireRendered](f, "/v1/chat/completions", chatBody(`,"n":3,"temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,"presence_penalty":1,"frequency_penalty":-1,`+
		`"repetition_penalty":1.5,"seed":9,"stop":"x","min_tokens":2,"max_tokens":5,"ignore_eos":true,"logprobs":true,"top_logprobs":4,"stream":true,"stream_options":{"include_usage":true}`))
	p := got.Params
	if p.N != 3 || p.Temperature != 0.5 || p.TopP != 0.25 || p.TopK != 7 || p.MinP != 0.125 || p.PresencePenalty != 1 || p.FrequencyPenalty != -1 || p.RepetitionPenalty != 1.5 ||
		p.Seed == nil || *p.Seed != 9 || !slices.Equal(p.Stop, []string{"x"}) || p.MinTokens != 2 || p.MaxTokens != 5 || !p.IgnoreEOS || p.Logprobs == nil || *p.Logprobs != 4 {
		t.Errorf("sampling_params = %+v", p)
	}
	if !got.Stream || got.StreamOptions == nil || !got.StreamOptions.Usage || got.Model != "toy" || !strings.HasPrefix(got.ID, "chatcmpl-") {
		t.Errorf("rendered %+v", got)
	}
	got = rendered[wireRendered](f, "/v1/chat/completions", chatBody(""))
	if p := got.Params; p.Seed != nil || p.Stop == nil || p.MaxTokens != 64-len(got.Tokens) || p.Logprobs != nil || p.N != 1 || p.RepetitionPenalty != 1 || got.StreamOptions != nil || got.Stream {
		t.Errorf("rendered %+v", got)
	}
}

// A search begins with the same ids as a plain answer, and is refused alike.
func TestWhatIsRefusedIsNotRendered(t *testing.T) {
	f := start(t, &toy.Model{Context: 64}, func(o *Options) { o.MaxChoices = 8 })
	plain := rendered[wireRendered](f, "/v1/chat/completions", chatBody(""))
	search := rendered[wireRendered](f, "/v1/chat/completions", chatBody(`,"test_time_scaling":"bon4;verifier=logprob"`))
	if !slices.Equal(plain.Tokens, search.Tokens) {
		t.Errorf("a search is rendered as %v, a plain request as %v", search.Tokens, plain.Tokens)
	}
	long := strings.Repeat("long ", 100)
	for path, bodies := range map[string][]string{
		"/v1/chat/completions": {
			`{`, `{}`, `{"messages":[]}`, `{"model":"nobody","messages":[]}`, `{"messages":[{"role":"king","content":"Hi"}]}`,
			`{"messages":[{"role":"user","content":"` + long + `"}]}`, chatBody(`,"temperature":3`), chatBody(`,"use_beam_search":true`), chatBody(`,"n":9`),
			chatBody(`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"nothing"}}}`), chatBody(`,"cache_salt":""`),
			chatBody(`,"test_time_scaling":"bon4;verifier=nobody"`), chatBody(`,"test_time_scaling":"bon4","temperature":0`), chatBody(`,"tool_choice":"required"`),
		},
		"/v1/completions": {
			`{}`, `{"prompt":""}`, `{"prompt":[]}`, `{"prompt":[99999]}`, `{"prompt":"` + long + `"}`, `{"prompt":["a","b","c"],"n":3}`, `{"prompt":"a","suffix":"b"}`,
			`{"prompt":"a","max_tokens":-2}`, `{"prompt":"a","prompt_logprobs":21}`, `{"prompt":"a","echo":true,"test_time_scaling":"bon4;verifier=logprob"}`,
		},
	} {
		for _, body := range bodies {
			want, _, refusal := f.post(path, body)
			got, _, answer := f.post(path+"/render", body)
			if want < 400 || got != want || !bytes.Equal(answer, refusal) {
				t.Errorf("POST %s %s: %d %s\nrendering it: %d %s", path, body, want, refusal, got, answer)
			}
		}
	}
	status, _, answer := f.post("/v1/completions/render", `{"prompt":"a","prompt_embeds":"x"}`)
	wantError(t, "prompt_embeds", status, answer, 400, jsonread.CodeUnsupported, "prompt_embeds")
}
