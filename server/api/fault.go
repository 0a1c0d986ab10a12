package api

import (
	"net/http"
	"time"

	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// Fault is an error as clients see it, in OpenAI's words.
type Fault struct {
	Status     int
	Type       string
	Code       string
	Param      string // the request field at fault; empty: none
	Message    string
	RetryAfter time.Duration // 0: no header

	Tokens, MaxTokens int // of a prompt that is too long: at least so many, and as many as may be; 0: it is not
}

func (f *Fault) Error() string { return f.Message }

// The types that OpenAI's clients know.
const (
	TypeInvalid   = "invalid_request_error"
	TypeAuth      = "authentication_error"
	TypeRateLimit = "rate_limit_error"
	TypeServer    = "server_error"
)

// CodeContext is the code of requests that are too long for the model.
const CodeContext = "context_length_exceeded"

// Invalid returns a 400 about one field. Errors among args are worded for clients.
func Invalid(code, param, format string, args ...any) *Fault {
	return InvalidStatus(http.StatusBadRequest, code, param, errtext.Sprintf(format, args...))
}

// InvalidStatus returns a fault of the request with a status of its own.
func InvalidStatus(status int, code, param, message string) *Fault {
	return &Fault{Status: status, Type: TypeInvalid, Code: code, Param: param, Message: message}
}

// Envelope is the body of every error.
type Envelope struct {
	Error envelope `json:"error"`
}

type envelope struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// Failure writes a fault as OpenAI's clients expect it.
func Failure(f *Fault) Envelope {
	return Envelope{envelope{Message: f.Message, Type: f.Type, Param: jsonwrite.Optional(f.Param), Code: jsonwrite.Optional(f.Code)}}
}
