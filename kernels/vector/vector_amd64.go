//go:build amd64 && !purego

package vector

import "github.com/lutra-lm/lutra/kernels/cpu"

// The Fast functions do what they can of a slice with AVX2 and return how much
// that was; the portable loops do the rest. AVX-512 would gain nothing: these
// run at the speed of the caches.

// fullVectors returns how many of n elements fill vectors of size, 0 without AVX2.
func fullVectors(n, size int) int {
	if !cpu.UseAVX2() {
		return 0
	}
	return n - n%size
}

func f32ToF16Fast(dst []uint16, src []float32) int {
	n := fullVectors(len(src), 8)
	if n > 0 {
		vecF32ToF16(&dst[0], &src[0], n)
	}
	return n
}

func addFast(dst, a, b []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		vecAdd(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func mulFast(dst, a, b []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		vecMul(&dst[0], &a[0], &b[0], n)
	}
	return n
}

func scaleFast(dst, x []float32, s float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		vecScale(&dst[0], &x[0], s, n)
	}
	return n
}

func axpyFast(dst []float32, s float32, x []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		vecAxpy(&dst[0], &dst[0], &x[0], s, n)
	}
	return n
}

func mulAddFast(dst, a, b []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		vecMulAdd(&dst[0], &dst[0], &a[0], &b[0], n)
	}
	return n
}

func scaleMulFast(dst, x, w []float32, s float32) int {
	n := fullVectors(len(x), 8)
	if n > 0 {
		vecScaleMul(&dst[0], &x[0], &w[0], s, n)
	}
	return n
}

func relu2Fast(dst, gate, up []float32) int {
	n := fullVectors(len(dst), 8)
	if n > 0 {
		vecReLU2(&dst[0], &gate[0], &up[0], n)
	}
	return n
}

func dotFast(a, b []float32) (int, float32) {
	n := fullVectors(len(a), 32)
	if n == 0 {
		return 0, 0
	}
	return n, vecDot(&a[0], &b[0], n)
}

func sumSquaresFast(x []float32) (int, float64) {
	n := fullVectors(len(x), 16)
	if n == 0 {
		return 0, 0
	}
	return n, vecSumSquares(&x[0], n)
}

func maxFast(x []float32) (int, float32) {
	n := fullVectors(len(x), 8)
	if n == 0 {
		return 0, negInf
	}
	return n, vecMax(&x[0], n)
}

func absMaxFast(x []float32) (int, float32) {
	n := fullVectors(len(x), 8)
	if n == 0 {
		return 0, 0
	}
	return n, vecAbsMax(&x[0], n)
}

func sumWithinFast(part *[16]float32, x []float32, lo, hi float32) (done, n int) {
	done = fullVectors(len(x), 16)
	if done > 0 {
		n = vecSumWithin(part, &x[0], lo, hi, done)
	}
	return done, n
}

func expSumFast(dst, x []float32, shift float32) (float32, bool) {
	if !cpu.UseAVX2() || len(dst) == 0 {
		return 0, false
	}
	return vecExpSum(&dst[0], &x[0], shift, len(dst)), true
}

func swigluFast(dst, gate, up []float32) bool {
	if !cpu.UseAVX2() || len(dst) == 0 {
		return false
	}
	vecSwiGLU(&dst[0], &gate[0], &up[0], len(dst))
	return true
}

func gluFast(dst, gate, up []float32) bool {
	if !cpu.UseAVX2() || len(dst) == 0 {
		return false
	}
	vecGLU(&dst[0], &gate[0], &up[0], len(dst))
	return true
}

func gegluFast(dst, gate, up []float32) bool {
	if !cpu.UseAVX2() || len(dst) == 0 {
		return false
	}
	vecGeGLU(&dst[0], &gate[0], &up[0], len(dst))
	return true
}

func clampedGLUFast(dst, gate, up []float32) bool {
	if !cpu.UseAVX2() || len(dst) == 0 {
		return false
	}
	vecClampedGLU(&dst[0], &gate[0], &up[0], len(dst))
	return true
}

func ropePairsFast(head, cos, sin []float32) int {
	n := fullVectors(len(cos), 4)
	if n > 0 {
		vecRopePairs(&head[0], &cos[0], &sin[0], n)
	}
	return n
}

func ropeHalvesFast(lo, hi, cos, sin []float32) int {
	n := fullVectors(len(cos), 8)
	if n > 0 {
		vecRopeHalves(&lo[0], &hi[0], &cos[0], &sin[0], n)
	}
	return n
}

func butterflyFast(lo, hi []float32) int {
	n := fullVectors(len(lo), 8)
	if n > 0 {
		vecButterfly(&lo[0], &hi[0], n)
	}
	return n
}

// hadamardFast does the first levels of a block, and returns the step of the next.
func hadamardFast(b []float32) int {
	if len(b) < 8 || !cpu.UseAVX2() {
		return 1
	}
	vecHadamard8(&b[0], len(b))
	return 8
}
