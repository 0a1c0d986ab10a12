package anthropic

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/api"
	"github.com/lutra-lm/lutra/server/jsonwrite"
)

// failure writes a fault as an event of the API's form, with the request's id. If param is a thread, which the
// client's runner of tools asks for by itself, details tell it to go on without.
func failure(f *api.Fault, id string) any {
	type details struct {
		Code        string   `json:"error_code"`
		Unsupported []string `json:"unsupported"`
	}
	type fault struct {
		Type    string   `json:"type"`
		Message string   `json:"message"`
		Param   string   `json:"param,omitempty"`
		Details *details `json:"details,omitempty"`
	}
	body := fault{Type: errorType(f.Status), Message: f.Message, Param: f.Param}
	if f.MaxTokens > 0 { // clients shorten the conversation by themselves if they are told in these words
		body.Message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", f.Tokens, f.MaxTokens)
	}
	if f.Param == fieldThread {
		body.Details = &details{"thread_unsupported_request", []string{fieldThread}}
	}
	return jsonwrite.Event{Name: "error", Data: struct {
		Type  string `json:"type"`
		Error fault  `json:"error"`
		ID    string `json:"request_id"`
	}{"error", body, id}}
}

// rates writes the headers of Anthropic's API that say where a key stands.
func rates(h http.Header, what string, r *admission.Rate) {
	of := "Anthropic-Ratelimit-" + what
	h.Set(of+"-Limit", strconv.Itoa(r.Limit))
	h.Set(of+"-Remaining", strconv.Itoa(r.Remaining))
	h.Set(of+"-Reset", time.Now().Add(r.Reset).UTC().Format(time.RFC3339))
}

// errorType returns the API's word for a status.
func errorType(status int) string {
	switch status {
	case 400, 408, 409, 415, 422:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404, 405:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	return "api_error"
}
