package openai

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/receipt"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/toolcall"
)

// usage is a request's usage as OpenAI writes it.
type usage struct {
	PromptTokens        int           `json:"prompt_tokens"`
	CompletionTokens    int           `json:"completion_tokens"`
	TotalTokens         int           `json:"total_tokens"`
	PromptTokensDetails promptDetails `json:"prompt_tokens_details"`
	Scaling             *scalingUsage `json:"test_time_scaling,omitempty"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

func newUsage(u tts.Usage) usage {
	return usage{u.Prompt, u.Completion, u.Prompt + u.Completion, promptDetails{u.Cached}, nil}
}

// optionalUsage is a chunk's usage field: absent; null on all but the last chunk of a
// stream with usage; or a value.
type optionalUsage any

var nullUsage optionalUsage = json.RawMessage("null")

// noText is the content that a stream begins with whose answer may be calls.
var noText = json.RawMessage("null")

// heading is what answers and their chunks begin with.
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
	Truncation *truncation      `json:"truncation,omitempty"`
	Timings    *Timings         `json:"timings,omitempty"` // on the completion, or the last chunk
	Receipt    *receipt.Receipt `json:"receipt,omitempty"` // on the completion, or the last chunk
}

// truncation reports what the model did not read of a conversation.
type truncation struct {
	DroppedMessages int `json:"dropped_messages"`
}

// newTruncation returns nil where nothing was left out.
func newTruncation(dropped int) *truncation {
	if dropped == 0 {
		return nil
	}
	return &truncation{dropped}
}

// WriteTruncation adds the field that tells of messages that were left out.
func WriteTruncation(p *jsonwrite.Reply, prepared *tts.Prepared) {
	if t := newTruncation(prepared.Dropped); t != nil {
		p.Raw(`,"truncation":`)
		p.Value(t)
	}
}

type chatChoice struct {
	Index        int           `json:"index"`
	Message      *chatMessage  `json:"message,omitempty"`
	Delta        *chatDelta    `json:"delta,omitempty"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	Scaling      *candidate    `json:"test_time_scaling,omitempty"`
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

// Call is a call of a tool as templates have it.
type Call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // an object: what the template wants is made of it
	} `json:"function"`
}

// Written writes a call for a message of a prompt.
func Written(id, name, arguments string) json.RawMessage {
	c := Call{ID: id, Type: "function"}
	c.Function.Name, c.Function.Arguments = name, arguments
	raw, _ := json.Marshal(c) // strings
	return raw
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   any        `json:"content,omitempty"` // a *string; nil is left out, noText is null
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []toolCall `json:"tool_calls,omitempty"`
}

type chatLogprobs struct {
	Content []TokenLogprob `json:"content"`
	Refusal []TokenLogprob `json:"refusal"` // always null
}

// TokenLogprob is a token of an answer as chats and responses list it.
type TokenLogprob struct {
	alternative
	Top []alternative `json:"top_logprobs"`
}

type alternative struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// newChatLogprobs lists the tokens of a message: the one that ended the turn is
// none of them.
func newChatLogprobs(tokens []tts.Token) *chatLogprobs {
	tokens = tts.Said(tokens)
	l := &chatLogprobs{Content: make([]TokenLogprob, len(tokens))}
	for i := range tokens {
		l.Content[i] = NewTokenLogprob(&tokens[i])
	}
	return l
}

// NewTokenLogprob lists a token.
func NewTokenLogprob(t *tts.Token) TokenLogprob {
	c := TokenLogprob{newAlternative(t.Bytes, t.Logprob), make([]alternative, len(t.Top))}
	for j, a := range t.Top {
		c.Top[j] = newAlternative(a.Bytes, a.Logprob)
	}
	return c
}

func newAlternative(piece []byte, logprob float32) alternative {
	return alternative{Token: strings.ToValidUTF8(string(piece), "\ufffd"), Logprob: jsonwrite.Finite(logprob), Bytes: jsonwrite.ByteList(piece)}
}

// textResponse is a text completion or a chunk of one.
type textResponse struct {
	heading
	Choices []textChoice     `json:"choices"`
	Usage   optionalUsage    `json:"usage,omitempty"`
	Scaling any              `json:"test_time_scaling,omitempty"` // *searchOutcome or *searchProgress
	Timings *Timings         `json:"timings,omitempty"`           // on the completion, or the last chunk
	Receipt *receipt.Receipt `json:"receipt,omitempty"`           // as Timings
}

type textChoice struct {
	Index        int           `json:"index"`
	Text         string        `json:"text"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	Tokens       []int32       `json:"tokens,omitempty"` // with return_tokens
	Scaling      *candidate    `json:"test_time_scaling,omitempty"`
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

// textLogprobs lists tokens column by column: those of an echoed prompt and all that
// were generated, with the one that ended the text. The first token of an echoed
// prompt has null as its log-probabilities.
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

// textLogprob returns a token's log-probability and those of its alternatives; nil for a
// token that nothing predicts.
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

// finishReason returns null until there is one.
func finishReason(f tts.Finish) *string {
	if f == "" {
		return nil
	}
	s := string(f)
	return &s
}

// candidate is one of a search's answers. Choices have their text in the choice.
type candidate struct {
	Candidate    int            `json:"candidate"`
	Text         string         `json:"text,omitempty"`
	FinishReason *string        `json:"finish_reason,omitempty"`
	Tokens       int            `json:"tokens"`
	Score        float64        `json:"score"`
	Logprob      float64        `json:"logprob"` // mean over the tokens
	Answer       *string        `json:"answer"`  // null: none was found
	Votes        int            `json:"votes"`
	StepScores   []float64      `json:"step_scores"`
	Verdict      string         `json:"verdict,omitempty"` // of a check, or of critiques
	Critiques    []critique     `json:"critiques,omitempty"`
	Confidence   float64        `json:"confidence,omitempty"` // of deepconf
	Filtered     bool           `json:"filtered,omitempty"`   // likewise
	Steps        []solutionStep `json:"steps,omitempty"`
}

// critique is what a verifier has written of a candidate, a solution step or a pair.
type critique struct {
	Step   int     `json:"step,omitempty"` // solution steps that it judges
	Score  float64 `json:"score"`
	Labels []bool  `json:"labels,omitempty"` // whether it finds each solution step right
	Tokens int     `json:"tokens"`
	Text   string  `json:"text"`
}

// solutionStep is a part of a candidate that is scored and competes.
type solutionStep struct {
	Text   string  `json:"text"`
	Tokens int     `json:"tokens"`
	Score  float64 `json:"score"`
}

// scalingUsage divides the tokens of a search: the first two add up to the
// completion's; nobody is charged for the last.
type scalingUsage struct {
	Chosen    int `json:"chosen_tokens"`
	Discarded int `json:"discarded_tokens"`
	Verifier  int `json:"verifier_tokens"`
	Critiques int `json:"critique_tokens,omitempty"` // that a verifier wrote
	Cancelled int `json:"cancelled_tokens"`
}

// Envelope is the body of every error.
type Envelope struct {
	Error failure `json:"error"`
}

type failure struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Failure writes a fault as OpenAI's clients expect it.
func Failure(f *api.Fault) Envelope {
	return Envelope{failure{Message: f.Message, Type: f.Type, Param: jsonwrite.Optional(f.Param), Code: jsonwrite.Optional(f.Code)}}
}
