package responses

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/tts"
)

// response is an answer, or how far it has come.
type response struct {
	ID           string          `json:"id"`
	Object       string          `json:"object"`
	CreatedAt    int64           `json:"created_at"`
	CompletedAt  *int64          `json:"completed_at"`
	Status       string          `json:"status"`
	Background   bool            `json:"background"`
	Error        any             `json:"error"`
	Incomplete   *incomplete     `json:"incomplete_details"`
	Instructions *string         `json:"instructions"`
	MaxTokens    *int            `json:"max_output_tokens"`
	Model        string          `json:"model"`
	Output       []item          `json:"output"`
	Parallel     bool            `json:"parallel_tool_calls"`
	Previous     *string         `json:"previous_response_id"`
	Reasoning    reasoning       `json:"reasoning"`
	Store        bool            `json:"store"`
	Temperature  float32         `json:"temperature"`
	Text         json.RawMessage `json:"text"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Tools        json.RawMessage `json:"tools"`
	TopP         float32         `json:"top_p"`
	Truncation   string          `json:"truncation"`
	Usage        *usage          `json:"usage"`
	User         *string         `json:"user"`
	Metadata     json.RawMessage `json:"metadata"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type usage struct {
	Input   int `json:"input_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"` // not counted apart: 0
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

func newUsage(u tts.Usage) *usage {
	w := &usage{Input: u.Prompt, Output: u.Completion, Total: u.Prompt + u.Completion}
	w.Details.Cached = u.Cached
	return w
}

// item is a part of the output: a message, a thought or a call.
type item struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Status    string  `json:"status"`
	Role      string  `json:"role,omitempty"`      // of messages
	Content   []part  `json:"content,omitzero"`    // of messages and thoughts
	Summary   []part  `json:"summary,omitzero"`    // of thoughts: always empty
	CallID    string  `json:"call_id,omitempty"`   // of calls
	Name      string  `json:"name,omitempty"`      // of calls
	Arguments *string `json:"arguments,omitempty"` // of calls
}

// part is a text within an item.
type part struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations,omitzero"`
	Logprobs    []any  `json:"logprobs,omitzero"`
}

// The types of items and of their parts.
const (
	itemMessage   = "message"
	itemReasoning = "reasoning"
	itemCall      = "function_call"
	partText      = "output_text"
	partReasoning = "reasoning_text"
)

// The states of items and responses.
const (
	inProgress = "in_progress"
	completed  = "completed"
	cutOff     = "incomplete"
)

// newItem begins an item of a type.
func newItem(kind string) item {
	prefix := map[string]string{itemMessage: "msg_", itemReasoning: "rs_", itemCall: "fc_"}[kind]
	i := item{ID: prefix + uuid.NewString(), Type: kind, Status: inProgress}
	switch kind {
	case itemMessage:
		i.Role, i.Content = roleAssistant, []part{}
	case itemReasoning:
		i.Summary, i.Content = []part{}, []part{}
	case itemCall:
		i.Arguments = new("")
	}
	return i
}

// newPart begins an item's text.
func newPart(kind string) part {
	if kind == itemReasoning {
		return part{Type: partReasoning}
	}
	return part{Type: partText, Annotations: []any{}, Logprobs: []any{}}
}

// event is what happens in a stream. Which fields it has depends on its type.
type event struct {
	Type      string    `json:"type"`
	Number    int       `json:"sequence_number"`
	Response  *response `json:"response,omitempty"`
	Index     *int      `json:"output_index,omitempty"`
	ItemID    string    `json:"item_id,omitempty"`
	Item      *item     `json:"item,omitempty"`
	PartIndex *int      `json:"content_index,omitempty"`
	Part      *part     `json:"part,omitempty"`
	Delta     *string   `json:"delta,omitempty"`
	Text      *string   `json:"text,omitempty"`
	Logprobs  []any     `json:"logprobs,omitzero"`
	Arguments *string   `json:"arguments,omitempty"`
	Name      string    `json:"name,omitempty"`
}

func now() int64 { return time.Now().Unix() }
