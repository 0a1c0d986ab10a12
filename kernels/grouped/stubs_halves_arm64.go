//go:build arm64 && !purego

package grouped

// The assembly of halves_arm64.s and levels_arm64.s, which state each routine's contract.

//go:noescape
func halvesNL4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNL4KNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNL3KNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNL4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNL4KNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNL3KNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNL4SNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNL4SNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNVFP4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)

//go:noescape
func halvesNVFP4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int, levels *int8, factor float32)
