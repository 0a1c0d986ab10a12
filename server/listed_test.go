package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/models/toy"
)

// vllmAnswer has the fields that vLLM's return_token_ids and prompt_logprobs add: to a chat's answer, and to each choice of
// completions.
type vllmAnswer struct {
	vllmPrompt
	Choices []struct {
		vllmPrompt
		Index    int
		TokenIDs []int32 `json:"token_ids"`
		Logprobs *struct {
			Logprobs []*float64       `json:"token_logprobs"`
			Top      []map[string]any `json:"top_logprobs"`
		}
	}
}

type vllmPrompt struct {
	Prompt []int32                 `json:"prompt_token_ids"`
	Scores []map[string]vllmScored `json:"prompt_logprobs"`
}

type vllmScored struct {
	Logprob float64
	Rank    int
	Decoded *string `json:"decoded_token"`
}

// manyMinds makes a toy model that is in many minds about everything, and ends its turn where the number of tokens
// is a multiple of 16.
func manyMinds(t *testing.T) *toy.Model {
	end, _ := words().EOS()
	return &toy.Model{Logits: func(tokens []int32, row []float32) {
		for i := range row {
			row[i] = float32((i*7+len(tokens)*13)%61) / 9
		}
		if len(tokens)%16 == 0 {
			row[end] = 50
		}
	}}
}

func TestTokensAreListedAsVLLMListsThem(t *testing.T) {
	f := start(t, manyMinds(t), nil)
	prompts := [][]int32{{5, 6, 7, 8}, {9, 6, 7, 8, 10}}
	for _, stream := range []bool{false, true} {
		for _, stop := range []string{"", `,"stop":["e"]`} {
			body := fmt.Sprintf(`{"prompt":[[5,6,7,8],[9,6,7,8,10]],"n":2,"max_tokens":20,"temperature":0,"return_token_ids":true,"return_tokens":true,"stream":%t%s}`, stream, stop)
			_, _, answer := f.post("/v1/completions", body)
			list, tokens := [4][]vllmPrompt{}, [4][]int32{}
			answers := []vllmAnswer{}
			if stream {
				answers = eventsOf[vllmAnswer](t, answer)
			} else {
				answers = append(answers, strictless[vllmAnswer](t, answer))
			}
			for _, a := range answers {
				for _, c := range a.Choices {
					tokens[c.Index] = append(tokens[c.Index], c.TokenIDs...)
					if c.Prompt != nil {
						list[c.Index] = append(list[c.Index], c.vllmPrompt)
					}
				}
			}
			for i := range tokens {
				if len(list[i]) != 1 || !slices.Equal(list[i][0].Prompt, prompts[i/2]) {
					t.Errorf("stream %t: choice %d has the prompts %v, want %v once", stream, i, list[i], prompts[i/2])
				}
				want := f.tokensAfter(prompts[i/2], 20)
				if stop != "" { // to the token that completes the stop string
					for n := range want {
						if strings.Contains(f.model.Decode(want[:n+1]), "e") {
							want = want[:n+1]
							break
						}
					}
				}
				if !slices.Equal(tokens[i], want) {
					t.Errorf("stream %t, %s: choice %d has tokens %v, want %v", stream, stop, i, tokens[i], want)
				}
			}
		}
		_, _, answer := f.post("/v1/chat/completions", chatBody(fmt.Sprintf(`,"n":2,"max_tokens":20,"temperature":0,"return_token_ids":true,"stream":%t`, stream)))
		var prompt []int32
		tokens := [2][]int32{}
		answers := []vllmAnswer{}
		if stream {
			answers = eventsOf[vllmAnswer](t, answer)
		} else {
			answers = append(answers, strictless[vllmAnswer](t, answer))
		}
		for _, a := range answers {
			prompt = append(prompt, a.Prompt...)
			for _, c := range a.Choices {
				tokens[c.Index] = append(tokens[c.Index], c.TokenIDs...)
			}
		}
		if want := f.tokensAfter(prompt, 20); len(prompt) == 0 || !slices.Equal(tokens[0], want) || !slices.Equal(tokens[1], want) {
			t.Errorf("stream %t: a chat's prompt %v and tokens %v, want %v", stream, prompt, tokens, want)
		}
	}
}

