package hub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// slow is a network to a hub whose bodies may come slowly.
type slow struct {
	hub *hubtest.Hub
	// pause is the time that each read of a body waits; 0: it does not.
	pause func(r *http.Request) time.Duration
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.hub.RoundTrip(r)
	if d := s.pause(r); err == nil && d > 0 {
		resp.Body = slowBody{r.Context(), resp.Body, d}
	}
	return resp, err
}

// slowBody gives a byte after each pause.
type slowBody struct {
	ctx context.Context
	io.ReadCloser
	pause time.Duration
}

func (b slowBody) Read(p []byte) (int, error) {
	select {
	case <-time.After(b.pause):
		return b.ReadCloser.Read(p[:1])
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
}

const never = 1000 * time.Hour

// slowly calls do with a hub whose network is slow, in a bubble.
func slowly(t *testing.T, pause func(b *bench, r *http.Request) time.Duration, do func(t *testing.T, b *bench)) {
	b := newBench(t)
	synctest.Test(t, func(t *testing.T) {
		b.Hub = b.open(t, Options{Cache: t.TempDir()})
		b.part = 1 << 20 // one part
		b.c.http.Transport = slow{b.server, func(r *http.Request) time.Duration { return pause(b, r) }}
		do(t, b)
	})
}

func isList(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

func TestABodyThatStallsIsAskedForAgain(t *testing.T) {
	for what, is := range map[string]func(b *bench, r *http.Request) bool{
		"the list of files": func(_ *bench, r *http.Request) bool { return isList(r) },
		"the contents":      func(b *bench, r *http.Request) bool { return strings.HasSuffix(b.server.CDN, r.URL.Host) },
	} {
		stalled := false
		slowly(t, func(b *bench, r *http.Request) time.Duration {
			if is(b, r) && !stalled {
				stalled = true
				return never
			}
			return 0
		}, func(t *testing.T, b *bench) {
			var told []error
			b.c.retrying = func(err error, _ time.Duration) { told = append(told, err) }
			b.pulled(t)
			if !slices.Equal(b.waited, []time.Duration{firstRetry}) {
				t.Errorf("%s stalls: it waits %v", what, b.waited)
			}
			if what == "the list of files" && (len(told) != 1 || !strings.Contains(told[0].Error(), "the list of files of acme/Tiny-GGUF: nothing comes for 30s")) {
				t.Errorf("%s stalls: it tells %v", what, told)
			}
		})
	}
}

func TestAListThatNeverComesIsAnError(t *testing.T) {
	slowly(t, func(_ *bench, r *http.Request) time.Duration {
		if isList(r) {
			return never
		}
		return 0
	}, func(t *testing.T, b *bench) {
		start := time.Now()
		_, err := b.Pull(t.Context(), tiny, nil)
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "the list of files of acme/Tiny-GGUF") {
			t.Errorf("Pull = %v", err)
		}
		if took := time.Since(start); took != (maxFailures+1)*stallTimeout {
			t.Errorf("it takes %v", took)
		}
	})
}

func TestAListThatTricklesIsAnError(t *testing.T) {
	slowly(t, func(_ *bench, r *http.Request) time.Duration {
		if isList(r) {
			return stallTimeout / 2
		}
		return 0
	}, func(t *testing.T, b *bench) {
		start := time.Now()
		_, err := b.Pull(t.Context(), tiny, nil)
		if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "takes longer than 5m0s") {
			t.Errorf("Pull = %v", err)
		}
		if took := time.Since(start); took != listTimeout {
			t.Errorf("it takes %v", took)
		}
	})
}

func TestASlowDiskIsNoStall(t *testing.T) {
	slowly(t, func(*bench, *http.Request) time.Duration { return 0 }, func(t *testing.T, b *bench) {
		path, err := b.Pull(t.Context(), tiny, func(int64, int64) { time.Sleep(2 * stallTimeout) })
		if err != nil || len(b.waited) > 0 {
			t.Errorf("Pull = %q, %v, after %v", path, err, b.waited)
		}
	})
}

func TestAStalledListEndsWithItsCommand(t *testing.T) {
	slowly(t, func(_ *bench, r *http.Request) time.Duration {
		if isList(r) {
			return never
		}
		return 0
	}, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Pull(ctx, tiny, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pull = %v", err)
		}
		if len(b.waited) > 0 {
			t.Errorf("it waits %v", b.waited)
		}
	})
}
