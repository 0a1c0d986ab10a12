//go:build amd64 && !purego

package delta

import "github.com/lutra-lm/lutra/kernels/cpu"

// updateFast is Update where the machine has more than portable code.
func updateFast(state []float32, t *Tokens) bool {
	if !cpu.UseAVX2() {
		return false
	}
	f := updateAVX2
	if cpu.Active() == cpu.AVX512 {
		f = updateAVX512
	}
	f(&state[0], len(state)/Tile, &t.Q[0], &t.K[0], &t.V[0], 4*t.Stride, &t.Decay[0], &t.Beta[0], 4*t.Gates, t.N)
	return true
}
