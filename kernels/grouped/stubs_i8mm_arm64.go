//go:build arm64 && !purego

package grouped

// The assembly of panel_arm64.s and i8mm_arm64.s, which state each routine's contract.

//go:noescape
func panelBits(panel *int8, codes *byte, groups int)

//go:noescape
func panelPairs(panel *int8, codes *byte, groups int)

//go:noescape
func panelNibbles(panel *int8, codes *byte, groups int, levels *int8)

//go:noescape
func panelBytes(panel *int8, codes *byte, groups int)

//go:noescape
func panelScales(panel, scales *byte, groups int)

//go:noescape
func i8mmScale2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)

//go:noescape
func i8mmScale4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)

//go:noescape
func i8mmUnit2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups, unit int)

//go:noescape
func i8mmUnit4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups, unit int)

//go:noescape
func panelSixBits(panel *int8, codes *byte, groups int)

//go:noescape
func panelScalesQ4M(panel, scales *byte, groups int)

//go:noescape
func panelScalesQ41(panel, scales *byte, groups int)

//go:noescape
func panelScalesQ6(panel, scales *byte, groups int)

//go:noescape
func i8mmQ4Mx2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)

//go:noescape
func i8mmQ4Mx4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)

//go:noescape
func i8mmQ6x2(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)

//go:noescape
func i8mmQ6x4(y *float32, ld int, panel *int8, scales, acts *byte, stride, groups int)
