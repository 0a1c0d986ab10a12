//go:build arm64 && !purego

package kernels

// The assembly of vector_arm64.s, vector_exp_arm64.s and attend_arm64.s, which
// states each routine's contract.

//go:noescape
func addNEON(dst, a, b *float32, n int)

//go:noescape
func mulNEON(dst, a, b *float32, n int)

//go:noescape
func scaleNEON(dst, x *float32, s float32, n int)

//go:noescape
func axpyNEON(dst, x *float32, s float32, n int)

//go:noescape
func scaleMulNEON(dst, x, w *float32, s float32, n int)

//go:noescape
func relu2NEON(dst, gate, up *float32, n int)

//go:noescape
func f16ToF32NEON(dst *float32, src *uint16, n int)

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

//go:noescape
func scoresF16x1(dst *float32, ld int, q *float32, k *byte, groups, d int)

//go:noescape
func accumF16x1(acc, p *float32, ld int, v *byte, t, d int)

//go:noescape
func scoresF16x2(dst *float32, ld int, q *float32, k *byte, groups, d int)

//go:noescape
func scoresF16x4(dst *float32, ld int, q *float32, k *byte, groups, d int)

//go:noescape
func accumF16x2(acc, p *float32, ld int, v *byte, t, d int)

//go:noescape
func scoresQ8x1(dst *float32, ld int, q *float32, k *byte, scale *float32, groups, d int)

//go:noescape
func accumQ8x1(acc, p *float32, ld int, v *byte, scale *float32, t, d int)

//go:noescape
func scoresQ8x2(dst *float32, ld int, q *float32, k *byte, scale *float32, groups, d int)

//go:noescape
func scoresQ8x4(dst *float32, ld int, q *float32, k *byte, scale *float32, groups, d int)

//go:noescape
func accumQ8x2(acc, p *float32, ld int, v *byte, scale *float32, t, d int)
