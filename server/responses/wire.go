package responses

import (
	"encoding/json"
	"time"

	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
)

// response is an answer, or how far it has come. It has the fields that the API has.
type response struct {
	ID           string          `json:"id"`
	Object       string          `json:"object"`
	CreatedAt    int64           `json:"created_at"`
	CompletedAt  *int64          `json:"completed_at"`
	Status       string          `json:"status"`
	Background   bool            `json:"background"`
	Error        *fault          `json:"error"`
	Incomplete   *incomplete     `json:"incomplete_details"`
	Instructions *string         `json:"instructions"`
	MaxTokens    *int            `json:"max_output_tokens"`
	MaxToolCalls *int            `json:"max_tool_calls"`
	Model        string          `json:"model"`
	Output       []*item         `json:"output"`
	Parallel     bool            `json:"parallel_tool_calls"`
	Previous     *string         `json:"previous_response_id"`
	Reasoning    reasoning       `json:"reasoning"`
	Store        bool            `json:"store"`
	Temperature  float32         `json:"temperature"`
	Text         any             `json:"text"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	Tools        []any           `json:"tools"`
	TopLogprobs  int             `json:"top_logprobs"`
	TopP         float32         `json:"top_p"`
	Truncation   string          `json:"truncation"`
	Usage        *usage          `json:"usage,omitempty"` // of a response that has ended
	User         string          `json:"user,omitempty"`
	Metadata     json.RawMessage `json:"metadata"`
	Scaling      json.RawMessage `json:"test_time_scaling,omitempty"` // of one that has ended; Lutra's own
}

// last returns the item under way.
func (r *response) last() *item { return r.Output[len(r.Output)-1] }

// place returns where the item under way stands.
func (r *response) place() *int { return new(len(r.Output) - 1) }

// fault says why a response failed, in the API's words.
type fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// The codes of faults.
const (
	faultServer = "server_error"
	faultRate   = "rate_limit_exceeded"
	faultPrompt = "invalid_prompt"
)

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
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"` // not counted apart: 0
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

// event is an event of a stream. Its fields depend on its type.
type event struct {
	Type      string                `json:"type"`
	Number    int                   `json:"sequence_number"`
	Response  *response             `json:"response,omitempty"`
	Index     *int                  `json:"output_index,omitempty"`
	ItemID    string                `json:"item_id,omitempty"`
	Item      *item                 `json:"item,omitempty"`
	PartIndex *int                  `json:"content_index,omitempty"`
	Part      *part                 `json:"part,omitempty"`
	Delta     *string               `json:"delta,omitempty"`
	Text      *string               `json:"text,omitempty"`
	Logprobs  []report.TokenLogprob `json:"logprobs,omitzero"`
	Arguments *string               `json:"arguments,omitempty"`
	Input     *string               `json:"input,omitempty"`
	Name      string                `json:"name,omitempty"`
}

// The types of events that end a stream or stand at its beginning.
const (
	eventCreated    = "response.created"
	eventInProgress = "response.in_progress"
	eventCompleted  = "response.completed"
	eventIncomplete = "response.incomplete"
	eventFailed     = "response.failed"
)

func now() int64 { return time.Now().Unix() }
