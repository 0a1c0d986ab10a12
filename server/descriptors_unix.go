//go:build unix

package server

import "syscall"

// fileLimit returns how many files the process may have open; 0: no limit is known. Go has
// raised the soft limit to the hard one by then.
func fileLimit() uint64 {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return uint64(r.Cur)
}
