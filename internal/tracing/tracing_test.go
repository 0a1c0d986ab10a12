package tracing

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// environment returns variables.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestSpansReachTheCollectorThatTheEnvironmentNames(t *testing.T) {
	type received struct {
		path, secret string
		spans        *tracepb.TracesData
	}
	got := make(chan received, 4)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		text, err := io.ReadAll(body)
		data := &tracepb.TracesData{}
		if err == nil {
			err = proto.Unmarshal(text, data)
		}
		if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%v of %s", err, r.Header)
		}
		got <- received{r.URL.Path, r.Header.Get("X-Secret"), data}
	}))
	defer collector.Close()
	for _, c := range []struct {
		env  []string
		path string
	}{
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL + "/base/"}, "/base/v1/traces"},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL + "/own", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"}, "/own"},
	} {
		p, end, err := New(t.Context(), environment(append(c.env, "OTEL_EXPORTER_OTLP_HEADERS", "x-secret=a%20b, ,y=1")...), "v1", zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		_, span := p.Tracer("test").Start(context.Background(), "one")
		span.End()
		if err := end(context.Background()); err != nil {
			t.Fatal(err)
		}
		r := <-got
		if r.path != c.path || r.secret != "a b" {
			t.Errorf("sent to %s with %q, want %s", r.path, r.secret, c.path)
		}
		about := ""
		for _, a := range r.spans.ResourceSpans[0].Resource.Attributes {
			about += a.Key + "=" + a.Value.GetStringValue() + " "
		}
		if name := r.spans.ResourceSpans[0].ScopeSpans[0].Spans[0].Name; name != "one" || !strings.Contains(about, "service.name=lutra ") || !strings.Contains(about, "service.version=v1 ") {
			t.Errorf("the span %q of %s", name, about)
		}
	}
}

func TestALostBatchIsToldOfOnceAndHoldsUpNobody(t *testing.T) {
	status := http.StatusServiceUnavailable
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer collector.Close()
	var log strings.Builder
	c, err := variables(environment()).client(collector.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.log = zerolog.New(&log)
	for range 3 {
		if err := c.UploadTraces(t.Context(), nil); err == nil {
			t.Error("503 is no error")
		}
	}
	status = http.StatusOK
	if err := c.UploadTraces(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "spans are lost"); n != 1 || strings.Count(log.String(), "takes traces again") != 1 {
		t.Errorf("the log says\n%s", &log)
	}
}

func TestVariablesOfTheEnvironmentTurnTracesOffOrAreRefusedByName(t *testing.T) {
	const at = "http://127.0.0.1:1"
	for _, c := range []struct {
		env  []string
		says string // empty: nothing is traced
	}{
		{nil, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_SDK_DISABLED", "TRUE"}, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_TRACES_EXPORTER", "none"}, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_TRACES_EXPORTER", "zipkin"}, "OTEL_TRACES_EXPORTER: "},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT: want a URL"},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://x"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: want a URL"},
		{[]string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not http/protobuf`},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_EXPORTER_OTLP_HEADERS", "secret"}, "OTEL_EXPORTER_OTLP_HEADERS: want NAME=VALUE"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1s"}, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: want milliseconds"},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"}, "OTEL_EXPORTER_OTLP_COMPRESSION: "},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_EXPORTER_OTLP_CERTIFICATE", "/none"}, "OTEL_EXPORTER_OTLP_CERTIFICATE: "},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", at, "OTEL_EXPORTER_OTLP_CLIENT_KEY", "x"}, "OTEL_EXPORTER_OTLP_CLIENT_KEY: is not supported"},
	} {
		p, end, err := New(t.Context(), environment(c.env...), "v1", zerolog.Nop())
		if c.says == "" && (p != nil || end != nil || err != nil) || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%v: %v, %v, want %q", c.env, p, err, c.says)
		}
	}
}
