package quantize

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Q2_0 and PQ2_0 have the four levels −d, 0, d and 2d of a scale of either sign, for 64 and 128
// weights. ggml rounds to the first three with d the largest magnitude, which leaves ternary
// weights as they are, and of others most at 0.

func encodePairs(t gguf.Type) func(dst []byte, rows, columns []float32) {
	return func(dst []byte, rows, columns []float32) {
		n, size := t.BlockLen(), t.BlockBytes()
		for i := 0; i < len(rows); i, dst = i+n, dst[size:] {
			var weights []float32
			if columns != nil {
				weights = columns[i%len(columns):][:n]
			}
			putPairs(dst[:size], rows[i:i+n], weights)
		}
	}
}

// putPairs writes the block of the least squared error, weighed by weights unless they are nil. It tries scales from a sixth of
// the largest magnitude up to it, each refined once by least squares. The largest magnitude itself comes first, so ternary
// weights keep ggml's bytes.
func putPairs(block []byte, x, weights []float32) {
	const tries = 36
	most := float64(abs(largest(x)))
	best := rounded(most)
	least := squares(x, weights, best)
	try := func(d float64) {
		if d = rounded(d); d == 0 {
			return
		}
		if e := squares(x, weights, d); e < least {
			best, least = d, e
		}
	}
	for i := 1; i <= tries && least > 0; i++ {
		for _, sign := range [2]float64{1, -1} {
			d := sign * most * (1 - 5*float64(i-1)/(6*tries))
			try(d)
			try(refined(x, weights, d))
		}
	}
	putHalf(block, float32(best))
	clear(block[2:])
	for i, v := range x {
		block[2+i/4] |= byte(level(float64(v), best)+1) << (2 * (i % 4))
	}
}

// rounded returns a scale as a block holds it.
func rounded(d float64) float64 { return float64(vector.FromF16(vector.ToF16(float32(d)))) }

// level returns the level of a scale that is nearest to v: -1 to 2.
func level(v, d float64) float64 {
	if d == 0 {
		return 0
	}
	return max(-1, min(2, math.Round(v/d)))
}

// squares returns the error of x with a scale.
func squares(x, weights []float32, d float64) (sum float64) {
	for i, v := range x {
		e := float64(v) - d*level(float64(v), d)
		sum += e * e * weightOf(weights, i)
	}
	return sum
}

// refined returns the best scale for the levels that x has with d, 0 if there is none.
func refined(x, weights []float32, d float64) float64 {
	var lx, ll float64
	for i, v := range x {
		l, w := level(float64(v), d), weightOf(weights, i)
		lx, ll = lx+w*l*float64(v), ll+w*l*l
	}
	if ll == 0 {
		return 0
	}
	return lx / ll
}

func weightOf(weights []float32, i int) float64 {
	if weights == nil {
		return 1
	}
	return float64(weights[i])
}
