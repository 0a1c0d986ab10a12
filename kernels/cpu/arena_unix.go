//go:build unix

package cpu

import "golang.org/x/sys/unix"

// mapRegion returns fresh memory of the system, zeroed when it is first touched.
func mapRegion(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapRegion(region []byte) error { return unix.Munmap(region) }
