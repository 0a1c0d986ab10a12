package models

import "github.com/lutra-lm/lutra/kernels/vector"

// GatedUnit combines a feed-forward's gate and up: act(gate) · up (Shazeer, "GLU Variants Improve Transformer",
// §2).
type GatedUnit uint8

// The units, by act.
const (
	UnitSiLU        GatedUnit = iota + 1
	UnitGELU                  // its tanh form
	UnitErfGELU               // exact
	UnitReLU2                 // max(g, 0)²
	UnitClampedSiLU           // of gate and up within bounds
	UnitClamped               // gpt-oss'
)

var gatedUnits = [...]func(dst, gate, up []float32){
	UnitSiLU: vector.SwiGLU, UnitGELU: vector.GeGLU, UnitErfGELU: vector.ErfGLU, UnitReLU2: vector.ReLU2GLU,
	UnitClampedSiLU: vector.ClampedSwiGLU, UnitClamped: vector.ClampedGLU,
}

// row sets dst of one row to act(gate)·up of gate and up, side by side, or to act of gate alone.
func (u GatedUnit) row(dst, made []float32) {
	n := len(dst)
	if len(made) > n {
		gatedUnits[u](dst, made[:n], made[n:])
		return
	}
	for lo := 0; lo < n; lo += vector.MostOnes {
		hi := min(n, lo+vector.MostOnes)
		gatedUnits[u](dst[lo:hi], made[lo:hi], vector.Ones(hi-lo))
	}
}
