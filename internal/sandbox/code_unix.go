//go:build unix

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapsCode tells whether the system lets a program make code while it runs. systemd's
// MemoryDenyWriteExecute does not.
func mapsCode() bool {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Munmap(page) }()
	return unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC) == nil
}
