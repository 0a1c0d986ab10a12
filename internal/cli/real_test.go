package cli

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sashabaranov/go-openai"
)

// servingReal serves public models of the folder that LUTRA_REAL names, which `.ci/real` fills.
func servingReal(t *testing.T, names ...string) *openai.Client {
	t.Helper()
	dir := os.Getenv("LUTRA_REAL")
	if dir == "" {
		t.Skip("LUTRA_REAL names no folder of public models; .ci/real makes one")
	}
	t.Setenv("LUTRA_KV_MEMORY", "1GiB")
	args := []string{"--addr", "127.0.0.1:0"}
	for _, name := range names {
		args = append(args, "--model", filepath.Join(dir, name))
	}
	cfg := openai.DefaultConfig("")
	cfg.BaseURL = serving(t, args...).base + "/v1"
	return openai.NewClientWithConfig(cfg)
}

// answered returns the only answer of a chat and what it was counted as.
func answered(t *testing.T, c *openai.Client, req openai.ChatCompletionRequest) (openai.ChatCompletionMessage, openai.Usage) {
	t.Helper()
	r, err := c.CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r.Choices[0].Message, r.Usage
}

func user(text string) openai.ChatCompletionMessage {
	return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text}
}

func TestAPublicModelReadsNoTurnOfAConversationTwice(t *testing.T) {
	c := servingReal(t, "smollm2.gguf")
	seed := 7
	req := openai.ChatCompletionRequest{Model: "smollm2", MaxCompletionTokens: 48, Seed: &seed}
	before := 0
	for turn := range 10 {
		req.Messages = append(req.Messages, user(fmt.Sprintf("Tell me one more thing about the number %d, in a sentence.", turn+3)))
		m, u := answered(t, c, req)
		if m.Content == "" || u.PromptTokens <= before {
			t.Fatalf("turn %d: %q after %d tokens, before it %d", turn, m.Content, u.PromptTokens, before)
		}
		if u.PromptTokensDetails == nil {
			t.Fatalf("turn %d: usage %+v tells nothing of the cache", turn, u)
		}
		// What is read again: a block that is not full, and what the template turns the last answer into.
		if again := before - u.PromptTokensDetails.CachedTokens; again > 48 {
			t.Errorf("turn %d: %d tokens of %d were computed again", turn, again, before)
		}
		before = u.PromptTokens
		req.Messages = append(req.Messages, openai.ChatCompletionMessage{Role: m.Role, Content: m.Content})
	}
}

func TestAPublicModelAnswersWithinASchema(t *testing.T) {
	c := servingReal(t, "qwen2.5-coder-1.5b.gguf")
	schema := `{"type":"object","properties":{"city":{"type":"string","maxLength":40},"inhabitants":{"type":"integer"},"rivers":{"type":"array","items":{"type":"string","maxLength":30},"maxItems":3}},"required":["city","inhabitants","rivers"],"additionalProperties":false}`
	for seed := range 3 {
		m, _ := answered(t, c, openai.ChatCompletionRequest{
			Model: "qwen2.5-coder-1.5b", Messages: []openai.ChatCompletionMessage{user("Describe the city of Vienna.")}, MaxCompletionTokens: 200, Seed: &seed,
			ResponseFormat: &openai.ChatCompletionResponseFormat{Type: openai.ChatCompletionResponseFormatTypeJSONSchema, JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{Name: "city", Strict: true, Schema: json.RawMessage(schema)}},
		})
		var city struct {
			City        *string
			Inhabitants *int
			Rivers      []string
		}
		if err := json.Unmarshal([]byte(m.Content), &city); err != nil || city.City == nil || city.Inhabitants == nil {
			t.Errorf("seed %d: %q, %v", seed, m.Content, err)
		}
	}
}

func TestAPublicModelCallsTheToolThatAQuestionWants(t *testing.T) {
	c := servingReal(t, "qwen2.5-coder-1.5b.gguf")
	weather := openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
		Name: "get_weather", Description: "Returns the weather of a city.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}}
	zero := 0
	req := openai.ChatCompletionRequest{
		Model: "qwen2.5-coder-1.5b", Tools: []openai.Tool{weather}, ToolChoice: "required", MaxCompletionTokens: 100, Seed: &zero,
		Messages: []openai.ChatCompletionMessage{user("What is the weather in Paris?")},
	}
	m, _ := answered(t, c, req)
	if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "get_weather" || !strings.Contains(m.ToolCalls[0].Function.Arguments, "Paris") {
		t.Fatalf("%+v, want get_weather of Paris", m)
	}
	req.ToolChoice = nil
	req.Messages = append(req.Messages, m, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: m.ToolCalls[0].ID, Content: `{"weather":"hail","celsius":4}`})
	if m, _ = answered(t, c, req); !strings.Contains(strings.ToLower(m.Content), "hail") {
		t.Errorf("after the tool's answer: %+v, want hail", m)
	}
}

func TestStreamsOfAPublicModelHaveTheTokensThatTheyHaveAlone(t *testing.T) {
	c := servingReal(t, "smollm2.gguf")
	ask := func(i int) string {
		seed := i
		r, err := c.CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{
			Model: "smollm2", MaxCompletionTokens: 32, Temperature: 0.9, Seed: &seed,
			Messages: []openai.ChatCompletionMessage{user(strings.Repeat("Once upon a time, ", i%5) + fmt.Sprintf("what comes after %d?", i))},
		})
		if err != nil {
			t.Error(err)
			return ""
		}
		return r.Choices[0].Message.Content
	}
	var crowd [32]string
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() { crowd[i] = ask(i) })
	}
	all.Wait()
	for i := 0; i < len(crowd); i += 3 {
		if alone := ask(i); alone != crowd[i] {
			t.Errorf("stream %d: %q alone, %q among 32", i, alone, crowd[i])
		}
	}
}

func TestVectorsOfAPublicEncoderAreThoseOfTransformers(t *testing.T) {
	c := servingReal(t, "minilm")
	f, err := os.Open("../../lab/reference/testdata/real/minilm.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []struct {
		Text   string
		Vector []float64
	}
	if err := json.NewDecoder(must(gzip.NewReader(f))).Decode(&want); err != nil {
		t.Fatal(err)
	}
	texts := make([]string, len(want))
	for i := range want {
		texts[i] = want[i].Text
	}
	r, err := c.CreateEmbeddings(t.Context(), openai.EmbeddingRequestStrings{Model: "minilm", Input: texts})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		dot, norm := 0.0, 0.0
		for k, v := range r.Data[i].Embedding {
			dot, norm = dot+float64(v)*want[i].Vector[k], norm+float64(v)*float64(v)
		}
		if cosine := dot / math.Sqrt(norm); cosine < 0.9999 {
			t.Errorf("%q: cosine %.7f", want[i].Text, cosine)
		}
	}
}
