//go:build arm64 && !purego

package attention

// The assembly of attend_arm64.s, which states each routine's contract.

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