// tokensAfter returns what the model says after a prompt at temperature 0.
func (f *fixture) tokensAfter(prompt []int32, most int) []int32 {
	body, _ := json.Marshal(map[string]any{"prompt": prompt, "max_tokens": most, "temperature": 0, "return_tokens": true})
	_, _, answer := f.post("/v1/completions", string(body))
	var a struct{ Choices []struct{ Tokens []int32 } }
	if err := json.Unmarshal(answer, &a); err != nil || len(a.Choices) != 1 {
		f.t.Fatalf("%s: %v", answer, err)
	}
	return a.Choices[0].Tokens
}

func TestAPromptsLogprobsAreTheModels(t *testing.T) {
	f := start(t, manyMinds(t), nil)
	prompt := make([]int32, 40)
	for i := range prompt {
		prompt[i] = int32(100 + i*3)
	}
	ids, _ := json.Marshal(prompt)
	for _, top := range []int{0, 3, 20} {
		_, _, answer := f.post("/v1/completions", fmt.Sprintf(`{"prompt":%s,"n":2,"max_tokens":2,"temperature":0,"echo":true,"logprobs":2,"prompt_logprobs":%d}`, ids, top))
		a := strictless[vllmAnswer](t, answer)
		for _, c := range a.Choices {
			if len(c.Scores) != len(prompt) || c.Scores[0] != nil || c.Prompt != nil {
				t.Fatalf("%d tokens of %d, the first %v, ids %v", len(c.Scores), len(prompt), c.Scores[0], c.Prompt)
			}
			for i := 1; i < len(prompt); i++ {
				f.checkScored(c.Scores[i], prompt[:i], prompt[i], top)
				if got := c.Scores[i][strconv.Itoa(int(prompt[i]))].Logprob; math.Abs(got-*c.Logprobs.Logprobs[i]) > 1e-6 || len(c.Logprobs.Top[i]) > 2 {
					t.Errorf("token %d has %v and echoed %v with %v", i, got, *c.Logprobs.Logprobs[i], c.Logprobs.Top[i])
				}
			}
		}
	}
	_, _, answer := f.post("/v1/chat/completions", chatBody(`,"max_tokens":2,"prompt_logprobs":2,"return_token_ids":true`))
	a := strictless[vllmAnswer](t, answer)
	if len(a.Prompt) == 0 || len(a.Scores) != len(a.Prompt) {
		t.Fatalf("a chat lists %d log-probabilities of %d tokens", len(a.Scores), len(a.Prompt))
	}
	for i := 1; i < len(a.Prompt); i++ {
		f.checkScored(a.Scores[i], a.Prompt[:i], a.Prompt[i], 2)
	}
}

// checkScored holds a token of a prompt to the toy's logits.
func (f *fixture) checkScored(got map[string]vllmScored, before []int32, id int32, top int) {
	f.t.Helper()
	row := make([]float32, vocab)
	manyMinds(f.t.(*testing.T)).Logits(before, row)
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x))
	}
	own, found := got[strconv.Itoa(int(id))]
	if n := len(got); !found || n < max(top, 1) || n > top+1 {
		f.t.Fatalf("token %d lists %v, want itself and %d", id, got, top)
	}
	for name, s := range got {
		i, err := strconv.Atoi(name)
		if err != nil || s.Decoded == nil || math.Abs(s.Logprob-(float64(row[i])-math.Log(sum))) > 1e-4 {
			f.t.Fatalf("token %s after %d tokens has %v, want %v", name, len(before), s, float64(row[i])-math.Log(sum))
		}
	}
	rank := 0
	for _, x := range row {
		if x >= row[id] {
			rank++
		}
	}
	if own.Rank != rank {
		f.t.Errorf("token %d has rank %d, want %d", id, own.Rank, rank)
	}
}

// eventsOf decodes the events of a stream, of which only a part is of interest.
func eventsOf[T any](t *testing.T, stream []byte) (list []T) {
	t.Helper()
	for line := range strings.Lines(string(stream)) {
		if data, ok := strings.CutPrefix(line, "data: {"); ok {
			list = append(list, strictless[T](t, []byte("{"+data)))
		}
	}
	return list
}

