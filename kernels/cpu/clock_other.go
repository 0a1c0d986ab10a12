//go:build !linux

package cpu

import "time"

// threadTime returns the time that has passed: what other systems count of a thread is too coarse.
func threadTime() time.Duration { return time.Since(epoch) }
