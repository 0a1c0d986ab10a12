//go:build amd64 && !purego

package attention

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// haveTiles reports whether there is assembly for tiles.
func haveTiles() bool { return cpu.UseAVX2() }

// tiledFrom returns the number of queries from which on a tile takes less time, by measurement.
func tiledFrom() int {
	if cpu.Active() == cpu.AVX512 {
		return 12
	}
	return 32
}

// vectorFloats returns the number of floats of a vector.
func vectorFloats() int {
	if cpu.Active() == cpu.AVX512 {
		return 16
	}
	return 8
}

// panel returns the number of columns whose sums fit the registers.
func panel() int {
	if cpu.Active() == cpu.AVX512 {
		return 64
	}
	return 16
}

// fast does as run, and reports whether the assembly takes the product.
func (p *product) fast(dst []float32, ldd int) bool {
	if !cpu.UseAVX2() {
		return false
	}
	to, a, b := &dst[0], &p.a[0], &p.b[0]
	var scale *float32
	if p.scale != nil {
		scale = &p.scale[0]
	}
	if cpu.Active() != cpu.AVX512 {
		if p.columns > 8 {
			productsAVX2x2(to, ldd, a, p.lda, b, p.rows, p.sums, p.add, scale)
		} else {
			productsAVX2x1(to, ldd, a, p.lda, b, p.rows, p.sums, p.add, scale)
		}
		return true
	}
	last := uint32(1)<<((p.columns-1)%16+1) - 1
	switch (p.columns + 15) / 16 {
	case 1:
		productsAVX512x1(to, ldd, a, p.lda, b, p.rows, p.sums, p.add, scale, last)
	case 2:
		productsAVX512x2(to, ldd, a, p.lda, b, p.rows, p.sums, p.add, scale, last)
	case 3:
		productsAVX512x3(to, ldd, a, p.lda, b, p.rows, p.sums, p.add, scale, last)
	case 4:
		productsAVX512x4(to, ldd, a, p.lda, b, p.rows, p.sums, p.add, scale, last)
	}
	return true
}

// weighFast multiplies the weights of whole groups of values by their scales.
func (t *Tile) weighFast(p []float32, ld, g int) bool {
	if !cpu.UseAVX2() || t.rows%KeyGroup != 0 {
		return false
	}
	scaleColumns(&t.weights[0], t.rows, &p[0], ld, &t.scale[0], g, t.rows)
	return true
}

func widenHalvesFast(dst []float32, ldd int, src []uint16, lds, rows, columns int) bool {
	if !cpu.UseAVX2() {
		return false
	}
	widenF16(&dst[0], ldd, (*byte)(unsafe.Pointer(&src[0])), lds, rows, columns)
	return true
}

func widenBytesFast(dst []float32, ldd int, src []int8, lds, rows, columns int) bool {
	if !cpu.UseAVX2() {
		return false
	}
	widenQ8(&dst[0], ldd, (*byte)(unsafe.Pointer(&src[0])), lds, rows, columns)
	return true
}