// strictless decodes an answer of which only a part is of interest.
func strictless[T any](t *testing.T, answer []byte) (a T) {
	t.Helper()
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return a
}

func TestWhatVLLMListsIsBoundedAndRefusedElsewhere(t *testing.T) {
	f := start(t, manyMinds(t), nil)
	for _, c := range []struct{ path, body, param string }{
		{"/v1/completions", `{"prompt":"a","prompt_logprobs":21}`, "prompt_logprobs"},
		{"/v1/completions", `{"prompt":"a","prompt_logprobs":-1}`, "prompt_logprobs"},
		{"/v1/completions", `{"prompt":"a","prompt_logprobs":1.5}`, "prompt_logprobs"},
		{"/v1/completions", `{"prompt":"a","prompt_logprobs":1,"stream":true}`, "prompt_logprobs"},
		{"/v1/completions", `{"prompt":"a","return_token_ids":1}`, "return_token_ids"},
		{"/v1/completions", `{"prompt":"a","best_of":3,"return_token_ids":true}`, "best_of"},
		{"/v1/completions", `{"prompt":"a","cache_salt":""}`, "cache_salt"},
		{"/v1/completions", `{"prompt":"a","cache_salt":7}`, "cache_salt"},
		{"/v1/completions", `{"prompt":"a","cache_salt":"` + strings.Repeat("x", 1025) + `"}`, "cache_salt"},
		{"/v1/chat/completions", chatBody(`,"test_time_scaling":"sc4","prompt_logprobs":1`), ""},
		{"/v1/responses", `{"input":"a","prompt_logprobs":1}`, "prompt_logprobs"},
		{"/v1/responses", `{"input":"a","return_token_ids":true}`, "return_token_ids"},
	} {
		status, _, answer := f.post(c.path, c.body)
		var fault struct{ Error struct{ Param *string } }
		if err := json.Unmarshal(answer, &fault); err != nil || status != http.StatusBadRequest || c.param != "" && (fault.Error.Param == nil || *fault.Error.Param != c.param) {
			t.Errorf("%s %.60s: %d %s, want a fault of %s", c.path, c.body, status, answer, c.param)
		}
	}
	if status, _, answer := f.post("/v1/completions", `{"prompt":"a","max_tokens":1,"prompt_logprobs":0,"stream":true}`); status != http.StatusOK {
		t.Errorf("a stream that asks for no log-probabilities: %d %s", status, answer)
	}
}

// TestASaltKeepsPrefixesApart asks the same in all APIs, by two tenants: tokens come from the cache where the tenant itself
// has asked before.
func TestASaltKeepsPrefixesApart(t *testing.T) {
	text := strings.Repeat("one two three ", 60)
	for _, api := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"%s"}],"max_tokens":1%s}`},
		{"/v1/completions", `{"prompt":"%s","max_tokens":1%s}`},
		{"/v1/responses", `{"input":"%s","max_output_tokens":16%s}`},
		{"/v1/messages", `{"model":"toy","messages":[{"role":"user","content":"%s"}],"max_tokens":1%s}`},
		{"/api/generate", `{"model":"toy","prompt":"%s","stream":false,"options":{"num_predict":1}%s}`},
		{"/completion", `{"prompt":"%s","n_predict":1%s}`},
	} {
		f := start(t, manyMinds(t), nil)
		for _, c := range []struct {
			salt string
			hit  bool
		}{{`,"cache_salt":"a"`, false}, {`,"cache_salt":"b"`, false}, {"", false}, {`,"cache_salt":"a"`, true}, {`,"cache_salt":"b"`, true}, {"", true}} {
			before := f.engine.Stats().PrefixHits
			status, _, answer := f.post(api.path, fmt.Sprintf(api.body, text, c.salt))
			if status != http.StatusOK {
				t.Fatalf("%s: %d %s", api.path, status, answer)
			}
			for f.engine.Busy() { // an answer may leave before its step is counted
				runtime.Gosched()
			}
			got := f.engine.Stats().PrefixHits - before
			if (got > 0) != c.hit {
				t.Errorf("%s with %q: %d tokens came from the cache", api.path, c.salt, got)
			}
		}
	}
}
