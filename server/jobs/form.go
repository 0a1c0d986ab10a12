package jobs

import (
	stdbytes "bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// request is a line as it was read.
type request struct {
	custom   string // the client's id of it
	endpoint string
	body     []byte
}

// reply holds an answer of the server.
type reply struct {
	id        string // of the line
	requestID string
	status    int
	body      []byte // JSON
}

// form writes lines and answers as an API has them.
type form interface {
	// read reads a line; its error is one that the line is at fault for.
	read(text []byte, r *record) (request, error)
	// answer writes what the server has answered, and says of which kind that is.
	answer(q *request, a *reply) (text []byte, kind byte)
	// undone writes why a line has no answer.
	undone(q *request, id string, why *Fault) []byte
	// headers sets the headers of a request.
	headers(h http.Header)
	// files lists the files of a batch's answers, each with its kinds; 0 is the kind of lines without an answer.
	files() []outputFile
}

// outputFile is a file of answers.
type outputFile struct {
	suffix string
	kinds  string // kindDone, kindFailed and 0
	hidden bool   // it is none of OpenAI's API
}

// The forms that there are.
const (
	formOpenAI    = "openai"
	formAnthropic = "anthropic"
)

// formOf returns a form by its name; nil: there is none.
func formOf(name string) form {
	switch name {
	case formOpenAI:
		return openaiForm{}
	case formAnthropic:
		return anthropicForm{}
	}
	return nil
}

// Why lines have no answer.
var (
	faultExpired   = Fault{Code: "batch_expired", Message: "This request could not be answered before the completion window ended."}
	faultCancelled = Fault{Code: "batch_cancelled", Message: "The batch was cancelled before this request was answered."}
	faultDamaged   = Fault{Code: "input_damaged", Message: "This line of the input cannot be read any more."}
	faultLarge     = Fault{Code: "answer_too_large", Message: fmt.Sprintf("The answer has more than %d bytes.", mostAnswer)}
)

// text writes v as one line.
func text(v any) []byte {
	var b stdbytes.Buffer
	_ = jsonwrite.Encode(&b, v) // of a struct of ours
	return stdbytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// openaiForm has lines as openai.com/docs/guides/batch: {"custom_id", "method", "url", "body"}.
type openaiForm struct{}

// mostCustom bounds a custom_id in bytes.
const mostCustom = 512

// Endpoints are the routes that lines of OpenAI's batches may be requests of.
var Endpoints = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"}

func (openaiForm) read(line []byte, r *record) (q request, err error) {
	f, err := jsonread.Parse(line)
	if err != nil {
		return q, err
	}
	method := ""
	f.String("custom_id", &q.custom)
	f.String("method", &method)
	f.String("url", &q.endpoint)
	q.body = f.Raw("body")
	body, ok := f.Sub("body", q.body)
	switch {
	case f.Err != nil:
	case q.custom == "" || len(q.custom) > mostCustom:
		f.Fail(jsonread.CodeMissing, "custom_id", "it must have 1 to %d bytes.", mostCustom)
	case method != http.MethodPost:
		f.Fail("invalid_method", "method", "it must be POST.")
	case q.endpoint != r.Endpoint:
		f.Fail("mismatched_url", "url", "it must be the batch's endpoint, %s.", r.Endpoint)
	case !ok:
		f.Fail(jsonread.CodeMissing, "body", "it must be an object.")
	case string(body.Raw("stream")) == "true":
		f.Fail(jsonread.CodeUnsupported, "body.stream", "answers of batches are no streams.")
	}
	return q, f.Err
}

// openaiLine is a line of an output.
type openaiLine struct {
	ID       string          `json:"id"`
	CustomID string          `json:"custom_id"`
	Response *openaiResponse `json:"response"`
	Error    *openaiError    `json:"error"`
}

type openaiResponse struct {
	StatusCode int             `json:"status_code"`
	RequestID  string          `json:"request_id"`
	Body       json.RawMessage `json:"body"`
}

type openaiError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (openaiForm) answer(q *request, a *reply) ([]byte, byte) {
	kind := byte(kindDone)
	if a.status != http.StatusOK {
		kind = kindFailed
	}
	return text(openaiLine{a.id, q.custom, &openaiResponse{a.status, a.requestID, a.body}, nil}), kind
}

func (openaiForm) undone(q *request, id string, why *Fault) []byte {
	return text(openaiLine{id, q.custom, nil, &openaiError{why.Code, why.Message}})
}

func (openaiForm) headers(http.Header) {}

func (openaiForm) files() []outputFile {
	return []outputFile{{"output", string(kindDone), false}, {"error", string([]byte{kindFailed, 0}), false}}
}

// anthropicForm has the requests of a Message Batch as lines: {"custom_id", "params"}.
type anthropicForm struct{}

// messagesEndpoint is the route that requests of Message Batches are of.
const messagesEndpoint = "/v1/messages"

func (anthropicForm) read(line []byte, _ *record) (q request, err error) {
	f, err := jsonread.Parse(line)
	if err != nil {
		return q, err
	}
	q.endpoint = messagesEndpoint
	f.String("custom_id", &q.custom)
	q.body = f.Raw("params")
	if f.Err == nil && jsonread.Kind(q.body) != "an object" {
		f.Fail(jsonread.CodeMissing, "params", "it must be an object.")
	}
	return q, f.Err
}

// messageLine is a line of the results of a Message Batch.
type messageLine struct {
	CustomID string `json:"custom_id"`
	Result   any    `json:"result"`
}

type messageResult struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

func (anthropicForm) answer(q *request, a *reply) ([]byte, byte) {
	if a.status != http.StatusOK {
		return text(messageLine{q.custom, messageResult{Type: "errored", Error: a.body}}), kindFailed
	}
	return text(messageLine{q.custom, messageResult{Type: "succeeded", Message: a.body}}), kindDone
}

func (anthropicForm) undone(q *request, id string, why *Fault) []byte {
	switch *why {
	case faultExpired:
		return text(messageLine{q.custom, messageResult{Type: "expired"}})
	case faultCancelled:
		return text(messageLine{q.custom, messageResult{Type: "canceled"}})
	}
	body := text(map[string]any{"type": "error", "error": map[string]string{"type": "invalid_request_error", "message": why.Message}, "request_id": id})
	return text(messageLine{q.custom, messageResult{Type: "errored", Error: body}})
}

func (anthropicForm) headers(h http.Header) { h.Set("Anthropic-Version", "2023-06-01") }

func (anthropicForm) files() []outputFile {
	return []outputFile{{"results", string([]byte{kindDone, kindFailed, 0}), true}}
}
