package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/fields"
	"github.com/lutra-lm/lutra/server/jsonread"
)

// posts returns small requests to every endpoint that takes them.
func posts() map[string]string {
	return map[string]string{
		"/v1/chat/completions": chatBody(`,"max_tokens":1`),
		"/v1/completions":      `{"prompt":"a","max_tokens":1}`,
		"/v1/rewards":          `{"messages":[{"role":"user","content":"a"}],"responses":["b"]}`,
		"/tokenize":            `{"prompt":"a"}`,
		"/detokenize":          `{"tokens":[1]}`,
		"/apply-template":      chatBody(""),

		"/v1/chat/completions/render": chatBody(""),
		"/v1/completions/render":      `{"prompt":"a"}`,
	}
}

func TestLargeBodiesThatArriveLeaveRoomForQuestions(t *testing.T) {
	f := start(t, says(t, "Hi."), func(o *Options) {
		o.MaxBody = 1 << 20
		o.MaxMemory = o.leastMemory()
	})
	// A body of which most has arrived and the rest does not.
	size := f.opt.MaxBody - 1
	arriving, sender := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", f.url+"/tokenize", arriving)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = size
	var wg sync.WaitGroup
	wg.Go(func() {
		if status, answer := f.send(req); status != http.StatusBadRequest {
			t.Errorf("the slow body: %d %s, want 400 in the end", status, answer)
		}
	})
	send := func(n int64) { _, _ = io.CopyN(sender, strings.NewReader(strings.Repeat("x", int(n))), n) }
	send(size - 1)
	for f.admitter.memory.Bytes() < size {
		runtime.Gosched()
	}
	held := f.admitter.memory.Lease() // what other such bodies hold
	if err := held.Grow(f.opt.MaxMemory - f.opt.MaxMemory/4 - f.admitter.memory.Bytes()); err != nil {
		t.Fatal(err)
	}
	status, h, answer := f.post("/tokenize", fill(int(size), `{"prompt":"`, "word ", `"}`))
	wantError(t, "another large body", status, answer, http.StatusTooManyRequests, "server_busy", "")
	if h.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if status, _, answer := f.post("/v1/chat/completions", chatBody("")); status != 200 {
		t.Errorf("a question beside large bodies: %d %s, want 200", status, answer)
	}
	held.End()
	send(1)
	wg.Wait()
	if n := f.admitter.memory.Bytes(); n != 0 {
		t.Errorf("%d bytes are held after the last request", n)
	}
}

func TestABodyThatIsAnnouncedAsTooLargeIsNotReceived(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	r := httptest.NewRequest("POST", "http://localhost/tokenize", io.NopCloser(readNothing{t}))
	r.ContentLength = f.opt.MaxBody + 1
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, r)
	wantError(t, "announced", w.Code, w.Body.Bytes(), http.StatusRequestEntityTooLarge, "request_too_large", "")
}

type readNothing struct{ t *testing.T }

func (r readNothing) Read([]byte) (int, error) {
	r.t.Error("the body was read")
	return 0, io.EOF
}

func TestAnAnswerThatWouldFillTheMemoryIsRefusedBeforeItIsBegun(t *testing.T) {
	f := start(t, endless(func() { t.Error("the model was asked") }), func(o *Options) {
		o.MaxBody, o.MaxMemory = 1<<16, 4<<20
		o.MaxChoices = 64
	})
	prompt := strings.Repeat("word ", 1000)
	status, _, answer := f.post("/v1/completions", `{"prompt":"`+prompt+`","echo":true,"logprobs":20,"n":64}`)
	wantError(t, "log-probabilities of 64 prompts", status, answer, http.StatusRequestEntityTooLarge, "request_too_large", "")
	status, _, answer = f.post("/v1/chat/completions", chatBody(`,"logprobs":true,"top_logprobs":20,"test_time_scaling":"bon64"`))
	wantError(t, "log-probabilities of a search", status, answer, http.StatusRequestEntityTooLarge, "request_too_large", "")
	for _, check := range []string{`"json_schema":{}`, `"language":"javascript","tests":["true"]`, `"language":"python","tests":["True"]`} {
		status, _, answer = f.post("/v1/chat/completions", chatBody(`,"test_time_scaling":{"method":"best_of_n","n":2,"verify":{`+check+`}}`))
		wantError(t, "a check by "+check, status, answer, http.StatusRequestEntityTooLarge, "request_too_large", "")
	}
}

func TestAnAnswerThatOutgrowsTheMemoryIsEnded(t *testing.T) {
	f := start(t, endless(func() {}), func(o *Options) { o.MaxBody, o.MaxChoices, o.MaxMemory = 1<<10, 8, 400<<10 })
	held := f.admitter.memory.Lease()
	defer held.End()
	if err := held.Grow(200 << 10); err != nil {
		t.Fatal(err)
	}
	status, _, answer := f.post("/v1/chat/completions", chatBody(`,"logprobs":true,"top_logprobs":20,"n":4`))
	wantError(t, "an answer without end", status, answer, http.StatusTooManyRequests, "server_busy", "")
}

