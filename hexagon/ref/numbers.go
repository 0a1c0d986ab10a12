// Package ref defines every operation of the device in plain Go: one element after
// another, as hexagon/device writes it down. It is what devices are compared with.
package ref

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Mul multiplies fp16 numbers. Two fp16 have an exact product in float32.
func Mul(a, b uint16) uint16 { return layout.F16(layout.F32(a) * layout.F32(b)) }

// Add adds fp16 numbers. Float32 has twice the digits of fp16 and two more, so that
// rounding to it first does not change what fp16 the sum becomes.
func Add(a, b uint16) uint16 { return layout.F16(layout.F32(a) + layout.F32(b)) }

// Sub subtracts fp16 numbers.
func Sub(a, b uint16) uint16 { return Add(a, b^0x8000) }

// fromF64 rounds d ≥ 0 to fp16, once: what float32 cannot hold of d decides ties, so
// it is rounded to an odd number first.
func fromF64(d float64) uint16 {
	f := float32(d)
	if float64(f) != d {
		b := math.Float32bits(f)
		if float64(f) > d {
			b--
		}
		f = math.Float32frombits(b | 1)
	}
	return layout.F16(f)
}
