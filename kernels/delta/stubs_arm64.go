//go:build !purego

package delta

// updateNEON takes n > 0 tokens through state[keys][16], keys a positive multiple of
// 4; strides are in bytes.
//
//go:noescape
func updateNEON(state *float32, keys int, q, k, v *float32, stride int, decay, beta *float32, gates, n int)
