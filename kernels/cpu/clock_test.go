package cpu

import (
	"testing"
	"time"
)

func TestTheClockOfAThreadAdvancesWhileItComputes(t *testing.T) {
	OnThread(func(clock func() time.Duration) {
		start, work := clock(), 0
		for clock() == start { // ends: each look is work
			work++
		}
		if took := clock() - start; took < 0 {
			t.Errorf("after %d looks the clock had gone back by %v", work, -took)
		}
	})
}
