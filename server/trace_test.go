package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/lutra-lm/lutra/models/toy"
)

func TestARequestIsATraceOfItsStagesThatContinuesTheCallers(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	log := &logged{}
	f := start(t, &toy.Model{}, func(o *Options) {
		o.Tracer, o.Log = sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), zerolog.New(log)
	})
	const parent = "0af7651916cd43dd8448eb211c80319c"
	ask := func(body, flags string) {
		r := httptest.NewRequest("POST", "http://localhost/v1/chat/completions", strings.NewReader(strings.Replace(body, "Hi", "confidential", 1)))
		r.Header.Set("Traceparent", "00-"+parent+"-b7ad6b7169203331-"+flags)
		w := httptest.NewRecorder()
		if f.Handler().ServeHTTP(w, r); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	ended := func() map[string][]sdk.ReadOnlySpan {
		byName := map[string][]sdk.ReadOnlySpan{}
		for _, s := range spans.Ended() {
			byName[s.Name()] = append(byName[s.Name()], s)
			if s.SpanContext().TraceID().String() != parent {
				t.Errorf("%s is of the trace %s", s.Name(), s.SpanContext().TraceID())
			}
			for _, a := range s.Attributes() {
				if strings.Contains(a.Value.String(), "confidential") {
					t.Errorf("%s shows a prompt: %v", s.Name(), a)
				}
			}
		}
		spans.Reset()
		return byName
	}
	ask(chatBody(`,"max_tokens":3,"ignore_eos":true`), "01")
	got := ended()
	if len(got["chat toy"]) != 1 || len(got["queue"]) != 1 || len(got["prefill"]) != 1 || len(got["decode"]) != 1 || len(got) != 4 {
		t.Fatalf("spans %v", got)
	}
	root := got["chat toy"][0]
	attributes := map[string]string{}
	for _, a := range root.Attributes() {
		attributes[string(a.Key)] = a.Value.String()
	}
	for key, want := range map[string]string{"gen_ai.operation.name": "chat", "gen_ai.request.model": "toy", "gen_ai.usage.output_tokens": "3", "gen_ai.request.max_tokens": "3",
		"http.route": "/v1/chat/completions", "http.response.status_code": "200", "lutra.strategy": "single"} {
		if attributes[key] != want {
			t.Errorf("%s is %q, want %q", key, attributes[key], want)
		}
	}
	if root.Parent().SpanID().String() != "b7ad6b7169203331" || got["decode"][0].Parent().SpanID() != root.SpanContext().SpanID() {
		t.Errorf("the request is a child of %s, decode one of %s", root.Parent().SpanID(), got["decode"][0].Parent().SpanID())
	}
	if !got["queue"][0].EndTime().Equal(got["prefill"][0].StartTime()) || !got["prefill"][0].EndTime().Equal(got["decode"][0].StartTime()) {
		t.Error("the stages do not follow one another")
	}
	if !strings.Contains(log.String(), `"trace_id":"`+parent) {
		t.Errorf("the log has no trace:\n%s", log)
	}
	ask(chatBody(`,"max_tokens":3,"ignore_eos":true,"test_time_scaling":"sc8"`), "01")
	if got := ended(); len(got["search step"]) != 1 || len(got["verifier"]) != 8 {
		t.Errorf("a search of 8 candidates has spans %v", got)
	}
	ask(chatBody(`,"max_tokens":3`), "00") // the caller has not sampled it
	f.do("GET", "/healthz", nil)
	f.do("GET", "/metrics", nil)
	if got := ended(); len(got) != 0 {
		t.Errorf("spans %v of what is not traced", got)
	}
}
