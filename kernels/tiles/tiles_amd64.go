//go:build amd64 && !purego

package tiles

import "github.com/lutra-lm/lutra/kernels/cpu"

// Rows of a tile that one call of a routine multiplies.
const (
	rowsAVX2   = 2
	rowsAVX512 = 8
)

func (s *Sums) multiplyFast(act, wgt []float32) bool {
	if !cpu.UseAVX2() {
		return false
	}
	if cpu.Active() == cpu.AVX512 {
		for y := 0; y < Side; y += rowsAVX512 {
			multiplyAVX512(&s[y*Side], &act[y*Side], &wgt[0], len(wgt)/Size)
		}
		return true
	}
	for y := 0; y < Side; y += rowsAVX2 {
		multiplyAVX2(&s[y*Side], &act[y*Side], &wgt[0], len(wgt)/Size)
	}
	return true
}

func widenFast(dst []float32, src []uint16) bool {
	if !cpu.UseAVX2() {
		return false
	}
	widenAVX2(&dst[0], &src[0], len(dst))
	return true
}

func widenRowsFast(dst []float32, src []uint16) bool {
	if !cpu.UseAVX2() {
		return false
	}
	widenPairsAVX2(&dst[0], &src[0], len(dst)/(2*Side))
	return true
}
