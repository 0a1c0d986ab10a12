package structure

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// slow is a tokenizer that lets others take the lock of a grammar while it writes.
type slow struct{ Tokens }

func (s slow) Encode(dst []int32, text string, o tokenizer.Options) []int32 {
	for range 1000 {
		runtime.Gosched()
	}
	return s.Tokens.Encode(dst, text, o)
}

// Searches of one format take turns at its grammar and at a place among all searches:
// whoever waits for the one must not have the other.
func TestSearchesThatRestDoNotWaitForEachOther(t *testing.T) {
	defer func(d time.Duration) { restAfter = d }(restAfter)
	restAfter = 0
	place := make(chan struct{}, 1)
	var rested atomic.Int64
	rests := func(work func(rest func())) {
		taken := false
		leave := func() {
			if taken {
				<-place
			}
		}
		defer func() { leave() }()
		work(func() {
			rested.Add(1)
			leave()
			place <- struct{}{}
			taken = true
		})
	}
	letters := "abcdefghijklmnopqrstuvwxyz0123456789"
	var texts []string // of different beginnings: each has its own work
	for i := range 8 {
		texts = append(texts, strings.Repeat(letters[i:]+letters[:i], 6))
	}
	schema := `{"enum": ["` + strings.Join(texts, `", "`) + `"]}`
	for range sweep.Of(t, 10, 50) {
		f := newFormat(t, schema)
		f.tokens = slow{f.tokens}
		var wg sync.WaitGroup
		for _, text := range texts {
			p := f.walk(t, `"`+text[:1])
			wg.Go(func() {
				if _, ok := p.Forced(rests); !ok {
					t.Errorf("nothing is forced behind %q", text[:1])
				}
			})
		}
		wg.Wait()
	}
	if rested.Load() == 0 {
		t.Error("nothing took so long that it rested: the test shows nothing")
	}
}
