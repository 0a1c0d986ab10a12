//go:build !linux

package pool

// yieldProcessor leaves it to the system to interrupt those who poll.
func yieldProcessor() {}
