package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a transport: what servers answer to a request.
type answers func(r *http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// hangs never answers.
func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// piece is what a body has after a while.
type piece struct {
	after time.Duration
	text  string
}

// slowBody is the body of an answer to r, which is silent behind its last piece.
type slowBody struct {
	r      *http.Request
	pieces []piece
}

func (b *slowBody) Read(p []byte) (int, error) {
	next := piece{after: 24 * time.Hour}
	if len(b.pieces) > 0 {
		next, b.pieces = b.pieces[0], b.pieces[1:]
	}
	select {
	case <-time.After(next.after):
		return copy(p, next.text), nil
	case <-b.r.Context().Done():
		return 0, b.r.Context().Err()
	}
}

func (b *slowBody) Close() error { return nil }

// relay is one to servers of these names, all of which answer alike.
func relay(f answers, most int64, names ...string) *Relay {
	servers := map[string]Options{}
	for _, name := range names {
		servers[name] = Options{URL: "http://tools.test/"}
	}
	r := New(servers, most)
	r.client.Transport = f
	return r
}

// pass passes a message of a key, and says what became of it.
func (r *Relay) pass(ctx context.Context, name, key string, bytes int64, w http.ResponseWriter) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = what.(error)
		}
	}()
	m := &Message{Request: httptest.NewRequest("POST", "/mcp/"+name, nil).WithContext(ctx), Body: []byte("{}"), Key: key, Bytes: bytes}
	return r.Pass(name, m, w, time.Second)
}

func TestAServerThatHangsKeepsItsOwnClientsWaitingAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := relay(hangs, 1<<20, "hanging", "other")
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 2*mostMessages)
		send := func(ctx context.Context, name, key string, bytes int64) {
			go func() { ended <- r.pass(ctx, name, key, bytes, httptest.NewRecorder()) }()
			synctest.Wait()
		}
		refused := func(name, key string, bytes int64) bool {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			send(ctx, name, key, bytes)
			select {
			case err := <-ended:
				return errors.Is(err, ErrBusy)
			default: // it waits
				cancel()
				<-ended
				return false
			}
		}
		for range mostMessages/2 - 1 {
			send(t.Context(), "hanging", "one", 1)
		}
		send(ctx, "hanging", "one", 1)
		if !refused("hanging", "one", 1) {
			t.Error("a key has more than half of a server's places")
		}
		if refused("other", "one", 1) || refused("hanging", "two", 1) {
			t.Error("a key is kept from another server, or another key from this one")
		}
		leave() // one client of those that wait
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a client that leaves ends with %v", err)
		}
		if refused("hanging", "one", 1) {
			t.Error("the place of a client that has left is not free")
		}
		for range mostMessages / 2 {
			send(t.Context(), "hanging", "two", 1)
		}
		send(t.Context(), "hanging", "three", 1)
		if !refused("hanging", "four", 1) {
			t.Errorf("a server has more than %d messages", mostMessages)
		}
		time.Sleep(standardTimeout) // of the fake clock
		for range mostMessages {
			if fault := (*Error)(nil); !errors.As(<-ended, &fault) || fault.Status != http.StatusGatewayTimeout {
				t.Fatalf("a server that hangs ends with %v", fault)
			}
		}
		if r.servers["hanging"].places.taken != (load{}) || len(r.servers["hanging"].places.byKey) > 0 {
			t.Errorf("places are left: %+v", &r.servers["hanging"].places)
		}

		const share = 1 << 19 // bytes of each of two servers
		if refused("other", "one", 4*share) {
			t.Error("a large message is refused where there is no other")
		}
		send(t.Context(), "other", "one", share/2)
		if !refused("other", "one", 1) || refused("other", "two", share/2) || !refused("other", "two", share/2+1) {
			t.Error("messages hold more bytes than a server's part, or a key's half of it, or not as many")
		}
		time.Sleep(standardTimeout)
		<-ended
	})
}

func TestAnAnswerThatFallsSilentEndsAtItsTimeout(t *testing.T) {
	const within = standardTimeout - time.Second
	for _, c := range []struct {
		pieces []piece
		text   string
		took   time.Duration
	}{
		{nil, "", standardTimeout},
		{[]piece{{within, "data: a\n\n"}, {within, "data: b\n\n"}}, "data: a\n\ndata: b\n\n", 2*within + standardTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := relay(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &slowBody{r, c.pieces}, Request: r}, nil
			}, 1<<20, "slow")
			start := time.Now()
			w := httptest.NewRecorder()
			err := r.pass(t.Context(), "slow", "one", 1, w)
			if took := time.Since(start); !errors.Is(err, http.ErrAbortHandler) || took != c.took || w.Body.String() != c.text {
				t.Errorf("%d pieces: %v behind %q after %v, want %v", len(c.pieces), err, w.Body, took, c.took)
			}
		})
	}
}

// slowWriter is a client that takes its time for each piece.
type slowWriter struct{ http.ResponseWriter }

func (w slowWriter) Write(p []byte) (int, error) {
	time.Sleep(2 * standardTimeout) // of the fake clock
	return w.ResponseWriter.Write(p)
}

func TestAClientsSlownessIsNotTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := relay(func(r *http.Request) (*http.Response, error) {
			body := &slowBody{r, []piece{{0, "{"}, {0, "}"}}}
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
		}, 1<<20, "quick")
		w := httptest.NewRecorder()
		if err := r.pass(t.Context(), "quick", "one", 1, slowWriter{w}); w.Body.String() != "{}" {
			t.Errorf("%q, %v", w.Body, err)
		}
	})
}
