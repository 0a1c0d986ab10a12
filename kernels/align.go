package kernels

import "unsafe"

// cacheLine is the alignment of packed weights and scratch: no vector load of
// a whole register then crosses a line.
const cacheLine = 64

// hugePage is the size of the pages asked for beneath large arrays, hugeFrom
// the size from which an array is large.
const (
	hugePage = 2 << 20
	hugeFrom = 1 << 20
)

// aligned makes n zeroed elements that start on a cache line.
func aligned[T int8 | uint8 | int16 | uint16 | int32 | float32](n int) []T {
	if n == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(*new(T)))
	raw := make([]T, n+cacheLine/size)
	skip := 0
	if r := int(uintptr(unsafe.Pointer(&raw[0])) % cacheLine); r != 0 {
		skip = (cacheLine - r) / size
	}
	if bytes := n * size; bytes >= hugeFrom {
		spread(unsafe.Pointer(&raw[skip]), bytes)
		preferHugePages(unsafe.Pointer(&raw[skip]), bytes)
	}
	return raw[skip : skip+n : skip+n]
}

// Commit has the system find the memory that s lies on now rather than when it
// is first written. The contents stay as they are, even where others write
// them meanwhile. It reports whether the system did so; where it does not
// (Linux before 5.14, other systems) nothing is lost but the time.
func Commit[T int8 | uint16 | float32](s []T) bool {
	return len(s) == 0 || commit(unsafe.Pointer(&s[0]), len(s)*int(unsafe.Sizeof(s[0])))
}

// grow returns s with n elements, keeping its memory when that suffices. The
// contents are not kept.
func grow[T int8 | uint8 | int16 | int32 | float32](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return aligned[T](n)
}

// roundUp is the least multiple of m that is not below x.
func roundUp(x, m int) int { return (x + m - 1) / m * m }
