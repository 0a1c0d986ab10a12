package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/openai"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/responses"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/structure"
)

// apiError is an error as a client sees it: OpenAI's envelope with its status.
type apiError struct {
	Status     int
	Type       string
	Code       string
	Param      string // the request field at fault; empty: none
	Message    string
	RetryAfter time.Duration // 0: no header
}

func (e *apiError) Error() string { return e.Message }

// The types OpenAI's clients know.
const (
	typeInvalid   = "invalid_request_error"
	typeAuth      = "authentication_error"
	typeRateLimit = "rate_limit_error"
	typeServer    = "server_error"
)

// Errors that the server itself finds.
var (
	errLoading  = errors.New("server: the model is being loaded")
	errDraining = errors.New("server: shutting down")
	errPanic    = errors.New("server: a handler panicked")
	errSlowBody = errors.New("server: the request body did not arrive in time")
)

// statusClientGone is logged for a client that left before its answer (nginx's
// code); nobody receives it.
const statusClientGone = 499

// invalid is a 400 about one field.
func invalid(code, param, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: typeInvalid, Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

// codeContext is the code of requests that are too long for the model.
const codeContext = "context_length_exceeded"

// toAPI is the only map from errors to HTTP. What it does not know is a 500, whose
// cause is logged and not sent.
func toAPI(err error) *apiError {
	var api *apiError
	var field *jsonread.Error
	var long *tts.ContextError
	var body *http.MaxBytesError
	var plan *scaling.Error
	var format *tts.FormatError
	var memory *admission.MemoryError
	var rate *admission.RateError
	var missing *registry.NotFoundError
	var failed *batcher.FailedError
	var fault *batcher.FaultError
	unavailable := func(message string) *apiError {
		return &apiError{Status: http.StatusServiceUnavailable, Type: typeServer, Code: "unavailable", Message: message, RetryAfter: 5 * time.Second}
	}
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &field):
		return invalid(field.Code, field.Param, "%s", field.Message)
	case errors.As(err, &long):
		what, verb := "prompt", "has"
		if long.Part != tts.PartPrompt {
			what, verb = string(long.Part), "have"
		}
		return invalid(codeContext, string(long.Part), "This model's maximum context length is %d tokens. However, your %s %s at least %d tokens. Please shorten the %s.",
			long.Limit, what, verb, long.Prompt, what)
	case errors.As(err, &plan): // found only when the search begins
		return invalid(plan.Code, openai.ScalingField, "Invalid '%s': %s: %s.", openai.ScalingField, plan.Field, plan.Message)
	case errors.Is(err, reward.ErrSteps):
		return invalid(jsonread.CodeValue, "responses", "%s", errtext.Text(err))
	case errors.Is(err, reward.ErrBlank):
		return invalid(jsonread.CodeValue, "responses", "A response is blank.")
	case errors.Is(err, batcher.ErrTooLong):
		return invalid(codeContext, "", "The request does not fit the server's memory for contexts. Please shorten the prompt.")
	case errors.Is(err, sampling.ErrForbidden):
		return invalid(jsonread.CodeValue, "", "The request's response_format, allowed_token_ids, bad_words, min_tokens and logit_bias together leave no token to go on with.")
	case errors.Is(err, structure.ErrBusy):
		return &apiError{Status: http.StatusTooManyRequests, Type: typeRateLimit, Code: "server_busy",
			Message: "The formats of the requests under way take all the memory for formats. Please try again shortly.", RetryAfter: time.Second}
	case errors.As(err, &format):
		return invalid(jsonread.CodeValue, "", "%s.", errtext.Text(format))
	case errors.Is(err, tts.ErrFormat):
		return invalid(jsonread.CodeValue, "response_format", "Invalid 'response_format': %s.", errtext.Text(err))
	case errors.Is(err, tts.ErrLogprobs):
		return invalid(jsonread.CodeValue, "logprobs", "Invalid 'logprobs': %s.", strings.TrimPrefix(errtext.Text(err), "too many log-probabilities: "))
	case errors.Is(err, tts.ErrEmpty):
		return invalid(jsonread.CodeValue, "prompt", "The prompt is empty and the model has no beginning-of-text token; give at least one token.")
	case errors.Is(err, tts.ErrToken):
		return invalid(jsonread.CodeValue, "prompt", "%s", errtext.Text(err))
	case errors.Is(err, tts.ErrInfill):
		return invalid(jsonread.CodeUnsupported, "suffix", "The model has no tokens to fill in the middle of a text.")
	case errors.Is(err, tts.ErrTemplate):
		return invalid(jsonread.CodeValue, "messages", "%s", errtext.Text(err))
	case errors.As(err, &body):
		return tooLarge("The request body is larger than %d bytes.", body.Limit)
	case errors.As(err, &memory):
		return tooLarge("The request needs more memory than the server gives to one (%d bytes). Send less, or ask for less at once.", memory.Most)
	case errors.Is(err, errSlowBody):
		return &apiError{Status: http.StatusRequestTimeout, Type: typeInvalid, Code: "timeout", Message: "The request body did not arrive in time."}
	case errors.As(err, &missing):
		message := "This server has no " + missing.Wanted + "."
		if missing.Name != "" {
			message = "The model '" + jsonread.Brief([]byte(missing.Name)) + "' does not exist."
		}
		return &apiError{Status: http.StatusNotFound, Type: typeInvalid, Code: "model_not_found", Param: "model", Message: message}
	case errors.Is(err, models.ErrNotFinite):
		return &apiError{Status: http.StatusInternalServerError, Type: typeServer, Code: "model_not_finite",
			Message: "The model computes numbers that are infinite or NaN of this input: its file is damaged, or its weights are too large."}
	case errors.As(err, &failed):
		return modelFailed(failed.Model)
	case errors.As(err, &fault):
		return &apiError{Status: http.StatusServiceUnavailable, Type: typeServer, Code: "device_failed", RetryAfter: time.Second,
			Message: "The device that computed this answer has failed. Please ask again: the model goes on without it."}
	case errors.Is(err, batcher.ErrBusy), errors.Is(err, admission.ErrBusy):
		return &apiError{Status: http.StatusTooManyRequests, Type: typeRateLimit, Code: "server_busy",
			Message: "The server is busy. Please try again shortly.", RetryAfter: time.Second}
	case errors.As(err, &rate):
		return &apiError{Status: http.StatusTooManyRequests, Type: typeRateLimit, Code: "rate_limit_exceeded",
			Message: fmt.Sprintf("Rate limit reached. Please try again in %v.", rate.Wait.Round(time.Millisecond)), RetryAfter: rate.Wait}
	case errors.Is(err, responses.ErrCancelled):
		return &apiError{Status: http.StatusConflict, Type: typeInvalid, Code: "response_cancelled", Message: "The response was cancelled."}
	case errors.Is(err, errLoading):
		return unavailable("The model is still being loaded.")
	case errors.Is(err, errDraining), errors.Is(err, batcher.ErrClosed):
		return unavailable("The server is shutting down.")
	case errors.Is(err, context.DeadlineExceeded):
		return &apiError{Status: http.StatusGatewayTimeout, Type: typeServer, Code: "timeout", Message: "The answer took longer than the server allows."}
	case errors.Is(err, context.Canceled):
		return &apiError{Status: statusClientGone, Type: typeServer, Code: "client_closed_request", Message: "The client closed the request."}
	}
	return &apiError{Status: http.StatusInternalServerError, Type: typeServer, Code: "internal_error", Message: "The server had an error while processing your request."}
}

