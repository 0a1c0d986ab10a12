package vector

import "math"

// LayerNorm sets x[i] = (x[i] - mean) / sqrt(variance + eps) · weight[i] + bias[i], mean
// and variance taken in float64 (Ba et al. 2016, "Layer Normalization", §3).
func LayerNorm(x, weight, bias []float32, eps float32) {
	if len(x) == 0 {
		return
	}
	sum := 0.0
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	sum = 0
	for _, v := range x {
		d := float64(v) - mean
		sum += d * d
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+float64(eps))
	weight, bias = weight[:len(x)], bias[:len(x)]
	for i, v := range x {
		x[i] = float32(float32((float64(v)-mean)*scale)*weight[i]) + bias[i]
	}
}

// GELU sets x[i] = x[i] · Φ(x[i]), with the error function itself (Hendrycks and Gimpel,
// "Gaussian Error Linear Units", §2). Its results are within 2e-7 · |x| (Abramowitz and
// Stegun, 7.1.26).
func GELU(x []float32) {
	for i, v := range x {
		x[i] = gelu(v)
	}
}

// ErfGLU sets dst[i] = gelu(gate[i]) · up[i], with the GELU of GELU.
func ErfGLU(dst, gate, up []float32) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i, g := range gate {
		dst[i] = gelu(g) * up[i]
	}
}

func gelu(v float32) float32 {
	y := math.Abs(float64(v)) / math.Sqrt2
	t := 1 / (1 + 0.3275911*y)
	tail := t * (0.254829592 + t*(-0.284496736+t*(1.421413741+t*(-1.453152027+t*1.061405429)))) * math.Exp(-y*y) / 2
	if v > 0 {
		tail = 1 - tail
	}
	return float32(float64(v) * tail)
}
