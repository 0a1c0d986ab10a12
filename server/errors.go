package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/jsonwrite"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/server/residency"
	"github.com/lutra-lm/lutra/tts"
	"github.com/lutra-lm/lutra/tts/constrain"
	"github.com/lutra-lm/lutra/tts/reward"
	"github.com/lutra-lm/lutra/tts/scaling"
	"github.com/lutra-lm/lutra/tts/structure"
	"github.com/lutra-lm/lutra/tts/verify"
)

// Errors that the server itself finds.
var (
	errDraining = errors.New("server: shutting down")
	errPanic    = errors.New("server: a handler panicked")
	errSlowBody = errors.New("server: the request body did not arrive in time")
	errStuck    = errors.New("server: work beside the engines does not move")
)

// statusClientGone is logged for a client that left before its answer (nginx's
// code); nobody receives it.
const statusClientGone = 499

// toFault maps errors to HTTP, and nothing else does: by the first of faults that knows err. What none
// knows is a 500, whose cause is logged and not sent.
func toFault(err error) *api.Fault {
	for _, fault := range faults {
		if f := fault(err); f != nil {
			return f
		}
	}
	return broken("internal_error", "The server had an error while processing your request.")
}

// faults maps errors to the faults that clients see; the row of nil is for all other errors.
var faults = []func(error) *api.Fault{
	as(func(f *api.Fault) *api.Fault { return f }),
	as(func(e *jsonread.Error) *api.Fault { return api.Invalid(e.Code, e.Param, "%s", e.Message) }),
	as(tooLong),
	as(func(e *scaling.Error) *api.Fault { // found only when the search begins
		return api.Invalid(e.Code, api.ScalingField, "Invalid '%s': %s: %s.", api.ScalingField, e.Field, e.Message)
	}),
	as(func(e *verify.ServiceError) *api.Fault {
		return unavailable("verifier_failed", fmt.Sprintf("The verifier '%s' has not judged: %s.", jsonread.Brief(e.Name), errtext.Text(e.Err)), time.Second)
	}),
	told(reward.ErrSteps, "responses", "%s"),
	is(reward.ErrBlank, api.Invalid(jsonread.CodeValue, "responses", "A response is blank.")),
	is(batcher.ErrTooLong, api.Invalid(api.CodeContext, "", "The request does not fit the server's memory for contexts. Please shorten the prompt.")),
	is(sampling.ErrForbidden, api.Invalid(jsonread.CodeValue, "", "The request's response_format, allowed_token_ids, bad_words, min_tokens and logit_bias together leave no token to go on with.")),
	is(structure.ErrBusy, busy("The formats of the requests under way take all the memory for formats. Please try again shortly.")),
	as(func(e *constrain.FormatError) *api.Fault {
		return api.Invalid(jsonread.CodeValue, "", "%s.", e)
	}),
	told(tts.ErrFormat, "response_format", "Invalid 'response_format': %s."),
	told(tts.ErrPromptLogprobs, "prompt_logprobs", "Invalid 'prompt_logprobs': %s."),
	told(tts.ErrLogprobs, "logprobs", "Invalid 'logprobs': %s."),
	is(tts.ErrEmpty, api.Invalid(jsonread.CodeValue, "prompt", "The prompt is empty and the model has no beginning-of-text token; give at least one token.")),
	told(tts.ErrToken, "prompt", "%s"),
	is(tts.ErrInfill, api.Invalid(jsonread.CodeUnsupported, "suffix", "The model has no tokens to fill in the middle of a text.")),
	told(tts.ErrTemplate, "messages", "%s"),
	as(func(e *http.MaxBytesError) *api.Fault {
		return tooLarge("The request body is larger than %d bytes.", e.Limit)
	}),
	as(func(e *admission.MemoryError) *api.Fault {
		return tooLarge("The request needs more memory than the server gives to one (%d bytes). Send less, or ask for less at once.", e.Most)
	}),
	is(errSlowBody, api.InvalidStatus(http.StatusRequestTimeout, "timeout", "", "The request body did not arrive in time.")),
	as(func(e *registry.NotFoundError) *api.Fault {
		message := "This server has no " + e.Wanted + "."
		if e.Name != "" {
			message = "The model '" + jsonread.Brief(e.Name) + "' does not exist."
		}
		return api.InvalidStatus(http.StatusNotFound, "model_not_found", "model", message)
	}),
	is(models.ErrNotFinite, broken("model_not_finite", "The model computes numbers that are infinite or NaN of this input: its file is damaged, or its weights are too large.")),
	as(func(e *batcher.FailedError) *api.Fault { return modelFailed(e.Model) }),
	as(func(*batcher.FaultError) *api.Fault {
		return unavailable("device_failed", "The device that computed this answer has failed. Please ask again: the model goes on without it.", time.Second)
	}),
	is(batcher.ErrBusy, busy("The server is busy. Please try again shortly.")),
	is(cpulimit.ErrBusy, busyFor(cpulimit.RetryAfter, "Other requests' long texts and checks take all the time beside the engines. Please try again later.")),
	is(admission.ErrBusy, busy("The server is busy. Please try again shortly.")),
	as(func(e *admission.RateError) *api.Fault {
		return &api.Fault{Status: http.StatusTooManyRequests, Type: api.TypeRateLimit, Code: "rate_limit_exceeded",
			Message: fmt.Sprintf("Rate limit reached: %s of this key is %d. Please try again in %v.", e.Limit, e.Most, e.Wait.Round(time.Millisecond)), RetryAfter: e.Wait}
	}),
	as(func(e *residency.LoadError) *api.Fault {
		return unavailable("model_load_failed", "The model '"+jsonread.Brief(e.Model)+"' could not be loaded: its file is missing, damaged or of a kind that this server does not read. The server's log says more.", max(time.Second, time.Until(e.Retry)))
	}),
	as(func(e *residency.RoomError) *api.Fault {
		return unavailable("insufficient_memory", fmt.Sprintf("The model '%s' needs %s of memory, and this server has room for %s.", jsonread.Brief(e.Model), humanize.IBytes(uint64(e.Need)), humanize.IBytes(uint64(max(0, e.Room)))), 30*time.Second)
	}),
	is(residency.ErrQueue, unavailable("server_busy", "Too many requests wait for models to be loaded. Please try again shortly.", 5*time.Second)),
	is(residency.ErrLoaded, api.Invalid(jsonread.CodeValue, "model", "model is already running")),
	is(residency.ErrAbsent, api.Invalid(jsonread.CodeValue, "model", "model is not running")),
	is(residency.ErrPinned, api.Invalid(jsonread.CodeValue, "model", "The model is pinned: it stays in memory.")),
	is(residency.ErrClosed, unavailable("unavailable", "The server is shutting down.", 5*time.Second)),
	is(errLoading, unavailable("unavailable", "The model is still being loaded.", 5*time.Second)),
	is(errDraining, unavailable("unavailable", "The server is shutting down.", 5*time.Second)),
	is(errStuck, unavailable("work_stuck", "Work beside the engines has not moved for half a minute: long prompts wait. Restart the server if that goes on.", 5*time.Second)),
	is(batcher.ErrClosed, unavailable("unavailable", "The server is shutting down.", 5*time.Second)),
	is(context.DeadlineExceeded, &api.Fault{Status: http.StatusGatewayTimeout, Type: api.TypeServer, Code: "timeout", Message: "The answer took longer than the server allows."}),
	is(context.Canceled, &api.Fault{Status: statusClientGone, Type: api.TypeServer, Code: "client_closed_request", Message: "The client closed the request."}),
}

