//go:build arm64 && !purego

package vector

import "github.com/lutra-lm/lutra/kernels/cpu"

// The Fast functions do what they can of a slice with NEON and return how much
// that was; the portable loops do the rest.

// fullVectors returns how many of n elements fill vectors of size, 0 without NEON.
func fullVectors(n, size int) int {
	if cpu.Active() != cpu.NEON {
		return 0
	}
	return n - n%size
}

func f32ToF16Fast(dst []uint16, src []float32) int {
	n := fullVectors(len(src), 8)
	if n > 0 {
		f32ToF16NEON(&dst[0], &src[0], n)
	}
	return n
}

func addFast(dst, a, b []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		addNEON(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func scaleFast(dst, x []float32, s float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		scaleNEON(&dst[0], &x[0], s, n)
	}
	return n
}

func axpyFast(dst []float32, s float32, x []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		axpyNEON(&dst[0], &x[0], s, n)
	}
	return n
}

func scaleMulFast(dst, x, w []float32, s float32) int {
	n := fullVectors(len(x), 8)
	if n > 0 {
		scaleMulNEON(&dst[0], &x[0], &w[0], s, n)
	}
	return n
}

func relu2Fast(dst, gate, up []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		relu2NEON(&dst[0], &gate[0], &up[0], n)
	}
	return n
}

func dotFast(a, b []float32) (int, float32) {
	n := fullVectors(len(a), 32)
	if n == 0 {
		return 0, 0
	}
	return n, dotNEON(&a[0], &b[0], n)
}

func sumSquaresFast(x []float32) (int, float64) {
	n := fullVectors(len(x), 16)
	if n == 0 {
		return 0, 0
	}
	return n, sumSquaresNEON(&x[0], n)
}

func maxFast(x []float32) (int, float32) {
	n := fullVectors(len(x), 8)
	if n == 0 {
		return 0, negInf
	}
	return n, maxNEON(&x[0], n)
}

func absMaxFast(x []float32) (int, float32) {
	n := fullVectors(len(x), 8)
	if n == 0 {
		return 0, 0
	}
	return n, absMaxNEON(&x[0], n)
}

func sumWithinFast(part *[16]float32, x []float32, lo, hi float32) (done, n int) {
	done = fullVectors(len(x), 16)
	if done > 0 {
		n = sumWithinNEON(part, &x[0], lo, hi, done)
	}
	return done, n
}

// expSumFast hands the last, partial vector over in a buffer filled with -Inf,
// whose exponentials are 0: an element has the same bits wherever it stands.
func expSumFast(dst, x []float32, shift float32) (float32, bool) {
	if cpu.Active() != cpu.NEON {
		return 0, false
	}
	var sums [8]float32
	n := fullVectors(len(dst), len(sums))
	if n > 0 {
		expSumNEON(&sums, &dst[0], &x[0], shift, n)
	}
	if n < len(dst) {
		var rest [8]float32
		for i := copy(rest[:], x[n:]); i < len(rest); i++ {
			rest[i] = negInf
		}
		expSumNEON(&sums, &rest[0], &rest[0], shift, len(rest))
		copy(dst[n:], rest[:])
	}
	return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7])), true
}

func swigluFast(dst, gate, up []float32) bool {
	if cpu.Active() != cpu.NEON {
		return false
	}
	n := fullVectors(len(dst), 4)
	if n > 0 {
		swigluNEON(&dst[0], &gate[0], &up[0], n)
	}
	if n < len(dst) {
		var g, u [4]float32
		copy(g[:], gate[n:])
		copy(u[:], up[n:])
		swigluNEON(&g[0], &g[0], &u[0], len(g))
		copy(dst[n:], g[:])
	}
	return true
}

func gegluFast(_, _, _ []float32) bool { return false }

func clampedGLUFast(_, _, _ []float32) bool { return false }

func ropePairsFast(head, cos, sin []float32) int {
	n := fullVectors(len(cos), 4)
	if n > 0 {
		ropePairsNEON(&head[0], &cos[0], &sin[0], n)
	}
	return n
}

func ropeHalvesFast(lo, hi, cos, sin []float32) int {
	n := fullVectors(len(cos), 8)
	if n > 0 {
		ropeHalvesNEON(&lo[0], &hi[0], &cos[0], &sin[0], n)
	}
	return n
}

func mulFast(dst, a, b []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		mulNEON(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func mulAddFast(dst, a, b []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		mulAddNEON(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func butterflyFast(lo, hi []float32) int {
	n := fullVectors(len(lo), 8)
	if n > 0 {
		butterflyNEON(&lo[0], &hi[0], n)
	}
	return n
}

// hadamardFast has none of the first levels of a block, and returns the step of the next.
func hadamardFast([]float32) int { return 1 }

func gluFast(_, _, _ []float32) bool { return false }
