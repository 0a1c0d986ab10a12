//go:build !linux

package kernels

// yieldProcessor leaves it to the system to interrupt those who poll.
func yieldProcessor() {}
