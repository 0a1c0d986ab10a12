package batcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

func TestGapsAreTheTimesBetweenAStreamsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &toy.Model{Before: func(*models.Batch) error { time.Sleep(20 * time.Millisecond); return nil }}
		e := New(m, m.NewCache(64, 16), DefaultOptions())
		done := make(chan struct{})
		go func() { defer close(done); _ = e.Run(t.Context()) }()
		for _, open := range []func() (*Sequence, error){
			func() (*Sequence, error) { return e.Open(t.Context(), counting(4)) },
			func() (*Sequence, error) { return e.OpenBackground(t.Context(), counting(4)) },
		} {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range s.Generate(t.Context(), sampling.Params{MaxTokens: 6, IgnoreEOS: true}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			s.Close()
		}
		synctest.Wait()
		g, n := e.Stats().Gaps, int64(0)
		for i, c := range g.Counts {
			if n += c; c > 0 && (i == 0 || GapBounds()[i-1] >= 20*time.Millisecond || GapBounds()[i] < 20*time.Millisecond) {
				t.Errorf("%d gaps of at most %v", c, GapBounds()[i])
			}
		}
		if n != 5 || g.Sum != 100*time.Millisecond {
			t.Errorf("%d gaps of %v in all, want 5 of 100ms: the stream's alone", n, g.Sum)
		}
	})
}
