package vector

import "fmt"

// RopePairs rotates adjacent pairs (Su et al., "RoFormer", §3.4.2; GGUF's NORM
// order). In each head of x[heads][headDim] the pair (2i, 2i+1) turns by the
// angle whose cosine and sine are cos[i] and sin[i]. Elements from 2·len(cos)
// on stay as they are.
func RopePairs(x []float32, headDim int, cos, sin []float32) {
	checkRope(x, headDim, cos, sin)
	half := len(cos)
	for h := 0; h < len(x); h += headDim {
		head := x[h : h+2*half]
		for i := ropePairsFast(head, cos, sin); i < half; i++ {
			a, b := head[2*i], head[2*i+1]
			head[2*i] = a*cos[i] - b*sin[i]
			head[2*i+1] = a*sin[i] + b*cos[i]
		}
	}
}

// RopeHalves rotates the pairs (i, i+len(cos)) of each head of
// x[heads][headDim] (GGUF's NEOX order). Elements from 2·len(cos) on stay as
// they are.
func RopeHalves(x []float32, headDim int, cos, sin []float32) {
	checkRope(x, headDim, cos, sin)
	half := len(cos)
	for h := 0; h < len(x); h += headDim {
		lo, hi := x[h:h+half], x[h+half:h+2*half]
		for i := ropeHalvesFast(lo, hi, cos, sin); i < half; i++ {
			a, b := lo[i], hi[i]
			lo[i] = a*cos[i] - b*sin[i]
			hi[i] = a*sin[i] + b*cos[i]
		}
	}
}

func checkRope(x []float32, headDim int, cos, sin []float32) {
	if headDim < 1 || len(x)%headDim != 0 || 2*len(cos) > headDim || len(sin) < len(cos) {
		panic(fmt.Sprintf("kernels: rope over %d values in heads of %d with %d cosines, %d sines", len(x), headDim, len(cos), len(sin)))
	}
}
