package kv

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

func TestCommittingBesideTheOwnerChangesNothing(t *testing.T) {
	for _, kind := range []Type{F16, Int8, F32, Int4} {
		t.Run(kind.String(), func(t *testing.T) {
			h := newHistoryOf(t, wideShape, kind, 7, 0, 0)
			var commits sync.WaitGroup
			commits.Go(func() {
				for range 100 {
					h.c.Commit(0, h.c.Blocks())
				}
			})
			h.open(nil)
			h.open(nil)
			for i := range 40 {
				h.grow(i%2, []int32{int32(i), int32(i + 1)})
			}
			commits.Wait()
			h.verify()
		})
	}
}

func TestCommittingGoesAheadOfTheBlocksHandedOut(t *testing.T) {
	if !cpu.Commit(make([]int8, 1)) {
		t.Skip("this system takes no advice to commit memory")
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := New(tinyShape, Options{BlockLen: 4, Blocks: 24})
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		go func() {
			c.CommitAhead(t.Context(), 40)
			ended = true
		}()
		s := c.Open(nil)
		for _, grow := range []struct {
			more  int
			ended bool
		}{{4, false}, {4 * 12, false}, {4, true}} {
			if err := s.Grow(grow.more); err != nil {
				t.Fatal(err)
			}
			if synctest.Wait(); ended != grow.ended {
				t.Errorf("with %d of 96 tokens handed out and 40 ahead, all being committed is %v", s.Len(), ended)
			}
		}
	})
}

func TestCommittingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(tinyShape, Options{BlockLen: 4, Blocks: 24})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go c.CommitAhead(ctx, 40)
		synctest.Wait()
		cancel() // a goroutine left behind would fail the bubble
	})
}
