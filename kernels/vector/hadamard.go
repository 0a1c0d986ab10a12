package vector

import (
	"fmt"
	"math"
)

// Hadamard replaces each block of x by its normalised Walsh-Hadamard transform, in
// natural (Sylvester's) order. Element i becomes Σ ±x[j]/√block, with a minus where
// i and j have an odd number of bits in common. It is its own inverse. block is a
// power of two that divides len(x).
func Hadamard(x []float32, block int) {
	if block < 1 || block&(block-1) != 0 || len(x)%block != 0 {
		panic(fmt.Sprintf("kernels: Hadamard transform of %d elements in blocks of %d", len(x), block))
	}
	scale := float32(1 / math.Sqrt(float64(block)))
	for at := 0; at < len(x); at += block {
		b := x[at : at+block]
		for step := hadamardFast(b); step < block; step *= 2 {
			for i := 0; i < block; i += 2 * step {
				butterfly(b[i:i+step], b[i+step:i+2*step])
			}
		}
		ScaleInto(b, scale)
	}
}

// butterfly sets lo, hi to their sum and difference.
func butterfly(lo, hi []float32) {
	hi = hi[:len(lo)]
	for i := butterflyFast(lo, hi); i < len(lo); i++ {
		lo[i], hi[i] = lo[i]+hi[i], lo[i]-hi[i]
	}
}
