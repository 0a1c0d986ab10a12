//go:build arm64 && !purego

package grouped

// The assembly of grouped_arm64.s, which states each routine's contract.

//go:noescape
func groupedQ4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ4MNEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ4MNEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ41NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ41NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ6NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ6NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ8NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ8NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedFP4NEONx1(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedFP4NEONx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
