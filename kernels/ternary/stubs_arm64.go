//go:build arm64 && !purego

package ternary

// The assembly of sdot_arm64.s, i8mm_arm64.s, panel_arm64.s, tile_arm64.s and lut_arm64.s,
// which state each routine's contract.

//go:noescape
func sdotI1x1(sums *int32, w, act *byte, blocks int)

//go:noescape
func sdotI1x2(sums *int32, w, act *byte, blocks int)

//go:noescape
func sdotI1x4(sums *int32, w, act *byte, blocks int)

//go:noescape
func sdotI2x1(sums *int32, w, act *byte, blocks int)

//go:noescape
func sdotI2x2(sums *int32, w, act *byte, blocks int)

//go:noescape
func sdotI2x4(sums *int32, w, act *byte, blocks int)

//go:noescape
func i8mmI1x4(sums *int32, w, act *byte, blocks int)

//go:noescape
func i8mmI2x4(sums *int32, w, act *byte, blocks int)

//go:noescape
func panelI1(panel *int8, w *byte, blocks int)

//go:noescape
func panelI2(panel *int8, w *byte, blocks int)

//go:noescape
func quadsI1(panel *int8, w *byte, blocks int)

//go:noescape
func quadsI2(panel *int8, w *byte, blocks int)

//go:noescape
func sdotTile4(sums *int32, panel, act *int8, quads int)

//go:noescape
func i8mmTile8(sums *int32, panel, act *int8, stride, octets int)

//go:noescape
func i8mmTile4(sums *int32, panel, act *int8, stride, octets int)

//go:noescape
func i8mmTile2(sums *int32, panel, act *int8, stride, octets int)

//go:noescape
func ternaryFinishNEON(y *float32, sums *int32, scale float32, rows *float32)

//go:noescape
func lutBuildNEON(tables *int16, act *int8, trits, base, groups int)

//go:noescape
func lutAddNEON(acc, tables *int16, w *byte, table int)

//go:noescape
func lutAdd2NEON(acc, more, tables *int16, w *byte, table int)

//go:noescape
func lutWidenNEON(sums *int32, acc *int16, rows int)

//go:noescape
func lutFinishNEON(y *float32, ld int, sums *int32, scale, rows *float32)
