//go:build arm64 && !purego

package acts

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// vectorFloats is the number of floats that the NEON row kernels take at a time.
const vectorFloats = 16

// NEONLanes is the number of tokens of a register of int16.
const NEONLanes = 8

func quantizeRow(q []int8, x []float32) (scale float32, negSum int32) {
	body := len(x) &^ (vectorFloats - 1)
	if cpu.Active() == cpu.Generic || body == 0 {
		return QuantizeRow(q, x)
	}
	absmax := max(absmaxNEON(&x[0], body), absmaxBits(x[body:]))
	inv, scale := rowScale(absmax)
	if inv == 0 {
		clear(q)
		return scale, 0
	}
	return scale, vector.RoundInt8(q[body:], x[body:], inv) - codesNEON(&q[0], &x[0], body, inv)
}

func arrangeQuads(dst, q []int8, stride, g, width int) { arrangeQuadsGeneric(dst, q, stride, g, width) }

// arrangeLanes may transpose rows after the n wanted: memory for a whole tile
// of them is there, and what stands in a lane without a token is never read.
func arrangeLanes(dst, q []int8, stride, lanes, n int) {
	if cpu.Active() == cpu.Generic || lanes != NEONLanes {
		arrangeLanesGeneric(dst, q, stride, lanes, n)
		return
	}
	_, _ = q[:NEONLanes*stride], dst[:NEONLanes*stride]
	lanes8NEON(&dst[0], &q[0], stride, stride)
}

func arrangeGroup(dst, recs []byte, stride, tokens int) {
	arrangeGroupGeneric(dst, recs, stride, tokens)
}

// quantizeGroupsFast does no group: the portable code does them all.
func quantizeGroupsFast([]byte, []float32, Limit) int { return 0 }
