package tracing

import (
	"context"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// New returns what makes spans, as variables of the environment say, and what sends those that
// are still there and ends it; nil, nil: nothing is to be traced. version is the program's.
// Errors name the variable. Samplers, batches and resources are the SDK's, which reads
// variables of its own.
func New(ctx context.Context, getenv func(string) string, version string, log zerolog.Logger) (trace.TracerProvider, func(context.Context) error, error) {
	v := variables(getenv)
	endpoint, err := v.endpoint()
	if endpoint == "" || err != nil {
		return nil, nil, err
	}
	c, err := v.client(endpoint)
	if err != nil {
		return nil, nil, err
	}
	c.log = log
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug().Err(err).Msg("tracing") })) // client logs what matters
	exporter, err := otlptrace.New(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "lutra"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, err
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	log.Info().Str("endpoint", endpoint).Msg("requests are traced")
	return p, p.Shutdown, nil
}
