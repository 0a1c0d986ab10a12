package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// maskWait waits for what constraints find out, for as long as its budget in all.
type maskWait struct {
	budget time.Duration
	timer  *time.Timer // nil: it has not waited yet
	over   bool
}

// waitFor waits for c and reports whether it is closed.
func (w *maskWait) waitFor(c <-chan struct{}) bool {
	if w.over || sampling.Ready(c) {
		return sampling.Ready(c)
	}
	if w.timer == nil {
		w.timer = time.NewTimer(w.budget)
	}
	select {
	case <-c:
		return true
	case <-w.timer.C:
		w.over = true
		return false
	}
}

func (w *maskWait) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// How long a step waits for constraints. A mask takes tens of microseconds, seldom a
// millisecond, and most are known from other sequences and earlier texts.
const (
	forcedBudget = 100 * time.Microsecond // for whether tokens are forced
	leastBudget  = 300 * time.Microsecond // for what may come next, alongside other sequences
	aloneBudget  = 2 * time.Millisecond   // likewise if nobody else waits
	budgetShare  = 8                      // this part of the model's time, 1/8, if that is longer
)
