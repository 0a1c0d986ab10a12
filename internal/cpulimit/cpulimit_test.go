package cpulimit

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
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
		gone, cancel := context.WithCancel(t.Context())
		inside, _, _ := l.Enter(gone)
		time.Sleep(time.Hour)
		cancel()
		if err := Pause(inside); err == nil {
			t.Error("a rest outlasts the client")
		}
		if !l.places.TryAcquire(1) {
			t.Error("the place was not freed")
		}
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