func TestEveryEndpointKeepsToTheServersLimits(t *testing.T) {
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
	wg.Go(func() { f.post("/v1/chat/completions", chatBody("")) })
	<-entered
	for path, body := range posts() {
		status, h, answer := f.post(path, body)
		wantError(t, path+" beside as many requests as are allowed", status, answer, http.StatusTooManyRequests, "server_busy", "")
		if h.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	close(gate)
	wg.Wait()
	for path, body := range posts() {
		f := start(t, says(t, "Hi."), func(o *Options) { o.RequestsPerMinute = 1 })
		f.post("/tokenize", posts()["/tokenize"])
		status, _, answer := f.post(path, body)
		wantError(t, path+" beyond the key's allowance", status, answer, http.StatusTooManyRequests, "rate_limit_exceeded", "")
		f.models.draining.Store(true)
		status, _, answer = f.post(path, body)
		wantError(t, path+" while draining", status, answer, http.StatusServiceUnavailable, "unavailable", "")
	}
}

func TestWorkForAClientThatHasLeftEnds(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	for path, body := range map[string]string{
		"/tokenize":       fill(1<<20, `{"prompt":"`, "word ", `"}`),
		"/detokenize":     `{"tokens":[1]}`,
		"/apply-template": fill(1<<20, `{"messages":[{"role":"user","content":"`, "word ", `"}]}`),
	} {
		w := httptest.NewRecorder()
		f.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "http://localhost"+path, strings.NewReader(body)))
		wantError(t, path, w.Code, w.Body.Bytes(), statusClientGone, "client_closed_request", "")
	}
}

// largest notes the largest write.
type largest struct {
	nowhere
	most, all int
}

func (l *largest) Write(p []byte) (int, error) {
	l.most = max(l.most, len(p))
	l.all += len(p)
	return len(p), nil
}

func TestLongAnswersAreWrittenPieceByPiece(t *testing.T) {
	sweep.Full(t)
	f := start(t, endless(func() {}), nil)
	for path, body := range map[string]string{
		"/tokenize":            fill(1<<19, `{"return_token_strs":true,"prompt":"`, "word ", `"}`),
		"/detokenize":          fill(1<<19, `{"tokens":[5`, ",500", `]}`),
		"/apply-template":      fill(1<<19, `{"messages":[{"role":"user","content":"`, "word ", `"}]}`),
		"/v1/chat/completions": chatBody(`,"n":4,"max_tokens":400,"logprobs":true,"top_logprobs":20`),
		"/v1/completions":      `{"prompt":"a","n":4,"max_tokens":400,"logprobs":20}`,
	} {
		w := &largest{nowhere: nowhere{header: http.Header{}}}
		f.Handler().ServeHTTP(w, httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body)))
		if w.all < 128<<10 || w.most > 64<<10 {
			t.Errorf("%s: status %d, %d bytes in writes of up to %d, want many small ones", path, w.status, w.all, w.most)
		}
	}
}

func TestAnEndlessListOfStepsIsNotRated(t *testing.T) {
	f := real(t, nil)
	status, _, answer := f.post("/v1/rewards", `{"messages":[{"role":"user","content":"a"}],"responses":["`+strings.Repeat(`a\n`, 1025)+`"]}`)
	wantError(t, "1025 steps", status, answer, http.StatusBadRequest, jsonread.CodeValue, "responses")
}

func TestStopTokensAreOneSetForAllChoices(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates, too")
	}
	f := start(t, endless(func() {}), nil)
	var ids strings.Builder
	for i := range fields.MaxStopTokens {
		fmt.Fprintf(&ids, ",%d", i)
	}
	body := func(ids string) string {
		return `{"prompt":"a","n":128,"max_tokens":1,"ignore_eos":true,"stop_token_ids":[` + ids + `]}`
	}
	cost := func(body string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if status, _, answer := f.post("/v1/completions", body); status != 200 {
			t.Fatalf("%d %s", status, answer)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	cost(body("1")) // what is allocated once
	none, all := cost(body("1")), cost(body(ids.String()[1:]))
	if each := 4 * fields.MaxStopTokens; all > none+uint64(64*each) {
		t.Errorf("128 choices with %d stop tokens take %d bytes more than with one, as if each had a list of %d", fields.MaxStopTokens, all-none, each)
	}
}

func TestARequestForManyChoicesLeavesPlacesForOthers(t *testing.T) {
	// The engine has 1024 places, a quarter of them for those who wait for each word.
	f := start(t, &toy.Model{}, func(o *Options) { o.MaxChoices = 1000; o.MaxBody = 1 << 20 })
	if status, _, answer := f.post("/v1/completions", `{"prompt":"a","n":700,"max_tokens":1}`); status != 200 {
		t.Errorf("700 choices: %d %.200s", status, answer)
	}
	status, _, answer := f.post("/v1/completions", `{"prompt":"a","n":800,"max_tokens":1}`)
	wantError(t, "800 choices", status, answer, http.StatusTooManyRequests, "server_busy", "")
}
