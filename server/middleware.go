package server

import (
	"context"
	"log"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/server/admission"
	"github.com/lutra-lm/lutra/server/jsonread"
	"github.com/lutra-lm/lutra/server/metrics"
	"github.com/lutra-lm/lutra/web"
)

// record is what a request's log line and metrics report. Its handler fills it.
type record struct {
	id       string
	key      *admission.Key // that the client has shown
	strategy string
	metrics.Request
	err   error
	lease *admission.Lease // the memory that it holds; nil before its body is received

	dialect // of its client
}

type recordKey struct{}

// recordOf is the record of the request that ctx belongs to.
func recordOf(ctx context.Context) *record { return ctx.Value(recordKey{}).(*record) }

// observe gives every request an id and a log line, and counts it.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestID(r)
		rec := &record{id: id, Request: metrics.Request{Start: time.Now()}, dialect: dialectOf(r, id)}
		w.Header().Set("X-Request-Id", id)
		if rec.header != "" {
			w.Header().Set(rec.header, id)
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin") // CORS is apart from this
		awaitBody(http.NewResponseController(w), r, unreadBody)
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		// Deferred, so that a connection cut on purpose is logged too.
		defer func() {
			status := ww.Status()
			if rec.err != nil {
				status = toAPI(rec.err).Status
			}
			s.metrics.Answered(routeOf(r), status)
			if rec.Model != "" && rec.err == nil {
				s.metrics.Completed(&rec.Request)
			}
			if rec.key != nil && rec.key.Name != "" {
				s.metrics.AnsweredKey(rec.key.Name, rec.Usage.Prompt, rec.Usage.Completion)
			}
			s.logRequest(r, rec, status)
		}()
		next.ServeHTTP(ww, r.WithContext(context.WithValue(r.Context(), recordKey{}, rec)))
	})
}

// routeOf is the pattern that r was routed by, never its path: clients could make up
// any number of those.
func routeOf(r *http.Request) string {
	if route := chi.RouteContext(r.Context()).RoutePattern(); route != "" {
		return route
	}
	return "other"
}

// requestID is the client's, where it is fit to be printed, or a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	fit := func(c rune) bool { return c > ' ' && c < 0x7f }
	if id == "" || len(id) > 128 || strings.ContainsFunc(id, func(c rune) bool { return !fit(c) }) {
		return uuid.NewString()
	}
	return id
}

// logRequest writes the one line a request has.
func (s *Server) logRequest(r *http.Request, rec *record, status int) {
	var e *zerolog.Event
	switch {
	case status == http.StatusInternalServerError:
		e = s.log.Error()
	case asset(r.URL.Path):
		e = s.log.Debug()
	default:
		e = s.log.Info()
	}
	e = e.Str("id", rec.id).Str("method", r.Method).Str("path", jsonread.Brief([]byte(r.URL.Path))).Int("status", status).
		Dur("duration_ms", time.Since(rec.Start))
	if rec.Model != "" {
		e = e.Str("model", rec.Model).Str("strategy", rec.strategy).
			Int("prompt_tokens", rec.Usage.Prompt).Int("cached_tokens", rec.Usage.Cached).Int("completion_tokens", rec.Usage.Completion)
	}
	if rec.key != nil && rec.key.Name != "" {
		e = e.Str("key", rec.key.Name)
	}
	if !rec.First.IsZero() {
		e = e.Dur("ttft_ms", rec.First.Sub(rec.Start))
		if len(rec.Searches) == 0 { // whose tokens come side by side
			e = e.Dur("tpot_ms", rec.TPOT())
		}
	}
	if rec.Finish != "" {
		e = e.Str("finish", string(rec.Finish))
	}
	e.AnErr("error", rec.err).Msg("request")
}

// asset tells whether requests for a path are logged at Debug alone: probes and
// scrapes come every few seconds, the page's files by the dozen.
func asset(path string) bool {
	return slices.Contains([]string{"/", "/favicon.ico", "/healthz", "/readyz", "/health", "/metrics", "/api/hello"}, path) || strings.HasPrefix(path, web.Prefix)
}

// recover answers a panic with 500. When the answer has begun, it cuts the
// connection, so that nobody takes the answer for whole.
func (s *Server) recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			rec := recordOf(r.Context())
			if p != http.ErrAbortHandler {
				rec.err = errPanic
				s.log.Error().Str("id", rec.id).Interface("panic", p).Bytes("stack", debug.Stack()).Msg("handler panicked")
			}
			if ww, ok := w.(middleware.WrapResponseWriter); ok && ww.Status() == 0 && p != http.ErrAbortHandler {
				writeError(w, errPanic, rec.failure)
				return
			}
			panic(http.ErrAbortHandler)
		}()
		next.ServeHTTP(w, r)
	})
}

// onceSet remembers names, up to a number that a hostile client cannot exceed.
type onceSet struct {
	mu   sync.Mutex
	seen map[string]bool
}

// first tells whether name is new.
func (o *onceSet) first(name string) bool {
	const most = 256
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[name] || len(o.seen) >= most {
		return false
	}
	if o.seen == nil {
		o.seen = make(map[string]bool)
	}
	o.seen[name] = true
	return true
}

// stdLog logs net/http's complaints, mostly of failed handshakes, at Debug.
func stdLog(l zerolog.Logger) *log.Logger {
	return log.New(debugWriter{l}, "", 0)
}

type debugWriter struct{ log zerolog.Logger }

func (d debugWriter) Write(p []byte) (int, error) {
	d.log.Debug().Str("source", "net/http").Msg(strings.TrimSpace(string(p)))
	return len(p), nil
}
