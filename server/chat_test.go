package server

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/models/toy"
)

func user(text string) []goopenai.ChatCompletionMessage {
	return []goopenai.ChatCompletionMessage{{Role: goopenai.ChatMessageRoleUser, Content: text}}
}

func TestAChatCompletionAnswersAnOpenAIClient(t *testing.T) {
	f := start(t, says(t, "Hello <there> & héllo."), nil)
	resp, err := f.client().CreateChatCompletion(t.Context(), goopenai.ChatCompletionRequest{Model: "toy", Messages: user("Hi")})
	if err != nil {
		t.Fatal(err)
	}
	got := resp.Choices[0]
	if got.Message.Content != "Hello <there> & héllo." || got.Message.Role != "assistant" || got.FinishReason != "stop" {
		t.Errorf("choice = %+v", got)
	}
	if u := resp.Usage; u.PromptTokens == 0 || u.CompletionTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage = %+v, want a sum", u)
	}
	if resp.Model != "toy" || resp.Object != "chat.completion" || !strings.HasPrefix(resp.ID, "chatcmpl-") {
		t.Errorf("response = %+v", resp)
	}
}

func TestAStreamedChatConcatenatesToTheUnstreamed(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	seed := 7
	req := goopenai.ChatCompletionRequest{Model: "toy", Messages: user("Tell me"), Seed: &seed, N: 3, MaxCompletionTokens: 40, Stop: []string{"zz", "e"}}
	whole, err := f.client().CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
	stream, err := f.client().CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var texts [3]string
	var finish [3]goopenai.FinishReason
	var usage *goopenai.Usage
	for i := 0; ; i++ {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Usage != nil {
			usage = chunk.Usage
			continue
		}
		c := chunk.Choices[0]
		if i < 3 && (c.Delta.Role != "assistant" || c.Index != i) {
			t.Errorf("chunk %d = %+v, want choice %d's role", i, c, i)
		}
		if finish[c.Index] != "" {
			t.Errorf("choice %d goes on after its end: %+v", c.Index, c)
		}
		texts[c.Index] += c.Delta.Content
		finish[c.Index] = c.FinishReason
	}
	for i, c := range whole.Choices {
		if c.Message.Content != texts[i] || c.FinishReason != finish[i] {
			t.Errorf("choice %d streamed %q (%s), unstreamed %q (%s)", i, texts[i], finish[i], c.Message.Content, c.FinishReason)
		}
	}
	if usage == nil || usage.PromptTokens != whole.Usage.PromptTokens || usage.CompletionTokens != whole.Usage.CompletionTokens {
		t.Errorf("streamed usage %+v, unstreamed %+v", usage, whole.Usage)
	}
	if slices.Equal(texts[:1], texts[1:2]) {
		t.Errorf("two choices say the same: %q", texts)
	}
}

func openaiRequest(text string) goopenai.ChatCompletionRequest {
	return goopenai.ChatCompletionRequest{Model: "toy", Messages: user(text)}
}
