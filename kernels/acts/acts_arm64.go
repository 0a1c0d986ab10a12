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

func arrangeOctets(dst, q []int8, stride, g int) {
	if cpu.Active() == cpu.Generic {
		arrangeOctetsGeneric(dst, q, stride, g)
		return
	}
	_ = q[stride+len(dst)/2-1]
	octetsNEON(&dst[0], &q[0], stride, &octetOrders[g-4][0], g, len(dst)/(16*g))
}

// octetOrders say which byte of two blocks of g trits goes where, for g = 4 and 5.
var octetOrders = func() (orders [2][48]byte) {
	for i := range orders {
		for g, k := i+4, 0; k < 8*g; k++ {
			orders[i][8*(k%g)+k/g] = byte(k)
		}
	}
	return orders
}()

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
