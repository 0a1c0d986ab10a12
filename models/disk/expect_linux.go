package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// expect has the system read n bytes of a file ahead. It is advice, so that whether it
// is taken shows in time alone.
func expect(file *os.File, offset, n int64) {
	_ = unix.Fadvise(int(file.Fd()), offset, n, unix.FADV_WILLNEED)
}
