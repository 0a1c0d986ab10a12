package delta

import "math"

// Gates replaces the products for the gates of one token, a number a value head,
// by the gates: beta = sigmoid(beta), and decay = exp(a·softplus(decay + dt)), with a
// negative (Yang et al. 2024, §3.4; Gu and Dao 2023, "Mamba", §3.6).
func Gates(decay, beta, a, dt []float32) {
	for h, x := range decay {
		decay[h] = float32(math.Exp(float64(a[h]) * Softplus(float64(x)+float64(dt[h]))))
		beta[h] = float32(1 / (1 + math.Exp(-float64(beta[h]))))
	}
}

// Softplus returns ln(1 + exp(x)).
func Softplus(x float64) float64 {
	if x > 0 {
		return x + math.Log1p(math.Exp(-x))
	}
	return math.Log1p(math.Exp(x))
}