// tooLarge is a 413.
func tooLarge(format string, args ...any) *apiError {
	return &apiError{Status: http.StatusRequestEntityTooLarge, Type: typeInvalid, Code: "request_too_large", Message: fmt.Sprintf(format, args...)}
}

// modelFailed says that models answer no more requests; they may be the verifiers of
// a search. Trying again soon is of no use.
func modelFailed(names ...string) *apiError {
	subject := "The model '" + names[0] + "' has"
	if len(names) > 1 {
		subject = "The models '" + strings.Join(names, "', '") + "' have"
	}
	return &apiError{Status: http.StatusServiceUnavailable, Type: typeServer, Code: "model_failed",
		Message: subject + " failed: no more requests are answered until the server is restarted. Its log says why."}
}

// envelope is the body of every error.
type envelope struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func (e *apiError) envelope() envelope {
	return envelope{errorBody{Message: e.Message, Type: e.Type, Param: jsonwrite.Optional(e.Param), Code: jsonwrite.Optional(e.Code)}}
}

// writeError answers with err in a dialect; nothing may have been written before.
func writeError(w http.ResponseWriter, err error, failure func(*apiError) any) {
	e := toAPI(err)
	body := failure(e)
	if event, ok := body.(jsonwrite.Event); ok { // as it stands in a stream
		body = event.Data
	}
	writeErrorBody(w, e, body)
}

// writeErrorBody is writeError with a body that may hold more than the envelope.
func writeErrorBody(w http.ResponseWriter, e *apiError, body any) {
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	writeJSON(w, e.Status, body)
}

// writeJSON answers with v. That a client has gone shows in its context.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = jsonwrite.Encode(w, v)
}
