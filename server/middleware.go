package server

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"

	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/internal/errtext"
	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/metrics"
)

// observer owns the record of each request: it makes the record, and tells log, metrics, traces and
// /debug/requests what has become of the request.
type observer struct {
	apis     apis
	quiet    func(path string) bool // of paths of which nothing is said
	log      zerolog.Logger
	tracer   trace.TracerProvider // nil: nothing is traced
	metrics  *metrics.Metrics
	requests *requests
}

// observe gives every request an id and a log line, and counts it.
func (o *observer) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestID(r)
		rec := &record{id: id, start: time.Now()}
		r, span := o.beginSpan(r)
		w.Header().Set("X-Request-Id", id)
		if header := o.apis.of(r).IDHeader; header != "" {
			w.Header().Set(header, id)
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin") // CORS is apart from this
		awaitBody(http.NewResponseController(w), r, unreadBody)
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		// Deferred, so that a connection cut on purpose is logged too.
		defer func() {
			status := ww.Status()
			if rec.err != nil {
				status = toFault(rec.err).Status
			}
			o.metrics.Answered(routeOf(r), status)
			if acc := rec.account.Load(); acc != nil {
				if acc.Model != "" && rec.err == nil {
					o.metrics.Completed(&acc.Request)
				}
				if rec.key != nil {
					rec.key.Answered(acc.Usage.Prompt, acc.Usage.Completion+acc.Usage.Critiques) // as it is charged
				}
			}
			o.requests.leave(rec, status)
			o.endSpan(span, r, rec, status)
			o.logRequest(r, rec, status, ww.BytesWritten())
		}()
		next.ServeHTTP(ww, r.WithContext(cpulimit.Request(context.WithValue(r.Context(), recordKey{}, rec))))
	})
}

// routeOf returns the pattern that r was routed by, never its path: clients could make up
// any number of those.
func routeOf(r *http.Request) string {
	if route := chi.RouteContext(r.Context()).RoutePattern(); route != "" {
		return route
	}
	return "other"
}

// requestID returns the client's, where it is fit to be printed, or a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return uuid.NewString()
	}
	return id
}

// remote returns the address that a request came from: its client's, or a proxy's.
func remote(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// logRequest writes the one line a request has.
func (o *observer) logRequest(r *http.Request, rec *record, status, bytes int) {
	var e *zerolog.Event
	switch {
	case status == http.StatusInternalServerError:
		e = o.log.Error()
	case o.quiet(r.URL.Path):
		e = o.log.Debug()
	default:
		e = o.log.Info()
	}
	e = e.Str("id", rec.id).Str("method", r.Method).Str("path", jsonread.Brief(r.URL.Path)).Int("status", status).
		Int("bytes", bytes).Str("remote", remote(r)).Dur("duration_ms", time.Since(rec.start))
	if acc := rec.account.Load(); acc != nil {
		acc.log(e, rec.start)
	}
	if rec.key != nil && rec.key.Name != "" {
		e = e.Str("key", rec.key.Name)
	}
	if span := trace.SpanContextFromContext(r.Context()); span.IsSampled() {
		e = e.Stringer("trace_id", span.TraceID())
	}
	if rec.err != nil {
		e = e.Str("error", errtext.Text(rec.err))
	}
	e.Msg("request")
}

// recover answers a panic with 500. When the answer has begun, it cuts the
// connection, so that nobody takes the answer for whole.
func (o *observer) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := parallel.Caught(recover())
			if p == nil {
				return
			}
			if p.Value == http.ErrAbortHandler {
				panic(p.Value)
			}
			o.log.Error().Str("id", recordOf(r.Context()).id).Interface("panic", p.Value).Bytes("stack", p.Stack).Msg("handler panicked")
			if begun := o.apis.fail(w, r, errPanic); begun {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
