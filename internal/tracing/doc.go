// Package tracing sends spans to a collector of OpenTelemetry, as the standard variables of the
// environment say (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
// and the page about the OTLP exporter). Without them it does nothing.
//
//	span ends ──▶ bounded queue of the SDK ──▶ batches ──▶ POST .../v1/traces (OTLP, http/protobuf)
//
// A queue that is full drops spans: no request waits for a collector. What a collector does not
// take is not sent again.
package tracing
