package server

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/registry"
)

func TestATextCompletionAnswersAnOpenAIClient(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	seed := 1
	resp, err := f.client().CreateCompletion(t.Context(), goopenai.CompletionRequest{Model: "toy", Prompt: "Once", MaxTokens: 5, N: 2, LogProbs: 2, Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Choices) != 2 || resp.Usage.CompletionTokens == 0 || len(resp.Choices[0].LogProbs.Tokens) == 0 {
		t.Errorf("response = %+v", resp)
	}
}

func TestEveryFormOfPromptIsTaken(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	for _, c := range []struct {
		prompt  string
		choices int
		tokens  int // of all prompts; 0: not known here
	}{
		{`"Once"`, 1, 0}, {`["Once","Twice"]`, 2, 0}, {`[5,6,7]`, 1, 3}, {`[[5,6],[7]]`, 2, 3},
	} {
		_, _, answer := f.post("/v1/completions", `{"prompt":`+c.prompt+`,"max_tokens":3}`)
		if got := wholeText(t, answer, c.choices); c.tokens != 0 && got.Usage.Prompt != c.tokens {
			t.Errorf("prompt %s: %d tokens, want %d", c.prompt, got.Usage.Prompt, c.tokens)
		}
	}
}

func TestAPromptInAListIsAnsweredAsItIsAlone(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	_, _, both := f.post("/v1/completions", `{"prompt":[[5,6],[7,8,9]],"n":2,"seed":4}`)
	_, _, second := f.post("/v1/completions", `{"prompt":[7,8,9],"n":2,"seed":4}`)
	listed, alone := wholeText(t, both, 4).Choices[2:], wholeText(t, second, 2).Choices
	for i := range alone {
		if listed[i].Text != alone[i].Text {
			t.Errorf("choice %d is %q in a list and %q alone", i, listed[i].Text, alone[i].Text)
		}
	}
}

// loglikelihood returns how lm-evaluation-harness reads the score of a continuation
// that begins after context tokens: the last, generated token is dropped.
func loglikelihood(c wireText, context int) (sum float64, greedy bool) {
	l := c.Choices[0].Logprobs
	greedy = true
	for i := context; i < len(l.Tokens)-1; i++ {
		sum += *l.TokenLogprobs[i]
		best := math.Inf(-1)
		for _, v := range l.TopLogprobs[i] {
			best = max(best, v)
		}
		greedy = greedy && *l.TokenLogprobs[i] == best
	}
	return sum, greedy
}

func TestEchoedLogprobsServeAnEvaluationHarness(t *testing.T) {
	reply := []int{300, 400, 500, 600}
	f := start(t, &toy.Model{Logits: func(tokens []int32, row []float32) {
		for i := range row {
			row[i] = float32((i*7+len(tokens)*13)%11) / 4
		}
		if i := len(tokens) - 3; i >= 0 && i < len(reply) {
			row[reply[i]] += 4
		}
	}}, nil)
	// What greedy decoding says must score as greedy, and as it was scored when said.
	_, _, answer := f.post("/v1/completions", `{"prompt":[5,6,7],"max_tokens":4,"temperature":0,"logprobs":1}`)
	said := wholeText(t, answer, 1).Choices[0].Logprobs
	sampled := 0.0
	for _, v := range said.TokenLogprobs {
		sampled += *v
	}
	prompt := slices.Concat([]int{5, 6, 7}, reply)
	_, _, answer = f.post("/v1/completions", fmt.Sprintf(`{"prompt":%s,"max_tokens":1,"temperature":0,"logprobs":1,"echo":true}`, must(json.Marshal(prompt))))
	echoed := wholeText(t, answer, 1)
	l := echoed.Choices[0].Logprobs
	if len(l.Tokens) != len(prompt)+1 || l.TokenLogprobs[0] != nil || l.TopLogprobs[0] != nil {
		t.Fatalf("echo lists %d tokens of a prompt of %d and one more, beginning with %v", len(l.Tokens), len(prompt), l.TokenLogprobs[0])
	}
	if !slices.Equal(l.Tokens[3:7], said.Tokens) {
		t.Errorf("echoed %q, said %q", l.Tokens[3:7], said.Tokens)
	}
	if sum, greedy := loglikelihood(echoed, 3); !greedy || math.Abs(sum-sampled) > 1e-4 {
		t.Errorf("continuation scores %v (greedy: %v), was said with %v", sum, greedy, sampled)
	}
	if _, greedy := loglikelihood(echoed, 1); greedy {
		t.Error("tokens that nobody sampled count as greedy")
	}
	offset := 0
	for i, token := range l.Tokens {
		if l.TextOffset[i] != offset {
			t.Errorf("text_offset = %v, want %d at token %d", l.TextOffset, offset, i)
		}
		offset += utf8.RuneCountInString(token)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAPromptCanBeScoredWithoutGenerating(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	_, _, answer := f.post("/v1/completions", `{"prompt":"Twelve apples","max_tokens":0,"logprobs":0,"echo":true}`)
	c := wholeText(t, answer, 1)
	if c.Choices[0].Text != "Twelve apples" || c.Usage.Completion != 0 || len(c.Choices[0].Logprobs.Tokens) != c.Usage.Prompt {
		t.Errorf("answer %s", answer)
	}
}

func TestAStreamedCompletionConcatenatesToTheUnstreamed(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	body := func(stream bool) string {
		return fmt.Sprintf(`{"prompt":["a","b"],"n":2,"seed":9,"max_tokens":20,"logprobs":1,"echo":true,"stream":%v`, stream)
	}
	_, _, answer := f.post("/v1/completions", body(false)+`}`)
	whole := wholeText(t, answer, 4)
	_, _, stream := f.post("/v1/completions", body(true)+`,"stream_options":{"include_usage":true}}`)
	type part struct {
		text    strings.Builder
		tokens  []string
		offsets []int
	}
	var parts [4]part
	all := chunks[wireText](t, stream)
	for _, c := range all[:len(all)-1] {
		p := &parts[c.Choices[0].Index]
		p.text.WriteString(c.Choices[0].Text)
		p.tokens = append(p.tokens, c.Choices[0].Logprobs.Tokens...)
		p.offsets = append(p.offsets, c.Choices[0].Logprobs.TextOffset...)
	}
	if last := all[len(all)-1]; last.Usage == nil || *last.Usage != *whole.Usage && last.Usage.Completion != whole.Usage.Completion {
		t.Errorf("streamed usage %+v, unstreamed %+v", last.Usage, whole.Usage)
	}
	for i, c := range whole.Choices {
		p := &parts[i]
		if c.Text != p.text.String() || !slices.Equal(c.Logprobs.Tokens, p.tokens) || !slices.Equal(c.Logprobs.TextOffset, p.offsets) {
			t.Errorf("choice %d streamed %q %q %v,\nunstreamed %q %q %v", i, p.text.String(), p.tokens, p.offsets, c.Text, c.Logprobs.Tokens, c.Logprobs.TextOffset)
		}
	}
}

func TestDetokenizeInvertsTokenize(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	const text = "Twelve <|im_end|> äpples 🙂"
	_, _, answer := f.post("/tokenize", `{"content":"`+text+`","return_token_strs":true,"add_special":false}`)
	got := strict[struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []int32  `json:"tokens"`
		TokenStrs   []string `json:"token_strs"`
	}](t, answer)
	if got.Count != len(got.Tokens) || got.Count != len(got.TokenStrs) || got.MaxModelLen != f.model.Context || !slices.Contains(got.TokenStrs, "<|im_end|>") {
		t.Errorf("tokenize: %s", answer)
	}
	_, _, answer = f.post("/detokenize", fmt.Sprintf(`{"tokens":%s}`, must(json.Marshal(got.Tokens))))
	if back := strict[struct{ Prompt, Content string }](t, answer); back.Content != text || back.Prompt != back.Content {
		t.Errorf("detokenize: %s", answer)
	}
	_, _, answer = f.post("/apply-template", chatBody(""))
	rendered := strict[struct{ Prompt string }](t, answer).Prompt
	if !strings.Contains(rendered, "Hi<|im_end|>") || !strings.HasSuffix(rendered, "<|im_start|>assistant\n") {
		t.Errorf("apply-template: %q", rendered)
	}
	_, _, answer = f.post("/tokenize", chatBody(""))
	_, _, completion := f.post("/v1/chat/completions", chatBody(`,"max_tokens":1`))
	var count struct{ Count int }
	if err := json.Unmarshal(answer, &count); err != nil || count.Count != wholeChat(t, completion, 1).Usage.Prompt {
		t.Errorf("tokenize counts %d tokens of a chat, its completion %s", count.Count, completion)
	}
	for path, body := range map[string]string{
		"/tokenize":       `{}`,
		"/detokenize":     `{}`,
		"/apply-template": `{"messages":[]}`,
	} {
		if status, _, answer := f.post(path, body); status != 400 {
			t.Errorf("%s of nothing: %d %s", path, status, answer)
		}
	}
	status, _, answer := f.post("/detokenize", `{"tokens":[1024]}`)
	wantError(t, "detokenize", status, answer, 400, jsonread.CodeValue, "tokens[0]")
}

func TestModelsAreListedUnderAllTheirNames(t *testing.T) {
	f := start(t, says(t, "First."), nil)
	second := toyModel(t, says(t, "Second."), "org/second", nil)
	if err := f.Publish(registry.Served{Model: f.model, Aliases: []string{"gpt-4o"}}, registry.Served{Model: second}); err != nil {
		t.Fatal(err)
	}
	list, err := f.client().ListModels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range list.Models {
		ids = append(ids, m.ID)
	}
	if want := []string{"toy", "gpt-4o", "org/second", "toy+beam16x4", "toy+bon8", "toy+cert8", "toy+sc16", "toy+sc8", "org/second+beam16x4", "org/second+bon8", "org/second+cert8", "org/second+sc16", "org/second+sc8"}; !slices.Equal(ids, want) {
		t.Errorf("models = %q, want %q", ids, want)
	}
	if m, err := f.client().GetModel(t.Context(), "org/second"); err != nil || m.ID != "org/second" {
		t.Errorf("GetModel = %+v, %v", m, err)
	}
	if _, _, answer := f.do("GET", "/v1/models/org%2Fsecond", nil); !strings.Contains(string(answer), `"id":"org/second"`) {
		t.Errorf("an escaped name finds %s", answer)
	}
	for name, want := range map[string]string{"toy": "First.", "gpt-4o": "First.", "default": "First.", "org/second": "Second."} {
		_, _, answer := f.post("/v1/chat/completions", strings.Replace(chatBody(""), "toy", name, 1))
		if c := wholeChat(t, answer, 1); *c.Choices[0].Message.Content != want || c.Model != name {
			t.Errorf("model %q said %s", name, answer)
		}
	}
	for _, bad := range [][]registry.Served{{}, {{Model: f.model}, {Model: f.model}}, {{Model: f.model, Aliases: []string{"default"}}}, {{Model: f.model, Aliases: []string{""}}}} {
		if f.Publish(bad...) == nil {
			t.Errorf("Publish(%d models) was accepted", len(bad))
		}
	}
}
