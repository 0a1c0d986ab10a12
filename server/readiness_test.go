package server

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/registry"
	"github.com/lutra-lm/lutra/tts/reward"
)

// fragile makes a toy model that fails from when broken is set.
func fragile(m *toy.Model, broken *atomic.Bool) *toy.Model {
	m.Before = func(*models.Batch) error {
		if broken.Load() {
			return errors.New("disk on fire")
		}
		return nil
	}
	return m
}

// wantFailed checks that an answer names a failed model, and no more than it.
func wantFailed(t *testing.T, what string, status int, answer []byte, model string) {
	t.Helper()
	wantError(t, what, status, answer, http.StatusServiceUnavailable, "model_failed", "")
	if !bytes.Contains(answer, []byte("'"+model+"'")) || bytes.Contains(answer, []byte("fire")) {
		t.Errorf("%s: %s, want the name of %s and no cause", what, answer, model)
	}
}

func TestAModelThatFailsTakesNoOtherWithIt(t *testing.T) {
	var broken atomic.Bool
	f := start(t, says(t, "Fine."), nil)
	bad := toyModel(t, fragile(says(t, "Never."), &broken), "bad", nil)
	if err := f.Publish(registry.Served{Model: f.model}, registry.Served{Model: bad, Aliases: []string{"also-bad"}}); err != nil {
		t.Fatal(err)
	}
	probes := []string{"/readyz", "/health"}
	for _, probe := range probes {
		if status, _, answer := f.do("GET", probe, nil); status != http.StatusOK {
			t.Errorf("%s = %d %s before anything failed", probe, status, answer)
		}
	}
	broken.Store(true)
	ask := func(model, more string) (int, []byte) {
		status, _, answer := f.post("/v1/chat/completions", strings.Replace(chatBody(more), "toy", model, 1))
		return status, answer
	}
	for _, model := range []string{"bad", "also-bad"} {
		status, answer := ask(model, "")
		wantFailed(t, model, status, answer, "bad")
	}
	if status, answer := ask("toy", ""); status != http.StatusOK || !bytes.Contains(answer, []byte("Fine.")) {
		t.Errorf("the other model answers %d %s", status, answer)
	}
	for _, probe := range probes {
		status, _, answer := f.do("GET", probe, nil)
		got := strict[notReady](t, answer)
		if status != http.StatusServiceUnavailable || *got.Error.Code != "model_failed" || !slices.Equal(got.Failed, []string{"bad"}) {
			t.Errorf("%s = %d %s, want 503, model_failed and the model's name", probe, status, answer)
		}
	}
	if status, _, _ := f.do("GET", "/healthz", nil); status != http.StatusOK {
		t.Errorf("/healthz = %d: the process is well", status)
	}
	if _, _, answer := f.do("GET", "/v1/models", nil); !bytes.Contains(answer, []byte(`"id":"bad"`)) {
		t.Errorf("/v1/models = %s, want the failed model too", answer)
	}
	_, _, metrics := f.do("GET", "/metrics", nil)
	for _, line := range []string{`lutra_model_failed{model_name="bad"} 1`, `lutra_model_failed{model_name="toy"} 0`} {
		if !bytes.Contains(metrics, []byte(line)) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

func TestAStreamUnderWayEndsWithTheModelsFailure(t *testing.T) {
	var broken atomic.Bool
	m := fragile(&toy.Model{}, &broken)
	f := start(t, m, nil)
	m.Logits = func(tokens []int32, row []float32) {
		clear(row)
		row[tokens[len(tokens)-1]%100+100] = 50
		if len(tokens) > 60 {
			broken.Store(true)
		}
	}
	status, _, stream := f.post("/v1/completions", `{"model":"toy","prompt":"Hi","max_tokens":200,"temperature":0,"stream":true}`)
	if status != http.StatusOK || !bytes.Contains(stream, []byte(`"code":"model_failed"`)) {
		t.Errorf("the stream of a failing model is %d %s", status, stream)
	}
}

func TestASearchWhoseVerifierFailsNamesIt(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	f := start(t, says(t, "Fine."), nil)
	judge := toyModel(t, fragile(&toy.Model{Outputs: 1}, &broken), "judge", nil)
	scorer, err := reward.New(judge, reward.Formats()[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish(registry.Served{Model: f.model}, registry.Served{Model: judge, Reward: scorer}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		body := chatBody(`,"test_time_scaling":"bon4"`)
		if path == "/v1/completions" {
			body = `{"model":"toy","prompt":"Hi","test_time_scaling":"beam4x2"}`
		}
		status, _, answer := f.post(path, body)
		wantFailed(t, path, status, answer, "judge")
	}
	if status, _, answer := f.post("/v1/chat/completions", chatBody("")); status != http.StatusOK {
		t.Errorf("without the verifier: %d %s", status, answer)
	}
}

func TestBeforeModelsAreLoadedRequestsAreAskedToWait(t *testing.T) {
	s := New(DefaultOptions())
	ask := func(method, path, body string) notReady {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body)))
		got := strict[notReady](t, w.Body.Bytes())
		if w.Code != http.StatusServiceUnavailable || *got.Error.Code != "unavailable" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s = %d %s, want 503, unavailable and Retry-After", path, w.Code, w.Body)
		}
		return got
	}
	ask("GET", "/v1/models", "")
	ask("POST", "/v1/chat/completions", chatBody(""))
	ask("GET", "/readyz", "")
	s.Loading("first", 0, 1<<40)
	s.Loading("second", 0, 0)
	s.Loading("first", 1<<38, 1<<40)
	want := []modelProgress{{"first", 0.25}, {"second", 0}}
	for _, probe := range []string{"/readyz", "/health"} {
		if got := ask("GET", probe, ""); !slices.Equal(got.Loading, want) {
			t.Errorf("%s tells of %+v, want %+v", probe, got.Loading, want)
		}
	}
}
