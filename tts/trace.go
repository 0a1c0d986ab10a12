package tts

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/lutra-lm/lutra/tts/scaling"
)

// stage says what a search is doing.
type stage struct {
	does  scaling.Method // the plan's, or for Auto the one that it has chosen
	steps int            // solution steps so far
}

// traced begins a span of a search whose request is traced, until end is called. Of other
// requests it costs a look at the context.
func (s *stage) traced(ctx context.Context, name string, candidates int) (_ context.Context, end func()) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func() {}
	}
	ctx, span := parent.TracerProvider().Tracer("github.com/lutra-lm/lutra/tts").Start(ctx, name, trace.WithAttributes(
		attribute.String("lutra.search.method", string(s.does)),
		attribute.Int("lutra.search.step", s.steps),
		attribute.Int("lutra.search.candidates", candidates)))
	return ctx, func() { span.End() }
}
