package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/batcher"
	"github.com/lutra-lm/lutra/internal/cpulimit"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestOnlyKnownKeysAreAdmitted(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) { o.APIKeys = []string{"alpha", "beta"} })
	for _, c := range []struct {
		header string
		status int
	}{
		{"", 401}, {"alpha", 401}, {"Bearer", 401}, {"Bearer gamma", 401}, {"Basic alpha", 401},
		{"Bearer alpha", 200}, {"bearer beta", 200},
	} {
		status, h, answer := f.do("GET", "/v1/models", nil, "Authorization", c.header)
		if status != c.status {
			t.Errorf("Authorization %q: %d, want %d", c.header, status, c.status)
		}
		if status == 401 {
			wantError(t, c.header, status, answer, 401, "invalid_api_key", "")
			if h.Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/health", "/metrics"} {
		if status, _, _ := f.do("GET", path, nil); status != 200 {
			t.Errorf("%s without a key: %d, want 200", path, status)
		}
	}
}

func TestAFullServerSendsRequestsAway(t *testing.T) {
	gate := make(chan struct{})
	entered := make(chan struct{})
	var once sync.Once
	m := says(t, "Hi.")
	m.Before = func(*models.Batch) error {
		once.Do(func() { close(entered) })
		<-gate
		return nil
	}
	f := start(t, m, func(o *Options) { o.MaxRequests = 1 })
	var wg sync.WaitGroup
	wg.Go(func() {
		if status, _, answer := f.post("/v1/chat/completions", chatBody("")); status != 200 {
			t.Errorf("the first request got %d %s", status, answer)
		}
	})
	<-entered
	status, h, answer := f.post("/v1/chat/completions", chatBody(""))
	wantError(t, "second request", status, answer, http.StatusTooManyRequests, "server_busy", "")
	if h.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(gate)
	wg.Wait()
	if status, _, answer := f.post("/v1/chat/completions", chatBody("")); status != 200 {
		t.Errorf("after the first request ended: %d %s, want 200", status, answer)
	}
}

func TestEachKeyHasItsOwnAllowanceOfRequests(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) { o.APIKeys = []string{"a", "b"}; o.RequestsPerMinute = 2 })
	ask := func(key string) (int, http.Header, []byte) {
		return f.do("POST", "/v1/chat/completions", strings.NewReader(chatBody("")), "Authorization", "Bearer "+key)
	}
	for range 2 {
		if status, _, answer := ask("a"); status != 200 {
			t.Fatalf("within the allowance: %d %s", status, answer)
		}
	}
	status, h, answer := ask("a")
	wantError(t, "third request", status, answer, http.StatusTooManyRequests, "rate_limit_exceeded", "")
	if h.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if status, _, _ := ask("b"); status != 200 {
		t.Errorf("another key: %d, want 200", status)
	}
}

func TestBrowsersMayCallFromTheirOrigins(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) { o.CORSOrigins = []string{"https://chat.example"} })
	status, h, _ := f.do("OPTIONS", "/v1/chat/completions", nil, "Origin", "https://chat.example",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, content-type")
	if status != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != "https://chat.example" ||
		h.Get("Access-Control-Allow-Headers") != "authorization, content-type" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight: %d %v", status, h)
	}
	if _, h, _ := f.do("GET", "/v1/models", nil, "Origin", "https://evil.example"); h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a foreign origin was allowed: %v", h)
	}
	if _, h, _ := f.do("GET", "/nowhere", nil, "Origin", "https://chat.example"); h.Get("Access-Control-Allow-Origin") == "" {
		t.Error("an error is hidden from the page that caused it")
	}
}

func TestARequestThatTakesTooLongGetsATimeout(t *testing.T) {
	gate := make(chan struct{})
	m := says(t, "Hi.")
	m.Before = func(*models.Batch) error {
		<-gate
		return nil
	}
	f := start(t, m, func(o *Options) { o.RequestTimeout = time.Millisecond })
	t.Cleanup(func() { close(gate) })
	status, _, answer := f.post("/v1/chat/completions", chatBody(""))
	wantError(t, "too long", status, answer, http.StatusGatewayTimeout, "timeout", "")
}

