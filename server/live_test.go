package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestThirtyTwoStreamsAtOnceGetTheTextsThatEachGetsAlone(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	body := func(i int, stream bool) string {
		return fmt.Sprintf(`{"messages":[{"role":"user","content":"Number %d"}],"seed":%d,"max_tokens":%d,"stream":%v}`, i, i, 10+i, stream)
	}
	var wg sync.WaitGroup
	streams := make([][]byte, 32)
	for i := range streams {
		wg.Go(func() { _, _, streams[i] = f.post("/v1/chat/completions", body(i, true)) })
	}
	wg.Wait()
	for i, stream := range streams {
		_, _, answer := f.post("/v1/chat/completions", body(i, false))
		alone, text := *wholeChat(t, answer, 1).Choices[0].Message.Content, chatChunks(t, stream, 1, false)[0]
		if alone != text {
			t.Errorf("request %d said %q in company and %q alone", i, text, alone)
		}
	}
}

func TestTheMostChoicesAreAnswered(t *testing.T) {
	f := start(t, &toy.Model{}, nil)
	_, _, answer := f.post("/v1/chat/completions", chatBody(`,"n":128,"seed":1,"max_tokens":4,"ignore_eos":true`))
	c := wholeChat(t, answer, 128)
	if c.Usage.Completion != 128*4 {
		t.Errorf("usage = %+v, want 4 tokens of each of 128 choices", c.Usage)
	}
	seen := make(map[string]bool)
	for _, ch := range c.Choices {
		seen[*ch.Message.Content] = true
	}
	if len(seen) < 120 {
		t.Errorf("128 choices say only %d different things", len(seen))
	}
}

func TestAClientThatLeavesFreesItsBlocks(t *testing.T) {
	for _, stream := range []bool{true, false} {
		started := make(chan struct{})
		var once sync.Once
		f := start(t, endless(func() { once.Do(func() { close(started) }) }), nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-started
			cancel()
		}()
		body := chatBody(fmt.Sprintf(`,"n":4,"stream":%v`, stream))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
		f.settle()
	}
}

// endless returns a model that never ends its turn; onStep is called at every step.
func endless(onStep func()) *toy.Model {
	return &toy.Model{Context: 1 << 12, Logits: func(_ []int32, row []float32) {
		clear(row)
		row[100] = 50
	}, Before: func(*models.Batch) error {
		onStep()
		return nil
	}}
}

// logged is a log that tells when a message is written.
type logged struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	want string
	ch   chan struct{}
}

func (h *logged) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.want != "" && bytes.Contains(p, []byte(h.want)) {
		h.want = ""
		close(h.ch)
	}
	return h.buf.Write(p)
}

func (h *logged) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}

// stopDuringStream starts a stream on a model that waits, tells the server to stop, lets
// the model go on if asked, and returns what the stream says.
func stopDuringStream(t *testing.T, timeout time.Duration, goOn bool) (stream string, f *fixture) {
	t.Helper()
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	m := says(t, "Slowly.")
	m.Before = func(*models.Batch) error {
		<-gate
		return nil
	}
	log := &logged{want: `"stopping`, ch: make(chan struct{})}
	f = start(t, m, func(o *Options) { o.LameDuck, o.DrainTimeout = 0, timeout; o.Log = zerolog.New(log) })
	t.Cleanup(open) // before the engine is stopped
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- f.Serve(ctx, l) }()
	resp, err := http.Post("http://"+l.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(chatBody(`,"stream":true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	<-log.ch
	if goOn {
		open()
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("reading the stream: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve() = %v", err)
	}
	return string(all), f
}

func TestADrainingServerFinishesWhatRunsAndTakesNoMore(t *testing.T) {
	stream, f := stopDuringStream(t, time.Minute, true)
	if got := chatChunks(t, []byte(stream), 1, false)[0]; got != "Slowly." {
		t.Errorf("the running stream said %q, want its whole answer", got)
	}
	status, h, answer := f.post("/v1/chat/completions", chatBody(""))
	wantError(t, "while draining", status, answer, http.StatusServiceUnavailable, "unavailable", "")
	if h.Get("Retry-After") == "" {
		t.Error("no Retry-After while draining")
	}
	if status, _, _ := f.do("GET", "/readyz", nil); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz = %d while draining, want 503", status)
	}
	if status, _, _ := f.do("GET", "/healthz", nil); status != http.StatusOK {
		t.Errorf("/healthz = %d while draining, want 200", status)
	}
}

func TestAtTheDrainDeadlineRunningRequestsGetAnError(t *testing.T) {
	stream, _ := stopDuringStream(t, 0, false)
	if !strings.Contains(stream, `"code":"unavailable"`) || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Errorf("the stream said %q, want the error and its end", stream)
	}
}
