package cpulimit

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

func TestNoMoreThanItsPlacesWorkAtOnceAndPausesAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4)
		ctx, leave, err := l.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var order []string // guarded by the one place
		for _, name := range []string{"first", "second"} {
			go func() {
				_, leave, err := l.Enter(t.Context())
				if err != nil {
					t.Error(err)
				}
				defer leave()
				order = append(order, name)
			}()
			synctest.Wait() // it waits
		}
		if len(order) != 0 {
			t.Fatalf("%v worked beside the holder of the only place", order)
		}
		if err := Pause(ctx); err != nil {
			t.Fatal(err)
		}
		order = append(order, "holder")
		leave()
		synctest.Wait()
		if want := []string{"first", "second", "holder"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v: who waits goes before who pauses", order, want)
		}
	})
}

func TestWorkWithinAPlaceNeedsNoSecondOne(t *testing.T) {
	l := New(4)
	ctx, leave, _ := l.Enter(t.Context())
	_, again, err := l.Enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if l.places.TryAcquire(1) {
		t.Error("leaving the inner place has freed the outer one")
	}
	leave()
	leave() // harmless
	if !l.places.TryAcquire(1) {
		t.Error("the place was not freed")
	}
}

func TestWhoeverLeavesWaitsNoLongerAndHoldsNothing(t *testing.T) {
	l := New(4)
	gone, cancel := context.WithCancelCause(t.Context())
	inside, leave, _ := l.Enter(gone)
	left := errors.New("left")
	cancel(left)
	if err := Pause(inside); err != left {
		t.Errorf("Pause() = %v after the end, want the cause", err)
	}
	leave()
	if _, _, err := l.Enter(gone); err != left {
		t.Errorf("Enter() = %v after the end, want the cause", err)
	}
	if !l.places.TryAcquire(1) {
		t.Error("a place is held by nobody")
	}
	if err := Pause(t.Context()); err != nil {
		t.Errorf("Pause() = %v without a place, want nothing to happen", err)
	}
}

func TestOnFewCoresTheOnlyPlaceRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(2)
		ctx, leave, err := l.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 3 {
			time.Sleep(20 * time.Millisecond) // works
			if err := Pause(ctx); err != nil {
				t.Fatal(err)
			}
		}
		leave()
		if took := time.Since(began); took != 120*time.Millisecond {
			t.Errorf("60ms of work took %v of the only place, want as much rest: a quarter of two cores", took)
		}
	})
}

// waited returns how long it takes to get a place.
func waited(t *testing.T, l *Limiter) time.Duration {
	t.Helper()
	began := time.Now()
	_, leave, err := l.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	return time.Since(began)
}

func TestARestIsBoundedAndPassesWithoutAnybodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(2)
		work := func() {
			_, leave, err := l.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // works, or the process is stopped
			leave()
		}
		work()
		if took := waited(t, l); took != longestPiece {
			t.Errorf("after an hour of work the place rests for %v, want %v", took, longestPiece)
		}
		work()
		time.Sleep(longestPiece)
		if took := waited(t, l); took != 0 {
			t.Errorf("a place that nobody wanted for %v rests for another %v", longestPiece, took)
		}
		work()
		for range 9 { // clients that give up
			gone, cancel := context.WithTimeout(t.Context(), longestPiece/10)
			if _, _, err := l.Enter(gone); err == nil {
				t.Error("a place is given before it has rested")
			}
			cancel()
		}
		if took := waited(t, l); took != longestPiece/10 {
			t.Errorf("others have waited for nine tenths of a rest, and the next waits for %v, want %v", took, longestPiece/10)
		}
	})
}

func TestAnEndedPlaceIsNotTakenAgain(t *testing.T) {
	l := New(4)
	inside, leave, _ := l.Enter(t.Context())
	leave()
	if err := Pause(inside); err != nil || !l.places.TryAcquire(1) {
		t.Errorf("a pause after the end of work: %v, or it holds a place that nobody gives back", err)
	}
	l.places.Release(1)
	_, again, err := l.Enter(inside)
	if err != nil || l.places.TryAcquire(1) {
		t.Errorf("more work after the end (%v) takes no place", err)
	}
	again()
}

func TestWhoeverWaitsWithinAPlaceIsFound(t *testing.T) {
	defer func(was func()) { OnWait = was }(OnWait)
	found := 0
	OnWait = func() { found++ }
	l := New(4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	inside, leave, err := l.Enter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	type name struct{}
	named := context.WithValue(inside, name{}, "work")
	if err := Pause(named); err != nil || found != 0 {
		t.Fatalf("work that pauses (%v) is taken for one that waits", err)
	}
	locked := semaphore.NewWeighted(1)
	for what, wait := range map[string]func(){
		"a lock that is free": func() { _ = locked.Acquire(named, 1) },
		"a channel": func() {
			select {
			case <-closed():
			case <-named.Done():
			}
		},
		"a further context": func() { _, done := context.WithTimeout(named, time.Hour); done() },
	} {
		found = 0
		wait()
		if found == 0 {
			t.Errorf("nobody notices that %s is waited for within a place", what)
		}
	}
	leave()
	found = 0
	cancel()
	_ = locked.Acquire(named, 1)
	if found != 0 {
		t.Error("waiting after the end of work is taken for waiting within a place")
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestPlacesThatNobodyGivesBackAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4)
		_, leave, _ := l.Enter(t.Context())
		giveUp := func(after time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			if _, _, err := l.Enter(ctx); err == nil {
				t.Fatal("the only place was given twice")
			}
		}
		giveUp(time.Second)
		time.Sleep(time.Hour)
		giveUp(time.Second)
		if l.queue.stuck() {
			t.Error("work that nobody waits for is stuck")
		}
		for range stuckAfter / time.Second {
			giveUp(time.Second)
		}
		if !l.queue.stuck() {
			t.Errorf("clients that each gave up after a second have waited for %v, and nothing is stuck", stuckAfter)
		}
		leave()
		if l.queue.stuck() {
			t.Error("the place was given back, and is stuck")
		}
	})
}

func TestALongQueueThatMovesIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4)
		for range 100 {
			go func() {
				_, leave, err := l.Enter(t.Context())
				if err != nil {
					t.Error(err)
				}
				defer leave()
				time.Sleep(stuckAfter - time.Second)
			}()
		}
		for range 100 {
			time.Sleep(stuckAfter - time.Second)
			if l.queue.stuck() {
				t.Fatal("a queue in which everybody has a turn is stuck")
			}
		}
	})
}

func TestAProcessThatWasStoppedIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(4)
		_, leave, _ := l.Enter(t.Context())
		go func() { waited(t, l) }()
		synctest.Wait()
		time.Sleep(time.Hour) // nothing runs
		if l.queue.stuck() {
			t.Error("a process that was stopped for an hour is stuck")
		}
		for range stuckAfter/mostBetween - 1 { // probes
			time.Sleep(mostBetween)
			l.queue.stuck()
		}
		if !l.queue.stuck() {
			t.Errorf("a place that is held for %v longer is not stuck", stuckAfter)
		}
		leave()
		synctest.Wait()
	})
}

func TestTheShareOfTheCoresIsAQuarter(t *testing.T) {
	for cores, want := range map[int]struct {
		places int64
		rest   float64
	}{1: {1, 3}, 2: {1, 1}, 4: {1, 0}, 8: {2, 0}, 64: {16, 0}} {
		l := New(cores)
		if l.rest != want.rest || !l.places.TryAcquire(want.places) || l.places.TryAcquire(1) {
			t.Errorf("%d cores: rest %v, want %+v", cores, l.rest, want)
		}
	}
}
