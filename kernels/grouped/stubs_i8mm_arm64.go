//go:build arm64 && !purego

package grouped

// The assembly of i8mm_arm64.s, which states each routine's contract.

//go:noescape
func groupedQ1G128I8MMx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ1G128I8MMx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G64I8MMx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G64I8MMx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G128I8MMx2(y *float32, ld int, codes, scales, acts *byte, lda, groups int)

//go:noescape
func groupedQ2G128I8MMx4(y *float32, ld int, codes, scales, acts *byte, lda, groups int)
