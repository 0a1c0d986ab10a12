//go:build linux || darwin

package hub

import (
	"os"

	"golang.org/x/sys/unix"
)

func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// allocated returns the bytes of the disk that f takes, fewer than its length if it has
// holes. 0: unknown.
func allocated(f *os.File) int64 {
	const sector = 512 // of st_blocks, whatever the file system's blocks
	var s unix.Stat_t
	if unix.Fstat(int(f.Fd()), &s) != nil {
		return 0
	}
	return s.Blocks * sector
}
