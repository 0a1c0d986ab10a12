package device

import (
	"fmt"
	"unsafe"
)

// View returns n numbers of the memory at offset. Numbers are little-endian, as they are
// on every machine that this runs on. It panics if they lie outside.
func View[T uint16 | int16 | uint32 | int32 | float32](memory []byte, offset uint32, n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	if offset%uint32(size) != 0 {
		panic(fmt.Sprintf("hexagon: offset %d is not aligned to %d", offset, size))
	}
	if n == 0 {
		return nil
	}
	b := memory[offset:][:n*size]
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}
