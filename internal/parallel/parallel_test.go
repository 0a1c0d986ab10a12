package parallel

import (
	"errors"
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
				if p := recover(); p != "two" {
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
