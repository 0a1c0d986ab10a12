package budget

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// account counts what is drawn from it, up to most.
type account struct{ drawn, most int64 }

var errFull = errors.New("full")

func (a *account) Take(n int64) error {
	a.drawn += n
	if n > 0 && a.drawn > a.most {
		return errFull
	}
	return nil
}

func TestATaskEndsAtItsBoundOfSteps(t *testing.T) {
	b := New(context.Background(), 10000, 1<<20, nil)
	for range 10 {
		if err := b.Work(1000); err != nil {
			t.Fatalf("after %d steps: %v", b.Spent(), err)
		}
	}
	var e *Error
	if err := b.Work(1); !errors.As(err, &e) || e.Limit != 10000 || !strings.Contains(err.Error(), "to compile it takes more than 10000 steps") {
		t.Errorf("one step more: %v", err)
	}
	if err := b.Work(0); !errors.As(err, &e) || b.Err() != err {
		t.Errorf("the error does not last: %v, %v", err, b.Err())
	}
	b.Begin(t.Context(), "find it", 5, nil)
	if err := b.Work(5); err != nil || b.Spent() != 5 {
		t.Errorf("another task: %v after %d steps", err, b.Spent())
	}
	if err := b.Work(1); !errors.As(err, &e) || !strings.Contains(err.Error(), "to find it takes") {
		t.Errorf("its end: %v", err)
	}
}

func TestATaskEndsWithItsContextAndRestsNowAndThen(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := New(ctx, 1<<30, 1<<20, nil)
	rests := 0
	b.OnRest(func() {
		if rests++; rests == 3 {
			cancel()
		}
	})
	for b.Work(1) == nil {
		if b.Spent() > 100*lookAfter {
			t.Fatal("it goes on after its context has ended")
		}
	}
	if !errors.Is(b.Err(), context.Canceled) || rests != 3 || b.Spent() > 4*lookAfter {
		t.Errorf("%v after %d steps and %d rests", b.Err(), b.Spent(), rests)
	}
}

func TestATaskThatItsRestFailsEndsWithThatError(t *testing.T) {
	b := New(t.Context(), 1<<30, 1<<20, nil)
	busy := errors.New("busy")
	b.OnRest(func() { b.Fail(busy) })
	for b.Work(1) == nil {
		if b.Spent() > 2*lookAfter {
			t.Fatal("it goes on")
		}
	}
	if b.Err() != busy {
		t.Errorf("it ends with %v", b.Err())
	}
}

func TestBytesAreBoundedAndDrawnInPortions(t *testing.T) {
	a := &account{most: 1 << 20}
	b := New(context.Background(), Steps, 3*portion, a)
	if err := b.Hold(1); err != nil || a.drawn != portion {
		t.Errorf("one byte: %v, %d drawn", err, a.drawn)
	}
	if err := b.Hold(3*portion - 1); err != nil || a.drawn != 3*portion || b.Held() != 3*portion {
		t.Errorf("up to the bound: %v, %d drawn", err, a.drawn)
	}
	var e *Error
	if err := b.Hold(1); !errors.As(err, &e) || err.Error() != "it is too large: it needs more than 192 KiB of memory" {
		t.Errorf("one byte more: %v", err)
	}
	b.Release(3*portion + 1)
	if a.drawn != 0 || b.Held() != 0 {
		t.Errorf("%d drawn and %d held after all has been given back", a.drawn, b.Held())
	}
	a.most = portion
	if err := b.Hold(portion + 1); !errors.Is(err, errFull) {
		t.Errorf("more than the account has: %v", err)
	}
}

func TestAPartMayFailAlone(t *testing.T) {
	a := &account{most: 1 << 20}
	b := New(context.Background(), 10000, 1<<20, a)
	_ = b.Work(1000)
	part, end := b.Apart()
	_ = part.Hold(5 * portion)
	_ = part.Work(2000)
	end()
	if b.Spent() != 3000 || a.drawn != 0 || b.Err() != nil {
		t.Errorf("%d steps, %d bytes, %v", b.Spent(), a.drawn, b.Err())
	}
	part, end = b.Apart()
	var e *Error
	if err := part.Work(7001); !errors.As(err, &e) || e.Limit != 10000 {
		t.Errorf("more than is left: %v", err)
	}
	end()
	if err := b.Work(1); !errors.As(err, &e) {
		t.Errorf("a part has no steps of its own: %v", err)
	}
}
