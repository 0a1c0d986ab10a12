package server

import (
	"net/http"
	"strings"

	"github.com/lutra-lm/lutra/server/anthropic"
	"github.com/lutra-lm/lutra/server/ollama"
)

// dialect is whose API a request is of, as far as that shows outside of its handler:
// in errors, which may come before any handler is found, and in headers.
type dialect struct {
	header  string              // that holds the request's id, beside X-Request-Id; empty: none
	failure func(*apiError) any // an error as clients expect it
}

// dialectOf tells it by a request's path, and where two APIs share one by the header
// that all clients of one send.
func dialectOf(r *http.Request, id string) dialect {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/api/"):
		return dialect{"", func(e *apiError) any { return ollama.Failure(e.Message) }}
	case path == "/v1/messages", strings.HasPrefix(path, "/v1/messages/"), fromAnthropic(r):
		return dialect{"Request-Id", func(e *apiError) any { return anthropic.Failure(e.Status, e.Message, e.Param, id) }}
	}
	return dialect{"", func(e *apiError) any { return e.envelope() }}
}

// fromAnthropic reports whether a client of Anthropic's sends a request.
func fromAnthropic(r *http.Request) bool { return r.Header.Get("Anthropic-Version") != "" }
