//go:build arm64 && !purego

package acts

// The assembly of acts_arm64.s, which states each routine's contract.

//go:noescape
func absmaxNEON(x *float32, n int) uint32

//go:noescape
func codesNEON(q *int8, x *float32, n int, inv float32) (sum int32)

//go:noescape
func lanes8NEON(dst, q *int8, stride, n int)

//go:noescape
func octetsNEON(dst, q *int8, stride int, order *byte, trits, steps int)
