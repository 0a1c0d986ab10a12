package vector

import "math"

// The vector primitives take the destination first, and it may be the same
// slice as an input. dst gives the length (or x where there is no dst);
// the others must be at least as long. None allocates.

// Add sets dst[i] = a[i] + b[i].
func Add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := addFast(dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] + b[i]
	}
}

// AddInto sets dst[i] += x[i].
func AddInto(dst, x []float32) { Add(dst, dst, x[:len(dst)]) }

// Mul sets dst[i] = a[i] · b[i].
func Mul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := mulFast(dst, a, b); i < len(dst); i++ {
		dst[i] = a[i] * b[i]
	}
}

// Scale sets dst[i] = x[i] · s.
func Scale(dst, x []float32, s float32) {
	x = x[:len(dst)]
	for i := scaleFast(dst, x, s); i < len(dst); i++ {
		dst[i] = x[i] * s
	}
}

// ScaleInto sets dst[i] *= s.
func ScaleInto(dst []float32, s float32) { Scale(dst, dst, s) }

// Axpy sets dst[i] += s · x[i].
func Axpy(dst []float32, s float32, x []float32) {
	x = x[:len(dst)]
	for i := axpyFast(dst, s, x); i < len(dst); i++ {
		dst[i] += s * x[i]
	}
}

// MulAdd sets dst[i] += a[i] · b[i].
func MulAdd(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := mulAddFast(dst, a, b); i < len(dst); i++ {
		dst[i] += a[i] * b[i]
	}
}

// Dot returns Σ a[i]·b[i], in float32 over 4 to 32 interleaved partial sums.
func Dot(a, b []float32) float32 {
	b = b[:len(a)]
	i, sum := dotFast(a, b)
	var part [4]float32
	for ; i+4 <= len(a); i += 4 {
		part[0] += a[i] * b[i]
		part[1] += a[i+1] * b[i+1]
		part[2] += a[i+2] * b[i+2]
		part[3] += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		part[0] += a[i] * b[i]
	}
	return sum + ((part[0] + part[1]) + (part[2] + part[3]))
}

// negInf starts every search for a maximum.
var negInf = float32(math.Inf(-1))

// Max returns the largest element of x, -Inf when x is empty. NaNs are passed over.
func Max(x []float32) float32 {
	i, m := maxFast(x)
	for ; i < len(x); i++ {
		if x[i] > m {
			m = x[i]
		}
	}
	return m
}

// AbsMax returns the largest |x[i]|, 0 when x is empty. NaNs are passed over.
func AbsMax(x []float32) float32 {
	i, m := absMaxFast(x)
	for ; i < len(x); i++ {
		if v := x[i]; v > m {
			m = v
		} else if -v > m {
			m = -v
		}
	}
	return m
}

// Argmax returns the index of the largest element of x, the lowest one on ties, and
// -1 when x holds nothing but NaNs. It goes by blocks, so that the search for
// the place of the maximum is over a short one.
func Argmax(x []float32) int {
	const block = 1024
	top, at := negInf, 0
	for lo := 0; lo < len(x); lo += block {
		if m := Max(x[lo:min(lo+block, len(x))]); m > top {
			top, at = m, lo
		}
	}
	for i, v := range x[at:] {
		if v == top {
			return at + i
		}
	}
	return -1
}

// RMSNorm sets dst[i] = x[i] · weight[i] / sqrt(mean(x²) + eps), the mean taken
// in float64 (Zhang and Sennrich, "Root Mean Square Layer Normalization", §3).
func RMSNorm(dst, x, weight []float32, eps float32) {
	if len(x) == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(sumSquares(x)/float64(len(x))+float64(eps)))
	dst, weight = dst[:len(x)], weight[:len(x)]
	for i := scaleMulFast(dst, x, weight, scale); i < len(x); i++ {
		dst[i] = x[i] * scale * weight[i]
	}
}

// L2Norm makes x as long as scale: x[i] *= scale / max(‖x‖, eps), the norm taken
// in float64.
func L2Norm(x []float32, scale, eps float32) {
	ScaleInto(x, float32(float64(scale)/max(math.Sqrt(sumSquares(x)), float64(eps))))
}

// sumSquares returns Σ x² in float64.
func sumSquares(x []float32) float64 {
	i, sum := sumSquaresFast(x)
	var a, b float64
	for ; i+2 <= len(x); i += 2 {
		a += float64(x[i]) * float64(x[i])
		b += float64(x[i+1]) * float64(x[i+1])
	}
	if i < len(x) {
		a += float64(x[i]) * float64(x[i])
	}
	return sum + (a + b)
}
