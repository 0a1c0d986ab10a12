package cpu

import "unsafe"

// CacheLine is the alignment of packed weights and scratch: no vector load of
// a whole register then crosses a line.
const CacheLine = 64

// hugePage is the size of the pages asked for beneath large arrays, hugeFrom
// the size from which an array is large.
const (
	hugePage = 2 << 20
	hugeFrom = 1 << 20
)

// Aligned makes n zeroed elements that start on a cache line.
func Aligned[T int8 | uint8 | int16 | uint16 | int32 | float32](n int) []T {
	if n == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(*new(T)))
	raw := make([]T, n+CacheLine/size)
	skip := 0
	if r := int(uintptr(unsafe.Pointer(&raw[0])) % CacheLine); r != 0 {
		skip = (CacheLine - r) / size
	}
	if bytes := n * size; bytes >= hugeFrom {
		spread(unsafe.Pointer(&raw[skip]), bytes)
		preferHugePages(unsafe.Pointer(&raw[skip]), bytes)
	}
	return raw[skip : skip+n : skip+n]
}

// Commit has the system back s with memory now rather than when it is first
// written. The contents stay as they are, even if others write them meanwhile. It
// reports whether the system did so; where it does not
// (Linux before 5.14, other systems) nothing is lost but the time.
func Commit[T int8 | uint8 | uint16 | float32](s []T) bool {
	return len(s) == 0 || commit(unsafe.Pointer(&s[0]), len(s)*int(unsafe.Sizeof(s[0])))
}

// Grow returns s with n elements, keeping its memory when that suffices. The
// contents are not kept.
func Grow[T int8 | uint8 | int16 | int32 | float32](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return Aligned[T](n)
}

// RoundUp returns the least multiple of m that is not below x.
func RoundUp(x, m int) int { return (x + m - 1) / m * m }

// TileWidth returns the next tile of the n tokens left: as few tiles as the widest
// allows, of nearly equal width.
func TileWidth(n, widest int) int {
	tiles := (n + widest - 1) / widest
	return (n + tiles - 1) / tiles
}
