package delta

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Channels is the most channels that Conv takes.
const Channels = vector.MostOnes

// MostTaps bounds the taps of a convolution.
const MostTaps = 8

// Conv replaces x, [n] rows of channels that are stride elements apart, by their causal convolution with w, or with
// silu by its SiLU. w has [taps] rows of ld, of which the last belongs to a row itself. A bias of channels, if not
// nil, is added to the convolution. tail has the taps-1 rows of ld before x, and gets the last taps-1 rows for the
// rows that follow x.
func Conv(x []float32, n, stride, channels int, w, bias, tail []float32, ld, taps int, silu bool) {
	if n < 1 || channels < 1 || channels > Channels || taps < 2 || taps > MostTaps || len(x) < (n-1)*stride+channels {
		panic(fmt.Sprintf("kernels: convolution of %d rows of %d channels with %d taps", n, channels, taps))
	}
	// row is a row of the input, from the tail on.
	row := func(t int) []float32 {
		if t < 0 {
			return tail[(taps-1+t)*ld:][:channels]
		}
		return x[t*stride:][:channels]
	}
	var next [MostTaps - 1][Channels]float32 // the rows are overwritten below
	for i := range taps - 1 {
		copy(next[i][:], row(n-taps+1+i))
	}
	var buf [Channels]float32
	sum := buf[:channels]
	for t := n - 1; t >= 0; t-- { // the rows before t are still input
		vector.Mul(sum, w[:channels], row(t-taps+1))
		for i := 1; i < taps; i++ {
			vector.MulAdd(sum, w[i*ld:][:channels], row(t-taps+1+i))
		}
		if bias != nil {
			vector.AddInto(sum, bias)
		}
		if silu {
			vector.SwiGLU(row(t), sum, vector.Ones(channels))
		} else {
			copy(row(t), sum)
		}
	}
	for i := range taps - 1 {
		copy(tail[i*ld:][:channels], next[i][:])
	}
}

// Tail sets dst, which is like Conv's tail, to the rows before row n of an x that Conv has not replaced yet.
func Tail(dst, x []float32, n, stride, channels int, tail []float32, ld, taps int) {
	for i := range taps - 1 {
		from := tail[min(n+i, taps-2)*ld:]
		if t := n - taps + 1 + i; t >= 0 {
			from = x[t*stride:]
		}
		copy(dst[i*ld:][:channels], from[:channels])
	}
}
