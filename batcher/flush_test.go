package batcher

import (
	"testing"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// arrivals are when the tokens of a stream reached its reader, counted from
// the moment it asked. Every step takes a millisecond, and one that is more
// than a tile takes fifty.
func arrivals(t *testing.T, opt Options, n int, meanwhile func(r rig)) (at []time.Duration) {
	m := &toy.Model{Before: func(b *models.Batch) error {
		took := time.Millisecond
		if len(b.Tokens) > Tile {
			took *= 50
		}
		time.Sleep(took)
		return nil
	}}
	start(t, m, 64, 16, opt, func(t *testing.T, r rig) {
		s := r.open(1, 2, 3)
		defer s.Close()
		begun := time.Now()
		for _, err := range s.Generate(t.Context(), sampling.Params{MaxTokens: n}) {
			if err != nil {
				t.Fatal(err)
			}
			if at = append(at, time.Since(begun)); len(at) == 20 && meanwhile != nil {
				go meanwhile(r)
			}
		}
	})
	return at
}

// wakes is the number of different times.
func wakes(at []time.Duration) (n int) {
	for i := range at {
		if i == 0 || at[i] != at[i-1] {
			n++
		}
	}
	return n
}

func TestTokensGatherButForTheFirstAndTheLast(t *testing.T) {
	const n = 100
	opt := DefaultOptions()
	opt.FlushInterval = 4 * time.Millisecond
	at := arrivals(t, opt, n, nil)
	if len(at) != n || at[0] != time.Millisecond || at[n-1] != n*time.Millisecond {
		t.Errorf("%d tokens came, the first after %v and the last after %v, want %d after 1ms and %dms", len(at), at[0], at[n-1], n, n)
	}
	for i, d := range at {
		if late := d - time.Duration(i+1)*time.Millisecond; late > opt.FlushInterval {
			t.Errorf("token %d came %v after it was sampled, want at most %v", i, late, opt.FlushInterval)
		}
	}
	if got := wakes(at); got > n/3+1 {
		t.Errorf("the reader was woken %d times for %d tokens, want every fourth or third", got, n)
	}
	opt.FlushInterval = 0
	if got := wakes(arrivals(t, opt, n, nil)); got != n {
		t.Errorf("handing over at once, the reader was woken %d times for %d tokens", got, n)
	}
}

func TestNothingIsHeldBackOverALongStep(t *testing.T) {
	opt := DefaultOptions()
	opt.FlushInterval, opt.PrefillSlowdown = 10*time.Millisecond, 0
	at := arrivals(t, opt, 200, func(r rig) {
		for i := range 4 {
			s := r.open(counting(100 + i)[i:]...)
			if _, err := s.Logits(r.t.Context()); err != nil {
				r.t.Error(err)
			}
			s.Close()
			time.Sleep(22 * time.Millisecond)
		}
	})
	long, late := 0, 0
	for i := 1; i < len(at); i++ {
		if gap := at[i] - at[i-1]; gap >= 50*time.Millisecond {
			long++
			if gap > 50*time.Millisecond {
				late++
			}
		}
	}
	// The first long step teaches the engine how long one takes.
	if long != 4 || late > 1 {
		t.Errorf("before %d of %d long steps tokens were held back, want at most the first of 4: %v", late, long, at)
	}
}
