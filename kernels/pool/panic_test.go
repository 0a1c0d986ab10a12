package pool

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// failTask panics in one part.
type failTask struct {
	at   int
	done atomic.Int64
}

func (f *failTask) Do(_, i int) {
	if i == f.at {
		panic("boom")
	}
	f.done.Add(1)
}

func TestAPanicOfAPartIsThatOfRunAndThePoolGoesOn(t *testing.T) {
	for _, threads := range []int{1, 2, 4} {
		p := New(threads)
		for range 50 {
			for _, at := range []int{0, 7, 63, -1} {
				task := &failTask{at: at}
				err := parallel.Try(func() error { p.Run(task, 64); return nil })
				var panicked *parallel.Panic
				if errors.As(err, &panicked) != (at >= 0) || at >= 0 && panicked.Value != "boom" {
					t.Fatalf("%d threads: Run with a panic of part %d gives %v", threads, at, err)
				}
				if n := task.done.Load(); at < 0 && n != 64 || threads > 1 && at >= 0 && n != 63 {
					t.Fatalf("%d threads: %d parts were done beside part %d", threads, n, at)
				}
			}
		}
		p.Close()
	}
}
