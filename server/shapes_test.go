package server

import (
	"slices"
	"testing"
)

// The wire types are OpenAI's objects as its reference lists them, written
// down apart from the server's own. A field that is missing on either side fails a test.

type wireUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type wireToken struct {
	Token   *string        `json:"token"`
	Logprob *float64       `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     []wireTopToken `json:"top_logprobs"`
}

type wireTopToken struct {
	Token   *string  `json:"token"`
	Logprob *float64 `json:"logprob"`
	Bytes   []int    `json:"bytes"`
}

type wireChat struct {
	ID      string `json:"id"`
	Print   string `json:"system_fingerprint"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Index   int `json:"index"`
		Message *struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
			Refusal *string `json:"refusal"`
		} `json:"message"`
		Delta *struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"delta"`
		Logprobs *struct {
			Content []wireToken `json:"content"`
			Refusal []wireToken `json:"refusal"`
		} `json:"logprobs"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *wireUsage `json:"usage"`
}

type wireText struct {
	ID      string `json:"id"`
	Print   string `json:"system_fingerprint"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Index    int    `json:"index"`
		Text     string `json:"text"`
		Logprobs *struct {
			Tokens        []string             `json:"tokens"`
			TokenLogprobs []*float64           `json:"token_logprobs"`
			TopLogprobs   []map[string]float64 `json:"top_logprobs"`
			TextOffset    []int                `json:"text_offset"`
		} `json:"logprobs"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *wireUsage `json:"usage"`
}

var finishes = []string{"stop", "length"}

// wholeChat decodes a chat completion and holds it against the reference.
func wholeChat(t *testing.T, answer []byte, n int) wireChat {
	t.Helper()
	c := strict[wireChat](t, answer)
	if c.ID == "" || c.Print == "" || c.Object != "chat.completion" || c.Created == 0 || c.Model == "" || len(c.Choices) != n {
		t.Fatalf("chat completion %s", answer)
	}
	for i, ch := range c.Choices {
		if ch.Index != i || ch.Message == nil || ch.Message.Role != "assistant" || ch.Message.Content == nil || ch.Delta != nil ||
			ch.FinishReason == nil || !slices.Contains(finishes, *ch.FinishReason) {
			t.Fatalf("choice %d of %s", i, answer)
		}
	}
	if u := c.Usage; u == nil || u.Prompt == 0 || u.Total != u.Prompt+u.Completion || u.Details.Cached > u.Prompt {
		t.Fatalf("usage of %s", answer)
	}
	return c
}

// chatChunks decodes a stream, holds it against the reference and returns what
// its n choices say.
func chatChunks(t *testing.T, stream []byte, n int, usage bool) []string {
	t.Helper()
	texts, finished := make([]string, n), make([]bool, n)
	all := chunks[wireChat](t, stream)
	for i, c := range all {
		if c.ID != all[0].ID || c.Object != "chat.completion.chunk" || c.Created == 0 || c.Model == "" {
			t.Fatalf("chunk %d is %+v", i, c)
		}
		if last := usage && i == len(all)-1; (c.Usage != nil) != last || (len(c.Choices) == 0) != last {
			t.Fatalf("chunk %d of %d has usage %+v and %d choices", i, len(all), c.Usage, len(c.Choices))
		} else if last {
			break
		}
		ch := c.Choices[0]
		if plain := ch.Delta != nil && ch.Delta.Role == "" && ch.FinishReason == nil && ch.Logprobs == nil; !plain && c.Print == "" {
			t.Fatalf("chunk %d has no fingerprint: %+v", i, c)
		}
		if len(c.Choices) != 1 || ch.Delta == nil || ch.Message != nil || finished[ch.Index] || (ch.Delta.Role == "assistant") != (i < n) {
			t.Fatalf("chunk %d is %+v", i, c)
		}
		texts[ch.Index] += ch.Delta.Content
		if ch.FinishReason != nil {
			finished[ch.Index] = slices.Contains(finishes, *ch.FinishReason)
		}
	}
	if slices.Contains(finished, false) {
		t.Fatalf("finished = %v, want all choices", finished)
	}
	return texts
}

// wholeText decodes a text completion and holds it against the reference.
func wholeText(t *testing.T, answer []byte, n int) wireText {
	t.Helper()
	c := strict[wireText](t, answer)
	if c.ID == "" || c.Print == "" || c.Object != "text_completion" || c.Created == 0 || c.Model == "" || len(c.Choices) != n || c.Usage == nil {
		t.Fatalf("text completion %s", answer)
	}
	for i, ch := range c.Choices {
		if ch.Index != i || ch.FinishReason == nil || !slices.Contains(finishes, *ch.FinishReason) {
			t.Fatalf("choice %d of %s", i, answer)
		}
		if l := ch.Logprobs; l != nil && (len(l.Tokens) != len(l.TokenLogprobs) || len(l.Tokens) != len(l.TopLogprobs) || len(l.Tokens) != len(l.TextOffset)) {
			t.Fatalf("columns of %s differ in length", answer)
		}
	}
	return c
}
