package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/sashabaranov/go-openai"
)

// Chunk is a part of a streamed answer, with the fields that only a lutra server sends.
type Chunk struct {
	Model   string
	Choices []struct {
		Index        int
		Delta        Delta
		FinishReason string     `json:"finish_reason"`
		Chosen       *Candidate `json:"test_time_scaling"` // with FinishReason: the candidate that the choice is
	}
	Usage      *Usage
	Truncation struct {
		Dropped int `json:"dropped_messages"`
	}
	Search *Search `json:"test_time_scaling"` // how it goes; with FinishReason, what it came to
}

// Delta holds the new part of a choice.
type Delta struct {
	Content          string
	ReasoningContent string     `json:"reasoning_content"` // of the thought before it, as vLLM and llama.cpp have it
	Reasoning        string     // likewise as newer servers have it
	ToolCalls        []ToolCall `json:"tool_calls"`
}

// ToolCall is a piece of a call of a tool.
type ToolCall struct {
	Index    int
	ID       string
	Function struct{ Name, Arguments string }
}

// Usage counts an answer's tokens.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Search     *struct {
		Verifier  int `json:"verifier_tokens"`
		Critiques int `json:"critique_tokens"`
	} `json:"test_time_scaling"`
}

// Search holds a lutra server's report of a search.
type Search struct {
	Method     string
	N, Width   int
	StopReason string `json:"stop_reason"`
	Agreement  float64
	Candidates []Candidate // best first
}

// Candidate is one of the answers that a search chose among.
type Candidate struct {
	Index        int `json:"candidate"`
	Text         string
	FinishReason string `json:"finish_reason"`
	Tokens       int
	Score        float64
	Answer       string
	Votes        int
	Filtered     bool
}

// Stream asks for an answer and yields what comes of it, as long as the caller wants.
// An answer that breaks off, or of which a search was wanted that did not take place,
// ends with an error.
func (c *Client) Stream(ctx context.Context, req openai.ChatCompletionRequest, x Extra) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		stream, err := c.API.CreateChatCompletionStream(x.with(ctx), req)
		if err != nil {
			yield(Chunk{}, c.ExplainAnswer(ctx, req.Model, err))
			return
		}
		defer stream.Close()
		if x.Scaling != "" && stream.Header().Get(appliedHeader) == "" {
			yield(Chunk{}, fmt.Errorf("%s did not apply %q: its answer has no %s header", c.Base, x.Scaling, appliedHeader))
			return
		}
		for finished := false; ; {
			chunk, err := receive(stream)
			switch {
			case errors.Is(err, io.EOF) && finished:
				return
			case errors.Is(err, io.EOF):
				err = errors.New("the connection broke off during the answer")
			}
			if err != nil {
				yield(Chunk{}, Explain(c.Base, err))
				return
			}
			for _, choice := range chunk.Choices {
				finished = finished || choice.FinishReason != ""
			}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

func receive(stream *openai.ChatCompletionStream) (c Chunk, err error) {
	raw, err := stream.RecvRaw()
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	return c, err
}
