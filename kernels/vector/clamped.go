package vector

// The gate of gpt-oss's experts: its slope, and the bounds of what it multiplies.
const (
	clampedSlope = 1.702
	clampedLimit = 7
)

// ClampedGLU sets dst[i] = g · sigmoid(1.702·g) · (u + 1), where g is gate[i], at most
// 7, and u is up[i] within [-7, 7]. It changes up.
func ClampedGLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i, g := range gate {
		if g > clampedLimit { // a NaN stays one
			g = clampedLimit
		}
		u := up[i]
		switch {
		case u > clampedLimit:
			u = clampedLimit
		case u < -clampedLimit:
			u = -clampedLimit
		}
		dst[i], up[i] = clampedSlope*g, g*(u+1)
	}
	GLU(dst, dst, up)
}
