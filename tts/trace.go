package tts

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// traced begins a span of a search whose request is traced, until end is called. Of other
// requests it costs a look at the context.
func (r *searchRun) traced(ctx context.Context, name string, candidates int) (_ context.Context, end func()) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func() {}
	}
	ctx, span := parent.TracerProvider().Tracer("github.com/lutra-lm/lutra/tts").Start(ctx, name, trace.WithAttributes(
		attribute.String("lutra.search.method", string(r.method)),
		attribute.Int("lutra.search.step", r.steps),
		attribute.Int("lutra.search.candidates", candidates)))
	return ctx, func() { span.End() }
}
