package matrix

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls do for all i in [0, n), on all cores: packing a large model is
// part of its start-up time.
func Parallel(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// Check reports whether a source of n bytes can hold rows × cols weights of
// blockBytes for each block of blockCols columns.
func Check(format string, rows, cols, blockCols, blockBytes, n int) error {
	const limit = 1 << 40
	if rows < 0 || cols < 1 || rows > limit/max(cols, 1) || cols%blockCols != 0 {
		return fmt.Errorf("%w: %s matrix of %d rows by %d columns", ErrShape, format, rows, cols)
	}
	if want := rows * (cols / blockCols) * blockBytes; n != want {
		return fmt.Errorf("%w: %s matrix of %dx%d takes %d bytes, not %d", ErrShape, format, rows, cols, want, n)
	}
	return nil
}
