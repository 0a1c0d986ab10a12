package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/adversary"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/server/api"
)

// nowhere takes an answer and keeps nothing of it.
type nowhere struct {
	header http.Header
	status int
}

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(status int)      { n.status = status }

// fill repeats unit between head and tail up to so many bytes.
func fill(size int, head, unit, tail string) string {
	n := (size - len(head) - len(tail)) / len(unit)
	return head + strings.Repeat(unit, n) + tail
}

func TestNoRequestMakesMoreOfItsBodyThanTheServerCounts(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates, too")
	}
	size := sweep.Of(t, 1<<18, 2<<20)
	f := real(t, nil)
	factors := map[string]int64{"/v1/chat/completions": api.ChatFactor, "/v1/completions": api.CompletionFactor, "/v1/rewards": api.RewardFactor,
		"/tokenize": api.TokenizeFactor, "/detokenize": api.DetokenizeFactor, "/apply-template": api.TemplateFactor}
	for _, b := range adversary.Bodies(size) {
		body := string(must(io.ReadAll(b.Reader())))
		r := httptest.NewRequest("POST", "http://localhost"+b.Path, strings.NewReader(body))
		w := &nowhere{header: http.Header{}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.Handler().ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if w.status == 500 || len(body) != b.Size {
			t.Errorf("%s, %s: status %d for %d bytes, want %d bytes and no internal error", b.Path, b.Name, w.status, len(body), b.Size)
		}
		// All that was allocated, garbage included, is more than was held at a
		// time. Merging one long word takes memory that is not the request's: no
		// more are merged at once than have places to work.
		const merging = 20 << 20
		made, counted := int64(after.TotalAlloc-before.TotalAlloc), factors[b.Path]*int64(len(body))
		if made > counted+merging {
			t.Errorf("%s, %s: %d bytes were made of %d, and %d counted", b.Path, b.Name, made, len(body), counted)
		}
		t.Logf("%s, %s: status %d, factor %.1f", b.Path, b.Name, w.status, float64(made)/float64(len(body)))
	}
	if n := f.admitter.memory.Bytes(); n != 0 {
		t.Errorf("%d bytes are held after the last request", n)
	}
}
