//go:build !purego

package delta

import "github.com/lutra-lm/lutra/kernels/cpu"

func updateFast(state []float32, t *Tokens) bool {
	if cpu.Active() != cpu.NEON {
		return false
	}
	updateNEON(&state[0], len(state)/Tile, &t.Q[0], &t.K[0], &t.V[0], 4*t.Stride, &t.Decay[0], &t.Beta[0], 4*t.Gates, t.N)
	return true
}