// is returns the fault of one error.
func is(target error, f *api.Fault) func(error) *api.Fault {
	return func(err error) *api.Fault {
		if errors.Is(err, target) {
			return f
		}
		return nil
	}
}

// told returns the fault of one error, whose message has the error's own text.
func told(target error, param, format string) func(error) *api.Fault {
	return func(err error) *api.Fault {
		if errors.Is(err, target) {
			return api.Invalid(jsonread.CodeValue, param, format, strings.TrimPrefix(errtext.Text(err), "too many log-probabilities: "))
		}
		return nil
	}
}

// as returns the fault of errors of one type.
func as[E error](fault func(E) *api.Fault) func(error) *api.Fault {
	return func(err error) *api.Fault {
		var e E
		if errors.As(err, &e) {
			return fault(e)
		}
		return nil
	}
}

// tooLong returns a 400 about a prompt, or about responses that are to be rated.
func tooLong(e *tts.ContextError) *api.Fault {
	what, verb := "prompt", "has"
	if e.Part != tts.PartPrompt {
		what, verb = string(e.Part), "have"
	}
	f := api.Invalid(api.CodeContext, string(e.Part), "This model's maximum context length is %d tokens. However, your %s %s at least %d tokens. Please shorten the %s.",
		e.Limit, what, verb, e.Prompt, what)
	f.Tokens, f.MaxTokens = e.Prompt, e.Limit
	return f
}

// tooLarge returns a 413.
func tooLarge(format string, args ...any) *api.Fault {
	return api.InvalidStatus(http.StatusRequestEntityTooLarge, "request_too_large", "", fmt.Sprintf(format, args...))
}

// busy returns a 429.
func busy(message string) *api.Fault { return busyFor(time.Second, message) }

// busyFor returns a 429 of a server that will be busy for some time.
func busyFor(again time.Duration, message string) *api.Fault {
	return &api.Fault{Status: http.StatusTooManyRequests, Type: api.TypeRateLimit, Code: "server_busy", Message: message, RetryAfter: again}
}

// broken returns a 500.
func broken(code, message string) *api.Fault {
	return &api.Fault{Status: http.StatusInternalServerError, Type: api.TypeServer, Code: code, Message: message}
}

// unavailable returns a 503.
func unavailable(code, message string, again time.Duration) *api.Fault {
	return &api.Fault{Status: http.StatusServiceUnavailable, Type: api.TypeServer, Code: code, Message: message, RetryAfter: again}
}

// modelFailed says that models answer no more requests; they may be the verifiers of
// a search. Trying again soon is of no use.
func modelFailed(names ...string) *api.Fault {
	subject := "The model '" + names[0] + "' has"
	if len(names) > 1 {
		subject = "The models '" + strings.Join(names, "', '") + "' have"
	}
	return unavailable("model_failed", subject+" failed: no more requests are answered until the server is restarted. Its log says why.", 0)
}

// writeFailure answers with a fault, whose body it gets.
func writeFailure(w http.ResponseWriter, f *api.Fault, body any) {
	if f.RetryAfter > 0 {
		seconds := (f.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
	}
	api.WriteJSON(w, f.Status, body)
}

// fail notes an error for the log line, and answers with it unless an answer has begun.
func (a apis) fail(w http.ResponseWriter, r *http.Request, err error) (begun bool) {
	rec := recordOf(r.Context())
	rec.err = err
	f := toFault(err)
	body := a.of(r).Failure(f, rec.id)
	if w.(middleware.WrapResponseWriter).Status() != 0 {
		if rec.waiting != nil {
			rec.waiting.fail(body)
		}
		return true
	}
	if event, ok := body.(jsonwrite.Event); ok { // as it stands in a stream
		body = event.Data
	}
	writeFailure(w, f, body)
	return false
}
