package vector

// The slope of the gate of gpt-oss's experts, and the bounds of clamped units.
const (
	clampedSlope = 1.702
	clampedLimit = 7
)

// ClampedGLU sets dst[i] = g · sigmoid(1.702·g) · (u + 1), where g is gate[i], at most
// 7, and u is up[i] within [-7, 7]. It may change gate and up.
func ClampedGLU(dst, gate, up []float32) {
	if clampedGLUFast(dst, gate[:len(dst)], up[:len(dst)]) {
		return
	}
	clamp(gate[:len(dst)], up[:len(dst)])
	for i, g := range gate[:len(dst)] {
		dst[i], up[i] = clampedSlope*g, g*(up[i]+1)
	}
	GLU(dst, dst, up)
}

// ClampedSwiGLU sets dst[i] = g · sigmoid(g) · u, where g is gate[i], at most 7, and u is
// up[i] within [-7, 7]. It changes gate and up.
func ClampedSwiGLU(dst, gate, up []float32) {
	clamp(gate[:len(dst)], up[:len(dst)])
	SwiGLU(dst, gate, up)
}

// clamp bounds gates, which are as many as up, from above, and up from both sides. A NaN stays one.
func clamp(gate, up []float32) {
	for i, g := range gate {
		if g > clampedLimit {
			gate[i] = clampedLimit
		}
		switch u := up[i]; {
		case u > clampedLimit:
			up[i] = clampedLimit
		case u < -clampedLimit:
			up[i] = -clampedLimit
		}
	}
}
