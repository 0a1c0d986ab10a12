package matrix

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// spare holds the memories of matrices that were given back, by the logarithm of their size. Fresh memory
// is cleared twice, by the system and by Go, which takes longer than packing.
var spare [64]sync.Pool

// Data returns n bytes on a cache line for a matrix that is packed. They may hold anything.
func Data(n int) []byte {
	class := bits.Len(uint(max(n, cpu.CacheLine) - 1))
	if b, _ := spare[class].Get().(*[]byte); b != nil {
		return (*b)[:n]
	}
	return cpu.Aligned[byte](1 << class)[:n]
}

// Recycle gives back the memory of matrices that packers made and nothing reads any more; some
// may be nil.
func Recycle(ms ...*Matrix) {
	for _, m := range ms {
		if m == nil {
			continue
		}
		if size := cap(m.Data); size >= cpu.CacheLine && size&(size-1) == 0 {
			b := m.Data[:size]
			spare[bits.Len(uint(size-1))].Put(&b)
		}
		m.Data = nil
		Recycle(m.Offsets)
	}
}

// Parallel calls do for all i in [0, n), on all cores: packing a large model is
// part of its start-up time. It panics as they do.
func Parallel(n int, do func(i int)) {
	var next atomic.Int64
	var wg parallel.Group
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
