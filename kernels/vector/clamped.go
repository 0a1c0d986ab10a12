package vector

// ClampedSlope is the slope of the gate of gpt-oss's experts, ClampedLimit the bound of clamped units.
const (
	ClampedSlope = 1.702
	ClampedLimit = 7
)

// ClampedGLU sets dst[i] = g · sigmoid(1.702·g) · (u + 1), where g is gate[i], at most
// 7, and u is up[i] within [-7, 7]. It may change gate and up.
func ClampedGLU(dst, gate, up []float32) {
	if clampedGLUFast(dst, gate[:len(dst)], up[:len(dst)]) {
		return
	}
	clamp(gate[:len(dst)], up[:len(dst)])
	for i, g := range gate[:len(dst)] {
		dst[i], up[i] = ClampedSlope*g, g*(up[i]+1)
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
		if g > ClampedLimit {
			gate[i] = ClampedLimit
		}
		switch u := up[i]; {
		case u > ClampedLimit:
			up[i] = ClampedLimit
		case u < -ClampedLimit:
			up[i] = -ClampedLimit
		}
	}
}
