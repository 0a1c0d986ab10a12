package cpu

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Arena is memory outside the garbage-collected heap, for what is large and
// lives long: weights, and cached keys and values. The collector starts when the
// heap has doubled, so in the heap they would allow as much garbage as they are
// large. Arrays follow one another on huge pages, spread over the memory nodes. The
// zero Arena is empty and ready; it is for one goroutine.
type Arena struct {
	regions [][]byte // as the system gave them
	free    []byte   // the end of the last one
	total   int      // bytes of all arrays
	within  bool     // free is all there is
}

// Within makes an arena of b, which begins on a cache line and stays its owner's:
// beyond it there is no memory, and Free gives none back.
func Within(b []byte) *Arena { return &Arena{free: b, within: true} }

// mostRegion is the size up to which regions grow as the arena does. Memory
// that nobody writes to costs nothing but addresses.
const mostRegion = 64 << 20

// ErrMemory says that the system gives no more memory.
var ErrMemory = errors.New("kernels: out of memory")

// Array makes n zeroed elements in a, which lie on a cache line. A nil arena
// means the heap. It reports ErrMemory.
func Array[T int8 | uint8 | uint16 | int32 | float32](a *Arena, n int) ([]T, error) {
	size := int(unsafe.Sizeof(*new(T)))
	if n == 0 {
		return nil, nil
	}
	if n > (math.MaxInt-2*hugePage)/size {
		return nil, fmt.Errorf("%w: %d elements of %d bytes", ErrMemory, n, size)
	}
	b, err := a.Bytes(n * size)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}

// Bytes makes n zeroed bytes on a cache line, in the heap where a is nil.
func (a *Arena) Bytes(n int) ([]byte, error) {
	if a == nil {
		return Aligned[byte](n), nil
	}
	whole := RoundUp(n, CacheLine)
	if a.within {
		if len(a.free) < whole {
			return nil, fmt.Errorf("%w: %d bytes where %d are left", ErrMemory, n, len(a.free))
		}
		clear(a.free[:whole])
	}
	if len(a.free) < whole {
		if err := a.Reserve(max(whole, min(a.total, mostRegion))); err != nil {
			return nil, err
		}
	}
	b := a.free[:n:n]
	a.free = a.free[whole:]
	a.total += whole
	return b, nil
}

// Mark records the free memory of an arena.
type Mark struct {
	free           []byte
	regions, total int
}

// Mark returns what a has free now, for Reset; a may be nil.
func (a *Arena) Mark() Mark {
	if a == nil {
		return Mark{}
	}
	return Mark{a.free, len(a.regions), a.total}
}

// Reset takes the arrays since m back, which nothing may use any more. Arrays of regions that came since m
// stay.
func (a *Arena) Reset(m Mark) {
	if a == nil || len(a.regions) != m.regions {
		return
	}
	clear(m.free[:len(m.free)-len(a.free)])
	a.free, a.total = m.free, m.total
}

// Reserve has the next arrays, of bytes in all, lie together. It reports ErrMemory.
func (a *Arena) Reserve(bytes int) error {
	bytes = RoundUp(max(bytes, 1), hugePage)
	region, err := mapRegion(bytes + hugePage)
	if err != nil {
		return fmt.Errorf("%w: %d bytes: %w", ErrMemory, bytes, err)
	}
	a.regions = append(a.regions, region)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(region)))) & (hugePage - 1)
	a.free = region[skip : skip+bytes]
	p := unsafe.Pointer(unsafe.SliceData(a.free))
	spread(p, bytes)
	preferHugePages(p, bytes)
	return nil
}

// Free gives the memory back to the system; nothing may use the arrays any more.
// The arena is empty afterwards.
func (a *Arena) Free() error {
	var errs []error
	for _, r := range a.regions {
		errs = append(errs, unmapRegion(r))
	}
	*a = Arena{}
	return errors.Join(errs...)
}
