package server

import (
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceScope names the instrumentation.
const traceScope = "github.com/lutra-lm/lutra/server"

// beginSpan begins the span of a request, which continues the span of its traceparent header, unless
// nothing is traced. Probes, scrapes and the page's files have none.
func (o *observer) beginSpan(r *http.Request) (*http.Request, trace.Span) {
	if o.tracer == nil || o.quiet(r.URL.Path) {
		return r, nil
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := o.tracer.Tracer(traceScope).Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method)))
	return r.WithContext(ctx), span
}

// endSpan ends the span of a request with what has become of it, in the words of OpenTelemetry's
// conventions for HTTP and generative AI.
func (o *observer) endSpan(span trace.Span, r *http.Request, rec *record, status int) {
	if span == nil {
		return
	}
	defer span.End()
	if !span.IsRecording() {
		return
	}
	route := routeOf(r)
	name := r.Method + " " + route
	set := []attribute.KeyValue{
		attribute.String("http.route", route), attribute.Int("http.response.status_code", status),
		attribute.String("lutra.request.id", rec.id),
	}
	if rec.key != nil && rec.key.Name != "" {
		set = append(set, attribute.String("lutra.key", rec.key.Name))
	}
	if rec.err != nil {
		set = append(set, attribute.String("error.type", toFault(rec.err).Code))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	if a := rec.account.Load(); a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		if op := operationOf(route); op != "" {
			name = op + " " + a.Model
			set = append(set, attribute.String("gen_ai.operation.name", op))
		}
		set = append(set, a.attributes()...)
		o.stageSpans(span, r, rec, a)
	}
	span.SetName(strings.TrimSpace(name))
	span.SetAttributes(set...)
}

// operationOf returns the word of the conventions for what a route does; empty: there is none.
func operationOf(route string) string {
	switch {
	case strings.Contains(route, "embed"):
		return "embeddings"
	case strings.Contains(route, "chat"), strings.HasPrefix(route, "/v1/messages"), strings.HasPrefix(route, "/v1/responses"):
		return "chat"
	case strings.HasSuffix(route, "/completions"), route == "/infill", route == "/api/generate":
		return "text_completion"
	}
	return ""
}

// attributes returns what the conventions for generative AI want to know. Locked.
func (a *account) attributes() []attribute.KeyValue {
	set := []attribute.KeyValue{
		attribute.String("gen_ai.provider.name", "lutra"),
		attribute.String("gen_ai.request.model", a.Model),
		attribute.Int("gen_ai.usage.input_tokens", a.Usage.Prompt),
		attribute.Int("gen_ai.usage.output_tokens", a.Usage.Completion),
		attribute.Int("gen_ai.usage.cache_read.input_tokens", a.Usage.Cached),
		attribute.String("lutra.strategy", a.strategy),
	}
	if a.MaxTokens > 0 {
		set = append(set, attribute.Int("gen_ai.request.max_tokens", a.MaxTokens))
	}
	if a.N > 1 {
		set = append(set, attribute.Int("gen_ai.request.choice.count", a.N))
	}
	if a.Finish != "" {
		set = append(set, attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(a.Finish)}))
	}
	return set
}

// stageSpans adds the stages of the first prompt and answer, whose times are known by now. Locked.
func (o *observer) stageSpans(span trace.Span, r *http.Request, rec *record, a *account) {
	ctx := trace.ContextWithSpan(r.Context(), span)
	stage := func(name string, from, to time.Time) {
		if from.IsZero() || to.IsZero() {
			return
		}
		_, s := o.tracer.Tracer(traceScope).Start(ctx, name, trace.WithTimestamp(from))
		s.End(trace.WithTimestamp(to))
	}
	started, first := a.stages()
	stage("queue", rec.start, started)
	stage("prefill", started, first)
	stage("decode", first, time.Now())
}
