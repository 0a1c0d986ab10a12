//go:build !windows

package bench

import (
	"syscall"
	"time"
)

// processorTime returns the time that processors have worked for this program.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
