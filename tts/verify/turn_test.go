package verify

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// passes is a check that every answer passes.
type passes struct{}

// Check implements Check.
func (passes) Check(context.Context, string) (Verdict, error) { return Verdict{}, nil }

func TestOneAnswerOfARequestIsCheckedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var begun atomic.Int64 // of those that are about to wait for a place
		c := inOrder(passes{}, func(context.Context) error {
			begun.Add(1)
			<-release
			return nil
		})
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if _, err := c.Check(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := begun.Load(); n != 1 {
			t.Errorf("%d answers of a request are checked at once", n)
		}
		left := errors.New("left")
		gone, cancel := context.WithCancelCause(t.Context())
		cancel(left)
		if _, err := c.Check(gone, ""); err != left {
			t.Errorf("Check = %v, want the context's end", err)
		}
		close(release)
		all.Wait()
		if n := begun.Load(); n != 16 {
			t.Errorf("%d of 16 answers were checked", n)
		}
	})
}
