package cpu

import (
	"runtime"
	"time"
)

// epoch is where wall clocks of this process start.
var epoch = time.Now()

// OnThread runs f on one thread of the system, which no other goroutine uses meanwhile.
// f's clock is the time that this thread has computed: what else the machine does is left
// out, but for caches and units that it shares. Where the system has no such clock of use
// (any but Linux), it is the time that has passed.
func OnThread(f func(clock func() time.Duration)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f(threadTime)
}
