//go:build unix

package doctor

import "golang.org/x/sys/unix"

// fileLimit returns how many files this process may open: Go has raised the soft limit to the
// hard one.
func fileLimit() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // signed on some systems
}
