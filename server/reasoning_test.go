package server

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/lutra-lm/lutra/models/template"
	"github.com/lutra-lm/lutra/models/tokenizer"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// thoughtful answers after thinking.
const thoughtful = "<think>\nWhat is 3*4?\n</think>\n\nAnswer: 12"

// streamParts holds the parts of a stream that go-openai reads.
type streamParts struct{ reasoning, content, order string }

// streamOf streams a chat through go-openai; order has an r and a c where
// reasoning and content begin anew.
func streamOf(t *testing.T, f *fixture, req goopenai.ChatCompletionRequest) (out streamParts) {
	t.Helper()
	stream, err := f.client().CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			out.reasoning += c.Delta.ReasoningContent
			out.content += c.Delta.Content
			for _, part := range []struct{ mark, text string }{{"r", c.Delta.ReasoningContent}, {"c", c.Delta.Content}} {
				if part.text != "" && !strings.HasSuffix(out.order, part.mark) {
					out.order += part.mark
				}
			}
		}
	}
}

func ask(t *testing.T, f *fixture, req goopenai.ChatCompletionRequest) goopenai.ChatCompletionMessage {
	t.Helper()
	answer, err := f.client().CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Choices[0].Message
}

func TestThinkingIsSeparateFromTheAnswer(t *testing.T) {
	f := start(t, says(t, thoughtful), nil)
	req := goopenai.ChatCompletionRequest{Model: "toy", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}}
	want := streamParts{"What is 3*4?", "Answer: 12", "rc"}
	if m := ask(t, f, req); m.ReasoningContent != want.reasoning || m.Content != want.content {
		t.Errorf("the message is %+v, want %+v", m, want)
	}
	if got := streamOf(t, f, req); got != want {
		t.Errorf("streamed %+v, want %+v", got, want)
	}
	req.MaxCompletionTokens = 8 // within the thinking
	if m := ask(t, f, req); m.Content != "" || !strings.HasPrefix(thoughtful, "<think>\n"+m.ReasoningContent) {
		t.Errorf("cut off while thinking: %+v", m)
	}

	for _, body := range []string{`,"reasoning_format":"none"`, `,"reasoning_format":"none","stream":true`} {
		_, _, answer := f.post("/v1/chat/completions", chatBody(body))
		var text string
		if strings.Contains(body, "stream") {
			text = chatChunks(t, answer, 1, false)[0]
		} else {
			text = *wholeChat(t, answer, 1).Choices[0].Message.Content
		}
		if text != thoughtful {
			t.Errorf("%s: the content is %q, want all that was written", body, text)
		}
	}
	status, _, answer := f.post("/v1/chat/completions", chatBody(`,"reasoning_format":"deepseek"`))
	wantError(t, "another format", status, answer, 400, jsonread.CodeValue, "reasoning_format")
}

func TestASearchStreamsItsReasoning(t *testing.T) {
	f := real(t, nil)
	for _, plan := range []string{"bon4", "sc5", "beam8x4", "auto"} {
		seed := 7
		req := goopenai.ChatCompletionRequest{
			Model: "lutra-tiny-s", Seed: &seed, MaxCompletionTokens: 300,
			Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: problems(t, 1)[0].Question}},
			Metadata: map[string]string{"test_time_scaling": plan + ";n=8;stream_mode=reasoning"},
		}
		whole, streamed := ask(t, f, req), streamOf(t, f, req)
		if streamed.order != "rc" || streamed.content != whole.Content || streamed.reasoning != whole.ReasoningContent {
			t.Errorf("%s: streamed %+v, whole %+v", plan, streamed, whole)
		}
		req.Metadata["test_time_scaling"] = plan + ";n=8"
		if plain := ask(t, f, req); plain.Content != whole.Content || plain.ReasoningContent != "" {
			t.Errorf("%s: without reasoning the answer is %+v, with it %q", plan, plain, whole.Content)
		}
		lines := strings.Split(strings.TrimSpace(whole.Content), "\n")
		for _, line := range append(lines, "Chosen: candidate") { // of the answer, for it led in the end
			if plan == "beam8x4" && !strings.Contains(whole.ReasoningContent, line) {
				t.Errorf("%s: the reasoning %q lacks %q", plan, whole.ReasoningContent, line)
			}
		}
	}
}

func TestAThoughtEndsWhereItsBoundIs(t *testing.T) {
	f := start(t, says(t, thoughtful), nil)
	f.withTemplate(template.ChatML + "{# </think> #}")
	free := ask(t, f, goopenai.ChatCompletionRequest{Model: "toy", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Hi"}}})
	said := func(field string) goopenai.ChatCompletionMessage {
		_, _, answer := f.post("/v1/chat/completions", chatBody(`,"max_tokens":200,`+field))
		var got goopenai.ChatCompletionResponse
		if err := json.Unmarshal(answer, &got); err != nil || len(got.Choices) != 1 {
			t.Fatalf("%s: %s", field, answer)
		}
		return got.Choices[0].Message
	}
	for _, field := range []string{`"thinking_token_budget":4`, `"reasoning_budget":4`, `"thinking_budget_tokens":4`, `"reasoning":{"max_tokens":4}`} {
		got := said(field)
		n := len(f.model.Tokenizer.Encode(nil, "\n"+got.ReasoningContent, tokenizer.Options{}))
		if !strings.HasPrefix(free.ReasoningContent, got.ReasoningContent) || n > 4 || got.ReasoningContent == free.ReasoningContent || got.Content == "" {
			t.Errorf("%s: %q after %q, want an answer after four tokens of %q", field, got.Content, got.ReasoningContent, free.ReasoningContent)
		}
	}
	for _, field := range []string{`"thinking_token_budget":-1`, `"reasoning_budget":1000`} {
		if got := said(field); got.ReasoningContent != free.ReasoningContent || got.Content != free.Content {
			t.Errorf("%s: %q after %q, want what was written without a bound", field, got.Content, got.ReasoningContent)
		}
	}
	f.withTemplate(template.ChatML + "{# </think> #}{{ enable_thinking }}")
	if got, _ := f.applied(`{"messages":[` + asks + `],"reasoning_budget":0}`); !strings.HasSuffix(got, "False") {
		t.Errorf("with a bound of 0 the template reads %q, want thinking off", got)
	}
}
