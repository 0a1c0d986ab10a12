package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestTheDebugAddressShowsWhatAnOperatorLooksAt(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) {
		o.DebugAddr, o.APIKeysFile = "127.0.0.1:6060", keyFile(t, "alice: a", 0o600)
	})
	if w := f.as("POST", "/v1/chat/completions", "a", strings.Replace(chatBody(""), "Hi", "confidential", 1)); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	debug := f.debug.routes()
	get := func(host, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		debug.ServeHTTP(w, httptest.NewRequest("GET", "http://"+host+path, nil))
		return w
	}
	for path, sign := range map[string]string{
		"/debug/requests": `"recent":[{"id":"`, "/debug/logs?tail=0": "", "/debug/state": `"model":"toy"`, "/usage": `"key":"alice"`, "/metrics": `lutra_key_requests_total{key="alice"} 1`,
		"/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile", "/debug/pprof/cmdline": "server.test",
	} {
		w := get("localhost:6060", path)
		if w.Code != 200 || !strings.Contains(w.Body.String(), sign) || strings.Contains(w.Body.String(), "confidential") {
			t.Errorf("%s: %d %.300s, want %s", path, w.Code, w.Body, sign)
		}
	}
	if w := get("evil.example", "/debug/requests"); w.Code != http.StatusForbidden {
		t.Errorf("under another name: %d", w.Code)
	}
	if w := get("localhost", "/v1/models"); w.Code != 404 {
		t.Errorf("the API on the debug address: %d", w.Code)
	}
	for path, want := range map[string]int{"/debug/pprof/": 403, "/debug/pprof/heap": 403, "/debug/state": 404} {
		if w := f.as("GET", path, "a", ""); w.Code != want {
			t.Errorf("%s on the server's address: %d, want %d", path, w.Code, want)
		}
	}
}

func TestTheDebugAddressIsOpenWhileTheServerRuns(t *testing.T) {
	log := &logged{want: "/debug/pprof/", ch: make(chan struct{})}
	f := start(t, says(t, "Hi."), func(o *Options) { o.DebugAddr, o.Log = "127.0.0.1:0", zerolog.New(log) })
	l, err := f.debug.listen()
	if err != nil {
		t.Fatal(err)
	}
	<-log.ch
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { defer close(ended); f.debug.serve(l, done) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/debug/requests")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
	close(done)
	<-ended
	if _, err := http.Get("http://" + l.Addr().String() + "/debug/requests"); err == nil {
		t.Error("the debug address outlives the server")
	}
	o := DefaultOptions()
	for _, addr := range []string{"6060", "127.0.0.1:8080"} {
		o.DebugAddr = addr
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "server.debug_addr") {
			t.Errorf("debug_addr %q: %v", addr, err)
		}
	}
	o.DebugAddr = "0.0.0.0:6060"
	if got := o.Warnings(); len(got) != 1 || !strings.Contains(got[0], "without a key") {
		t.Errorf("on all addresses: %q", got)
	}
}

func TestTheLogLineOfARequestSaysFromWhereItCameAndHowMuchItGot(t *testing.T) {
	log := &logged{}
	f := start(t, says(t, "Hi."), func(o *Options) { o.Log = zerolog.New(log) })
	w := f.as("POST", "/v1/chat/completions", "", chatBody(""))
	for _, want := range []string{`"remote":"192.0.2.1"`, `"bytes":` + fmtInt(w.Body.Len())} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log %s lacks %s", log, want)
		}
	}
	for _, id := range []string{strings.Repeat("x", 129), "a b", "é"} {
		r := httptest.NewRequest("GET", "http://localhost/healthz", nil)
		r.Header.Set("X-Request-Id", id)
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, r)
		if got := w.Header().Get("X-Request-Id"); got == id || len(got) != 36 {
			t.Errorf("the id %.10q becomes %q", id, got)
		}
	}
}