func TestAPanicIsAnInternalErrorAndLeavesTheServerUp(t *testing.T) {
	log := &logged{}
	s := New(Options{Bounds: Bounds{MaxBody: 1}, Reporting: Reporting{Log: zerolog.New(log)}})
	h := s.observer.observe(s.observer.recover(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a secret") })))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	wantError(t, "panic", w.Code, w.Body.Bytes(), http.StatusInternalServerError, "internal_error", "")
	if strings.Contains(w.Body.String(), "secret") {
		t.Errorf("the client got %s", w.Body)
	}
	if !strings.Contains(log.String(), "a secret") || !strings.Contains(log.String(), "stack") {
		t.Errorf("the log has no panic: %s", log)
	}
}

func TestARequestHasOneLogLineWithoutItsPrompt(t *testing.T) {
	log := &logged{}
	f := start(t, says(t, "Hi."), func(o *Options) { o.Log = zerolog.New(log).Level(zerolog.InfoLevel) })
	_, h, _ := f.do("POST", "/v1/chat/completions", strings.NewReader(strings.Replace(chatBody(""), "Hi", "confidential", 1)), "X-Request-Id", "my-id")
	if h.Get("X-Request-Id") != "my-id" {
		t.Errorf("X-Request-Id = %q, want the client's", h.Get("X-Request-Id"))
	}
	f.do("GET", "/healthz", nil)
	f.settle()
	got := log.String()
	for _, want := range []string{`"id":"my-id"`, `"model":"toy"`, `"strategy":"single"`, `"ttft_ms":`, `"tpot_ms":`, `"finish":"stop"`, `"status":200`, `"completion_tokens":`} {
		if !strings.Contains(got, want) {
			t.Errorf("log %s has no %s", got, want)
		}
	}
	if strings.Count(got, "\n") != 1 || strings.Contains(got, "confidential") {
		t.Errorf("log %q, want one line without the prompt", got)
	}
}

func TestASilentStreamGetsKeepAliveChunks(t *testing.T) {
	gate := make(chan struct{})
	m := says(t, "Hi.")
	m.Before = func(*models.Batch) error {
		<-gate
		return nil
	}
	f := start(t, m, func(o *Options) { o.KeepAlive = time.Millisecond })
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	stream, err := f.client().CreateChatCompletionStream(t.Context(), openaiRequest("Hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for i := range 4 { // the role, then keep-alive chunks
		c, err := stream.Recv()
		if err != nil || len(c.Choices) != 1 || c.Choices[0].Delta.Content != "" {
			t.Fatalf("chunk %d = %+v, %v, want an empty one", i, c, err)
		}
	}
	open()
	text := ""
	for {
		c, err := stream.Recv()
		if err != nil {
			break
		}
		text += c.Choices[0].Delta.Content
	}
	if text != "Hi." {
		t.Errorf("the stream said %q, want %q", text, "Hi.")
	}
}

// stuck is a client that does not read.
type stuck struct {
	*httptest.ResponseRecorder
	deadlines int
}

func (s *stuck) Write([]byte) (int, error) { return 0, context.DeadlineExceeded }

func (s *stuck) SetWriteDeadline(time.Time) error {
	s.deadlines++
	return nil
}

func TestAClientThatDoesNotReadEndsItsRequest(t *testing.T) {
	f := start(t, endless(func() {}), nil)
	w := &stuck{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("POST", "http://localhost/v1/chat/completions", strings.NewReader(chatBody(`,"stream":true`)))
	f.Handler().ServeHTTP(w, r) // returns, though the model never ends
	if w.deadlines == 0 {
		t.Error("nothing was written under a deadline")
	}
	f.settle()
}

func TestABodyThatDoesNotArriveIsGivenUp(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.BodyTimeout = time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	wantError(t, "slow body", resp.StatusCode, answer, http.StatusRequestTimeout, "timeout", "")
}

func TestARefusalDoesNotWaitForABodyThatNobodyReads(t *testing.T) {
	f := start(t, &toy.Model{}, func(o *Options) { o.APIKeys = []string{"secret"} })
	var all sync.WaitGroup
	defer all.Wait()
	refusal := func(request string, want int) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{", request)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != want || !resp.Close {
			t.Errorf("%s: %d, closing: %v; want %d, and the connection closed", request, resp.StatusCode, resp.Close, want)
		}
	}
	for request, want := range map[string]int{"POST /v1/completions": 401, "POST /nowhere": 404, "GET /healthz": 200} {
		all.Go(func() { refusal(request, want) })
	}
}

func TestAStreamOutlivesTheTimeForItsBody(t *testing.T) {
	gate := make(chan struct{})
	m := says(t, "Late.")
	m.Before = func(*models.Batch) error {
		<-gate
		return nil
	}
	f := start(t, m, func(o *Options) { o.BodyTimeout = 50 * time.Millisecond; o.KeepAlive = 20 * time.Millisecond })
	open := sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	stream, err := f.client().CreateChatCompletionStream(t.Context(), openaiRequest("Hi"))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for range 6 { // keep-alive chunks, until well after the deadline
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	open()
	text := ""
	for c, err := stream.Recv(); err == nil; c, err = stream.Recv() {
		text += c.Choices[0].Delta.Content
	}
	if text != "Late." {
		t.Errorf("the stream said %q, want %q", text, "Late.")
	}
}

func TestErrorsOfTheEngineHaveTheirStatus(t *testing.T) {
	if e := toFault(fmt.Errorf("fork: %w", batcher.ErrBusy)); e.Status != http.StatusTooManyRequests || e.RetryAfter == 0 {
		t.Errorf("a full queue is %d, want 429 with Retry-After", e.Status)
	}
	if e := toFault(fmt.Errorf("check: %w", cpulimit.ErrBusy)); e.Status != http.StatusTooManyRequests || e.RetryAfter != cpulimit.RetryAfter {
		t.Errorf("long work that waits too long is %d, want 429 and to come back later", e.Status)
	}
	if e := toFault(batcher.ErrClosed); e.Status != http.StatusServiceUnavailable {
		t.Errorf("a stopped engine is %d, want 503", e.Status)
	}
	if e := toFault(errors.New("disk on fire")); e.Status != 500 || strings.Contains(e.Message, "fire") {
		t.Errorf("an unknown error is %d %q, want 500 and no cause", e.Status, e.Message)
	}
}

func TestValidateJoinsAllFaults(t *testing.T) {
	o := DefaultOptions()
	if err := o.Validate(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}
	err := (&Options{Exposure: Exposure{Addr: "nowhere", TLSCert: "x", APIKeys: []string{""}}, Bounds: Bounds{RequestsPerMinute: -1}, Timeouts: Timeouts{DrainTimeout: -1}}).Validate()
	for _, key := range []string{"addr", "tls_cert", "api_keys[0]", "max_body", "max_requests", "max_choices", "requests_per_minute", "keep_alive", "drain_timeout"} {
		if err == nil || !strings.Contains(err.Error(), "server."+key) {
			t.Errorf("Validate() = %v, want a fault of server.%s", err, key)
		}
	}
}
