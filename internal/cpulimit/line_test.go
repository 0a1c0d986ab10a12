package cpulimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// toil works for so long in a request of its own, in pieces, and returns how long that took.
func toil(ctx context.Context, l *Limiter, work time.Duration) (took time.Duration, err error) {
	began := time.Now()
	inside, leave, err := l.Enter(Request(ctx))
	if err != nil {
		return time.Since(began), err
	}
	defer leave()
	for range work / piece {
		time.Sleep(piece)
		if err := Pause(inside); err != nil {
			return time.Since(began), err
		}
	}
	return time.Since(began), nil
}

const piece = 5 * time.Millisecond

// whole fails if a limiter has not got everything back.
func whole(t *testing.T, l *Limiter, cores int) {
	t.Helper()
	if l.line.free != places(cores) || len(l.line.waiting) > 0 {
		t.Errorf("%d are in line and %d may leave it, want %d", len(l.line.waiting), l.line.free, places(cores))
	}
	if n := int64(places(cores)); !l.places.TryAcquire(n) {
		t.Error("a place is held by nobody")
	}
}

func TestLongWorkIsDoneOneRequestAfterTheOtherAndShortWorkBesideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4).withLine(4)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				took, err := toil(t.Context(), l, time.Second)
				if least, most := time.Duration(i)*time.Second, time.Duration(i+1)*time.Second+time.Second/2; err != nil || took < least || took > most {
					t.Errorf("request %d of four, each a second's work: %v, %v", i, took, err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		if took, err := toil(t.Context(), l, shortWork/2); err != nil || took > 2*shortWork {
			t.Errorf("short work beside it: %v, %v", took, err)
		}
		all.Wait()
		whole(t, l, 4)
	})
}

func TestWhoeverWouldWaitForOthersForTooLongIsToldThatTheyAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cores = 2
		l := New(cores).withLine(cores)
		var mu sync.Mutex
		done, busy := 0, 0
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				took, err := toil(t.Context(), l, 3*time.Second)
				if took > 45*time.Second {
					t.Errorf("a request took %v", took)
				}
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done++
				case errors.Is(err, ErrBusy):
					busy++
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if done < 4 || done+busy != 40 {
			t.Errorf("%d were done and %d refused", done, busy)
		}
		whole(t, l, cores)
	})
}

func TestWorkOfARequestThatHasHadMuchTimeLetsOthersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4).withLine(4)
		var all sync.WaitGroup
		all.Go(func() {
			if took, err := toil(t.Context(), l, 5*muchWork); err != nil || took < 5*muchWork+10*time.Second {
				t.Errorf("much work: %v, %v", took, err)
			}
		})
		time.Sleep(2 * muchWork)
		for range 10 {
			if took, err := toil(t.Context(), l, time.Second); err != nil || took > 1100*time.Millisecond {
				t.Errorf("work that came later: %v, %v", took, err)
			}
		}
		all.Wait()
		whole(t, l, 4)
	})
}

func TestARequestThatHasLivedForLongWaitsForHalfOfItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4).withLine(4)
		var all sync.WaitGroup
		for range 6 { // they come first, and together they take longer than mostWait
			all.Go(func() { _, _ = toil(t.Context(), l, muchWork-time.Second) })
		}
		time.Sleep(time.Second) // until their work is long
		young, old := newRequest(), newRequest()
		old.began = time.Now().Add(-time.Hour)
		for what, c := range map[string]struct {
			of   *request
			want error
		}{"now": {young, ErrBusy}, "an hour ago": {old, nil}} {
			all.Go(func() {
				c.of.work(shortWork)
				_, leave, err := l.Enter(context.WithValue(t.Context(), requestKey{}, c.of))
				defer leave()
				if err != c.want {
					t.Errorf("a request that began %s: %v, want %v", what, err, c.want)
				}
			})
		}
		all.Wait()
		whole(t, l, 4)
	})
}

func TestClientsThatLeaveAtAnyMomentLeaveNothingInLine(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			cores := 1 << r.IntN(5)
			l := New(cores).withLine(cores)
			left := errors.New("left")
			var all sync.WaitGroup
			for range 50 {
				stays, work := time.Duration(r.IntN(4000))*time.Millisecond, time.Duration(r.IntN(1000))*time.Millisecond
				all.Go(func() {
					ctx, cancel := context.WithTimeoutCause(t.Context(), stays, left)
					defer cancel()
					if _, err := toil(ctx, l, work); err != nil && err != left {
						t.Error(err)
					}
				})
			}
			all.Wait()
			whole(t, l, cores)
		})
	}
}
