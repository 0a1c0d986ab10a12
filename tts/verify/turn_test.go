package verify

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"
)

// held is a check that waits to be released, and counts those that do.
type held struct {
	release     chan struct{}
	under, most int
	mu          sync.Mutex
}

// Check implements Check.
func (h *held) Check(context.Context, string) (Verdict, error) {
	h.mu.Lock()
	h.under++
	h.most = max(h.most, h.under)
	h.mu.Unlock()
	<-h.release
	h.mu.Lock()
	h.under--
	h.mu.Unlock()
	return Verdict{}, nil
}

func TestOneAnswerOfARequestIsCheckedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &held{release: make(chan struct{})}
		c := &inTurn{h, func(context.Context) error { return nil }, semaphore.NewWeighted(1)}
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, err := c.Check(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		left := errors.New("left")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(left)
		if _, err := c.Check(gone, ""); err != left {
			t.Errorf("Check = %v, want the context's end", err)
		}
		close(h.release)
		all.Wait()
		if h.most != 1 {
			t.Errorf("%d answers of a request were checked at once", h.most)
		}
	})
}
