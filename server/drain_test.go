package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/lutra-lm/lutra/models/toy"
	"github.com/lutra-lm/lutra/server/registry"
)

// pipes is a listener whose connections are pipes, for tests with a fake clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial connects, unless the listener is closed.
func (p *pipes) dial() (net.Conn, bool) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, true
	case <-p.closed:
		return nil, false
	}
}

// ask sends a request without a body over a connection of its own.
func (p *pipes) ask(t *testing.T, request string) *http.Response {
	t.Helper()
	conn, ok := p.dial()
	if !ok {
		t.Fatalf("%s: the port is closed", request)
	}
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	conn.Close()
	return resp
}

// withFakeClock serves a toy model over pipes.
func withFakeClock(t *testing.T, tune func(*Options)) (l *pipes, stop func(cause error), served <-chan error, log *logged) {
	t.Helper()
	log = &logged{}
	opt := DefaultOptions()
	opt.Log = zerolog.New(log)
	if tune != nil {
		tune(&opt)
	}
	if err := opt.Validate(); err != nil {
		t.Fatal(err)
	}
	s := New(opt)
	if err := s.Publish(registry.Served{Model: toyModel(t, &toy.Model{}, "toy", nil)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	l = newPipes()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	return l, cancel, done, log
}

func TestALameDuckRefusesRequestsAndThenClosesThePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop, served, log := withFakeClock(t, func(o *Options) { o.LameDuck = 5 * time.Second })
		if resp := l.ask(t, "GET /readyz"); resp.StatusCode != 200 {
			t.Fatalf("/readyz = %d before the end", resp.StatusCode)
		}
		began := time.Now()
		stop(nil)
		synctest.Wait()
		for request, want := range map[string]int{"GET /readyz": 503, "GET /health": 503, "GET /healthz": 200, "POST /v1/completions": 503, "GET /metrics": 200} {
			resp := l.ask(t, request)
			if resp.StatusCode != want || want == 503 && resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s = %d with Retry-After %q, want %d", request, resp.StatusCode, resp.Header.Get("Retry-After"), want)
			}
			if !resp.Close {
				t.Errorf("%s leaves the connection open: its client would not look for another server", request)
			}
		}
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("an idle server stopped after %v, want the lame-duck time", took)
		}
		if _, ok := l.dial(); ok {
			t.Error("the port is still open")
		}
		for _, want := range []string{"stopping: new requests are refused", `"lame_duck_ms":5000`, `"message":"stopped"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("log %s has no %s", log, want)
			}
		}
	})
}

func TestWhoeverStopsAnIdleServerByHandDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop, served, _ := withFakeClock(t, nil)
		silent, _ := l.dial() // as browsers open them in advance
		defer silent.Close()
		l.ask(t, "GET /readyz")
		synctest.Wait() // the connection is idle
		began := time.Now()
		stop(fmt.Errorf("interrupt: %w", ErrAtOnce))
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v", err)
		}
		if took := time.Since(began); took > 10*time.Millisecond { // net/http may look twice, 1 ms apart
			t.Errorf("the server stopped after %v, want at once", took)
		}
	})
}

func TestStoppingTakesNoLongerThanTheDrainTimeout(t *testing.T) {
	for _, lame := range []time.Duration{0, 6 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			l, stop, served, log := withFakeClock(t, func(o *Options) { o.LameDuck, o.DrainTimeout, o.KeepAlive = lame, 6*time.Second, time.Minute })
			conn, ok := l.dial() // of a client that takes nothing of its answer
			if !ok {
				t.Fatal("the port is closed")
			}
			defer conn.Close()
			body := `{"model":"toy","prompt":"Hi","max_tokens":400,"ignore_eos":true,"stream":true}`
			fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			synctest.Wait()
			began := time.Now()
			stop(nil)
			if err := <-served; err != nil {
				t.Errorf("Serve() = %v", err)
			}
			if took := time.Since(began); took != 6*time.Second || !strings.Contains(log.String(), "connections were cut") {
				t.Errorf("with a lame-duck time of %v, a server stopped after %v, want its drain timeout, 6s; log %s", lame, took, log)
			}
		})
	}
}

func TestTheLameDuckTimeIsPartOfTheDrainTimeout(t *testing.T) {
	o := DefaultOptions()
	o.LameDuck, o.DrainTimeout = 2*time.Second, time.Second
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "server.lame_duck") {
		t.Errorf("Validate() = %v, want a fault of server.lame_duck", err)
	}
}

func TestMoreConnectionsThanAreAllowedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, stop, served, _ := withFakeClock(t, func(o *Options) { o.MaxConnections = 1 })
		first, _ := l.dial()
		connected := make(chan net.Conn, 1)
		go func() {
			second, _ := l.dial()
			connected <- second
		}()
		synctest.Wait()
		select {
		case <-connected:
			t.Error("a second connection was accepted beside the only one that is allowed")
		default:
		}
		first.Close()
		second := <-connected
		second.Close()
		stop(ErrAtOnce)
		<-served
	})
}
