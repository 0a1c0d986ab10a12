//go:build arm64 && !purego

package grouped

// The assembly of one_arm64.s and low_arm64.s, which state each routine's contract.

//go:noescape
func groupedQ1G128NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ1G128NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ1G128NEONx3(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ1G128NEONx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G64NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G64NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G64NEONx3(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G64NEONx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G128NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G128NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G128NEONx3(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G128NEONx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
