//go:build !purego

package delta

// The assembly of delta_arm64.s, which states each routine's contract.

//go:noescape
func productsNEON(panel *float32, width int, q, k *float32, stride int, out *float32, ld, n int)

//go:noescape
func productsOneNEON(panel *float32, width int, q, k *float32, stride int, out *float32, ld, n int)

//go:noescape
func correctNEON(all *float32, width, tiles, token int, mix, products *float32, ld int, v *float32)

//go:noescape
func foldNEON(tile *float32, stride, width int, keys, d *float32, before float32)

//go:noescape
func spaceNEON(state *float32, length int, b, c *float32, x, y, decay *float32)
