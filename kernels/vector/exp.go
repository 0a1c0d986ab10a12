package vector

import "math"

// Exponentials are accurate to about 1e-7 relative, and an element has the same
// bits wherever it stands in a slice. The portable versions go
// through float64; the assembly ones use exp(x) = 2ⁿ·p(r), x = n·ln2 + r.

// ExpSum sets dst[i] = exp(x[i] - shift) and returns their sum; Scale(dst, dst, 1/sum)
// then makes a softmax of dst. Terms below the smallest normal float32 become 0. The
// sum runs in eight interleaved partial sums, so terms of zero at the end do not change
// it.
func ExpSum(dst, x []float32, shift float32) float32 {
	x = x[:len(dst)]
	if sum, ok := expSumFast(dst, x, shift); ok {
		return sum
	}
	var part [8]float32
	for i, v := range x {
		e := Exp(v - shift)
		dst[i] = e
		part[i&7] += e
	}
	return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]))
}

// SwiGLU sets dst[i] = silu(gate[i]) · up[i], where silu(g) = g / (1 + exp(-g))
// (Shazeer, "GLU Variants Improve Transformer", §2).
func SwiGLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	if swigluFast(dst, gate, up) {
		return
	}
	for i, g := range gate {
		dst[i] = silu(g, g) * up[i]
	}
}

// GLU sets dst[i] = sigmoid(gate[i]) · up[i] (Dauphin et al. 2017, "Language
// Modeling with Gated Convolutional Networks", §2).
func GLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	if gluFast(dst, gate, up) {
		return
	}
	for i, g := range gate {
		dst[i] = silu(up[i], g)
	}
}

// GeGLU sets dst[i] = gelu(gate[i]) · up[i] with the tanh form of GELU
// (Hendrycks and Gimpel, "Gaussian Error Linear Units", §2), written as
// g / (1 + exp(-2u)), u = √(2/π)·(g + 0.044715·g³).
func GeGLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	if gegluFast(dst, gate, up) {
		return
	}
	for i, g := range gate {
		dst[i] = silu(g, geluArg*(g+geluCube*g*g*g)) * up[i]
	}
}

const (
	geluArg  = 1.5957691216057308 // 2·√(2/π)
	geluCube = 0.044715
)

// MostOnes bounds Ones.
const MostOnes = 256

// Ones returns n ones, not to be changed: what functions of gates and ups take where there are no ups.
func Ones(n int) []float32 { return ones[:n] }

var ones = func() (x [MostOnes]float32) {
	for i := range x {
		x[i] = 1
	}
	return x
}()

// ReLU2GLU sets dst[i] = max(gate[i], 0)² · up[i] (BitNet b1.58 2B4T, §2).
func ReLU2GLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i := relu2Fast(dst, gate, up); i < len(dst); i++ {
		g := max(gate[i], 0)
		dst[i] = g * g * up[i]
	}
}

// SoftCap draws x into (-limit, limit): x[i] = limit · tanh(x[i]/limit) (Gemma
// Team 2024, "Gemma 2", §2), within 1e-6 · limit. tanh(y) is 1 - 2/(exp(2y)+1).
func SoftCap(x []float32, limit float32) {
	const enough = 40 // where the exponential is finite and tanh is 1
	for i, v := range x {
		x[i] = min(v*(2/limit), enough)
	}
	ExpSum(x, x, 0)
	for i, e := range x {
		x[i] = limit - 2*limit/(e+1)
	}
}

// minExp is the smallest argument whose exponential is a normal float32.
const minExp = -87.33654

// Exp returns exp(x), 0 where that is below the smallest normal float32.
func Exp(x float32) float32 {
	if x < minExp {
		return 0
	}
	return float32(math.Exp(float64(x)))
}

// silu returns g · sigmoid(x).
func silu(g, x float32) float32 { return float32(float64(g) / (1 + math.Exp(-float64(x)))) }
