//go:build arm64 && !purego

package vector

// The assembly of vector_arm64.s and vector_exp_arm64.s, which states each
// routine's contract.

//go:noescape
func addNEON(dst, a, b *float32, n int)

//go:noescape
func mulNEON(dst, a, b *float32, n int)

//go:noescape
func mulAddNEON(dst, a, b *float32, n int)

//go:noescape
func butterflyNEON(lo, hi *float32, n int)

//go:noescape
func scaleNEON(dst, x *float32, s float32, n int)

//go:noescape
func axpyNEON(dst, x *float32, s float32, n int)

//go:noescape
func scaleMulNEON(dst, x, w *float32, s float32, n int)

//go:noescape
func relu2NEON(dst, gate, up *float32, n int)

//go:noescape
func f32ToF16NEON(dst *uint16, src *float32, n int)

//go:noescape
func ropeHalvesNEON(lo, hi, cos, sin *float32, n int)

//go:noescape
func ropePairsNEON(x, cos, sin *float32, n int)

//go:noescape
func dotNEON(a, b *float32, n int) float32

//go:noescape
func sumSquaresNEON(x *float32, n int) float64

//go:noescape
func maxNEON(x *float32, n int) float32

//go:noescape
func absMaxNEON(x *float32, n int) float32

//go:noescape
func expSumNEON(sums *[8]float32, dst, x *float32, shift float32, n int)

//go:noescape
func sumWithinNEON(part *[16]float32, x *float32, lo, hi float32, n int) int

//go:noescape
func swigluNEON(dst, gate, up *float32, n int)
