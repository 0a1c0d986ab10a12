//go:build amd64 && !purego

package acts

import (
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// vectorFloats is the number of floats that the AVX2 row kernels take at a time.
const vectorFloats = 32

func quantizeRow(q []int8, x []float32) (scale float32, negSum int32) {
	body := len(x) &^ (vectorFloats - 1)
	if cpu.Active() == cpu.Generic || body == 0 {
		return QuantizeRow(q, x)
	}
	absmax := max(absmaxAVX2(&x[0], body), absmaxBits(x[body:]))
	inv, scale := rowScale(absmax)
	if inv == 0 {
		clear(q)
		return scale, 0
	}
	return scale, vector.RoundInt8(q[body:], x[body:], inv) - quantiseAVX2(&q[0], &x[0], body, inv)
}

// arrangeOctets is for arm64.
func arrangeOctets(dst, q []int8, stride, g int) { arrangeOctetsGeneric(dst, q, stride, g) }

func arrangeQuads(dst, q []int8, stride, g, width int) {
	if cpu.Active() == cpu.Generic {
		arrangeQuadsGeneric(dst, q, stride, g, width)
		return
	}
	blocks := len(dst) / (width * BlockBytes * g)
	arrange := [4]func(dst, q *int8, stride, blocks, step int){quads4x1AVX2, quads4x2AVX2, quads4x3AVX2, quads4x4AVX2}
	if g == 5 {
		arrange = [4]func(dst, q *int8, stride, blocks, step int){quads5x1AVX2, quads5x2AVX2, quads5x3AVX2, quads5x4AVX2}
	}
	for n := 0; n < width; n += 4 {
		rows := min(4, width-n)
		arrange[rows-1](&dst[4*n], &q[n*stride], stride, blocks, 4*width)
	}
}

// arrangeLanes may transpose rows after the n wanted: memory for a whole tile
// of them is there, and what stands in a lane without a token is never read.
func arrangeLanes(dst, q []int8, stride, lanes, n int) {
	switch {
	case cpu.Active() == cpu.AVX512 && lanes == WideLanes:
		_ = q[:WideLanes*stride]
		lanes32AVX512(&dst[0], &q[0], stride, stride)
	case cpu.Active() != cpu.Generic && lanes == LaneTokens:
		_ = q[:LaneTokens*stride]
		lanes16AVX2(&dst[0], &q[0], stride, stride)
	default:
		arrangeLanesGeneric(dst, q, stride, lanes, n)
	}
}

// arrangeGroup sets dst[32][tokens] to the codes of a group of as many records,
// stride bytes apart.
func arrangeGroup(dst, recs []byte, stride, tokens int) {
	_, _ = recs[(tokens-1)*stride+GroupCols-1], dst[GroupCols*tokens-1]
	to, from := (*int8)(unsafe.Pointer(&dst[0])), (*int8)(unsafe.Pointer(&recs[0]))
	switch {
	case cpu.Active() == cpu.AVX512 && tokens == WideLanes:
		lanes32AVX512(to, from, stride, GroupCols)
	case cpu.Active() != cpu.Generic && tokens == LaneTokens:
		lanes16AVX2(to, from, stride, GroupCols)
	default:
		arrangeGroupGeneric(dst, recs, stride, tokens)
	}
}

// quantizeGroupsFast does the whole groups of x and returns how many.
func quantizeGroupsFast(rec []byte, x []float32, limit Limit) int {
	groups := len(x) / GroupCols
	if cpu.Active() == cpu.Generic || groups == 0 {
		return 0
	}
	_ = rec[groups*RecordBytes-1]
	quantizeGroupsAVX2(&rec[0], &x[0], groups, int(limit.most()), float32(limit.flat()))
	return groups
}
