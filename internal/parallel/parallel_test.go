package parallel

import (
	"errors"
	"strings"
	"testing"
)

func TestTheErrorIsThatOfTheFirstItemWhenAllHaveReturned(t *testing.T) {
	failed := []error{nil, errors.New("second"), errors.New("third")}
	started := make(chan struct{})
	calls := make([]bool, len(failed))
	err := Each(failed, func(i int, err error) error {
		if i == 0 {
			close(started)
		} else {
			<-started // all run at once
		}
		calls[i] = true
		return err
	})
	if err != failed[1] || !calls[0] || !calls[1] || !calls[2] {
		t.Errorf("Each() = %v with the calls %v, want %v", err, calls, failed[1])
	}
}

func TestAPanicComesOutOfEveryWait(t *testing.T) {
	wait := Start([]string{"one", "two"}, func(i int, item string) error {
		if i == 1 {
			panic(item)
		}
		return nil
	})
	for range 2 {
		func() {
			defer func() {
				if p := Caught(recover()); p == nil || p.Value != "two" {
					t.Errorf("wait panics with %v, want two", p)
				}
			}()
			_ = wait()
		}()
	}
}

func TestRangesCoverEachItemOnce(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 1000} {
		calls := make([]int, n)
		Ranges(n, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				calls[i]++
			}
		})
		for i, c := range calls {
			if c != 1 {
				t.Fatalf("of %d items item %d is called %d times", n, i, c)
			}
		}
	}
}

func TestAPanicOfAGoroutineIsThatOfWhoeverWaits(t *testing.T) {
	for name, do := range map[string]func(){
		"Ranges": func() { Ranges(1000, func(lo, _ int) { fail(lo == 0) }) },
		"Each":   func() { _ = Each([]int{0, 1}, func(i, _ int) error { fail(i == 1); return nil }) },
		"Group": func() {
			var g Group
			g.Go(func() {
				var inner Group
				inner.Go(func() { fail(true) })
				inner.Wait()
			})
			g.Wait()
		},
	} {
		err := Try(func() error { do(); return nil })
		var p *Panic
		if !errors.As(err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "parallel.fail") {
			t.Errorf("%s: %v, want the panic with the stack of where it was", name, err)
		}
	}
	broken := errors.New("broken")
	if err := Try(func() error { return broken }); err != broken {
		t.Errorf("Try = %v, want the error of what it calls", err)
	}
}

func fail(yes bool) {
	if yes {
		panic("boom")
	}
}
