package openai

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/server/report"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// usage is a request's usage as OpenAI writes it.
type usage struct {
	PromptTokens        int           `json:"prompt_tokens"`
	CompletionTokens    int           `json:"completion_tokens"`
	TotalTokens         int           `json:"total_tokens"`
	PromptTokensDetails promptDetails `json:"prompt_tokens_details"`
	Scaling             *report.Usage `json:"test_time_scaling,omitempty"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// newUsage returns a request's usage, divided once all searches of a report have ended.
func newUsage(u tts.Usage, r *report.Search) usage {
	return usage{u.Prompt, u.Completion, u.Prompt + u.Completion, promptDetails{u.Cached}, r.Spent()}
}

// optionalUsage is a chunk's usage field: absent; null on all but the last chunk of a
// stream with usage; or a value.
type optionalUsage any

var nullUsage optionalUsage = json.RawMessage("null")

// noText is the content that a stream begins with whose answer may be calls.
var noText = json.RawMessage("null")

// heading begins answers and their chunks.
type heading struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	Model       string `json:"model"`
	Fingerprint string `json:"system_fingerprint,omitempty"` // not on chunks of text alone
}

func newHeading(prefix, model, fingerprint string) heading {
	return heading{ID: prefix + uuid.NewString(), Created: time.Now().Unix(), Model: model, Fingerprint: fingerprint}
}

// chatResponse is a chat completion, or with deltas in its choices a chunk of
// one.
type chatResponse struct {
	heading
	Choices []chatChoice  `json:"choices"`
	Usage   optionalUsage `json:"usage,omitempty"`
	Scaling any           `json:"test_time_scaling,omitempty"` // *searchOutcome or *searchProgress
	// Truncation is on the completion, or the first chunk.
	Truncation     *report.Truncation `json:"truncation,omitempty"`
	PromptTokenIDs []int32            `json:"prompt_token_ids,omitempty"` // on the first chunk
	Timings        *report.Timings    `json:"timings,omitempty"`          // on the completion, or the last chunk
	Receipt        *receipt.Receipt   `json:"receipt,omitempty"`          // on the completion, or the last chunk
}

type chatChoice struct {
	Index        int               `json:"index"`
	Message      *chatMessage      `json:"message,omitempty"`
	Delta        *chatDelta        `json:"delta,omitempty"`
	Logprobs     *chatLogprobs     `json:"logprobs"`
	FinishReason *string           `json:"finish_reason"`
	TokenIDs     []int32           `json:"token_ids,omitempty"` // of a chunk
	Scaling      *report.Candidate `json:"test_time_scaling,omitempty"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"` // null: there are calls alone
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
	Refusal   *string    `json:"refusal"` // always null: clients require the field
}

// toolCall is a call of a tool, or in a chunk a piece of one.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in chunks
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// newToolCalls returns calls, or in a chunk pieces of them.
func newToolCalls(calls []toolcall.Call, chunk bool) []toolCall {
	var list []toolCall
	for _, c := range calls {
		t := toolCall{ID: c.ID, Function: functionCall{c.Name, c.Arguments}}
		if c.Name != "" {
			t.Type = "function"
		}
		if chunk {
			t.Index = &c.Index
		}
		list = append(list, t)
	}
	return list
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   any        `json:"content,omitempty"` // a *string; nil is left out, noText is null
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type chatLogprobs struct {
	Content []report.TokenLogprob `json:"content"`
	Refusal []report.TokenLogprob `json:"refusal"` // always null
}

// newChatLogprobs lists the tokens of a message: the one that ended the turn is
// none of them.
func newChatLogprobs(tokens []tts.Token) *chatLogprobs {
	tokens = tts.Said(tokens)
	l := &chatLogprobs{Content: make([]report.TokenLogprob, len(tokens))}
	for i := range tokens {
		l.Content[i] = report.NewTokenLogprob(&tokens[i])
	}
	return l
}

// textResponse is a text completion or a chunk of one.
type textResponse struct {
	heading
	Choices []textChoice     `json:"choices"`
	Usage   optionalUsage    `json:"usage,omitempty"`
	Scaling any              `json:"test_time_scaling,omitempty"` // *searchOutcome or *searchProgress
	Timings *report.Timings  `json:"timings,omitempty"`           // on the completion, or the last chunk
	Receipt *receipt.Receipt `json:"receipt,omitempty"`           // as Timings
}

type textChoice struct {
	Index          int               `json:"index"`
	Text           string            `json:"text"`
	Logprobs       *textLogprobs     `json:"logprobs"`
	FinishReason   *string           `json:"finish_reason"`
	Tokens         []int32           `json:"tokens,omitempty"`           // with return_tokens
	TokenIDs       []int32           `json:"token_ids,omitempty"`        // of a chunk, with return_token_ids
	PromptTokenIDs []int32           `json:"prompt_token_ids,omitempty"` // of a choice's first chunk
	Scaling        *report.Candidate `json:"test_time_scaling,omitempty"`
}

// tokenIDs returns the ids of tokens.
func tokenIDs(tokens []tts.Token) []int32 {
	ids := make([]int32, len(tokens))
	for i := range tokens {
		ids[i] = tokens[i].ID
	}
	return ids
}

// certainty returns a token's, null where nothing predicts it.
func certainty(t *tts.Token) *float64 {
	if !t.Known {
		return nil
	}
	return new(jsonwrite.Finite(t.Certainty))
}

// textLogprobs lists tokens column by column: an echoed prompt's and all that were generated, with the one that
// ended the text. The first token of an echoed prompt has null as its log-probabilities.
type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float64           `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`         // in characters
	Certainty     []*float64           `json:"certainty,omitempty"` // with the tokens' ids
}

// newTextLogprobs lists tokens whose text begins at offset, and returns the
// offset after them.
func newTextLogprobs(tokens []tts.Token, offset int) (*textLogprobs, int) {
	l := &textLogprobs{
		Tokens:        make([]string, len(tokens)),
		TokenLogprobs: make([]*float64, len(tokens)),
		TopLogprobs:   make([]map[string]float64, len(tokens)),
		TextOffset:    make([]int, len(tokens)),
	}
	for i := range tokens {
		l.Tokens[i] = tokenName(tokens[i].Bytes)
		l.TextOffset[i] = offset
		if !tokens[i].Hidden {
			offset += utf8.RuneCount(tokens[i].Bytes)
		}
		l.TokenLogprobs[i], l.TopLogprobs[i] = textLogprob(&tokens[i])
	}
	return l, offset
}

// textLogprob returns the log-probabilities of a token and of its alternatives; nil for a token that nothing
// predicts.
func textLogprob(t *tts.Token) (*float64, map[string]float64) {
	if !t.Known {
		return nil, nil
	}
	v, top := jsonwrite.Finite(t.Logprob), make(map[string]float64, len(t.Top))
	for _, a := range t.Top {
		// Different tokens can have one name: the likelier, earlier one stays.
		if name := tokenName(a.Bytes); top[name] == 0 {
			top[name] = jsonwrite.Finite(a.Logprob)
		}
	}
	return &v, top
}

// tokenName returns a token as text; bytes that are no whole characters are spelled
// as OpenAI does: bytes:\xe2\x82.
func tokenName(piece []byte) string {
	if utf8.Valid(piece) {
		return string(piece)
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for _, c := range piece {
		b.WriteString(`\x`)
		if c < 16 {
			b.WriteByte('0')
		}
		b.WriteString(strconv.FormatUint(uint64(c), 16))
	}
	return b.String()
}
