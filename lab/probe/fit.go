package probe

import (
	"context"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// example is the features of an answer, with its label.
type example struct {
	x     []float32
	right bool
}

// standardisation brings features to mean 0 and deviation 1.
type standardisation struct{ mean, inverse []float32 }

// leastDeviation is of features that say nothing, relative to their mean.
const leastDeviation = 1e-6

func standardise(data []example) standardisation {
	width := len(data[0].x)
	s := standardisation{make([]float32, width), make([]float32, width)}
	parallel.Ranges(width, func(lo, hi int) {
		sum, squares := make([]float64, hi-lo), make([]float64, hi-lo)
		for _, e := range data {
			for k, v := range e.x[lo:hi] {
				sum[k] += float64(v)
			}
		}
		n := float64(len(data))
		for k := range sum {
			sum[k] /= n
		}
		for _, e := range data {
			for k, v := range e.x[lo:hi] {
				d := float64(v) - sum[k]
				squares[k] += d * d
			}
		}
		for k, mean := range sum {
			s.mean[lo+k] = float32(mean)
			if sd := math.Sqrt(squares[k] / n); sd > leastDeviation*(1+math.Abs(mean)) {
				s.inverse[lo+k] = float32(1 / sd)
			}
		}
	})
	return s
}

// apply standardises the features of examples in place.
func (s *standardisation) apply(data []example) {
	parallel.Ranges(len(data), func(lo, hi int) {
		for _, e := range data[lo:hi] {
			for k, v := range e.x {
				e.x[k] = (v - s.mean[k]) * s.inverse[k]
			}
		}
	})
}

// fold returns the line of features that are not standardised.
func (s *standardisation) fold(w []float64) (weights []float32, bias float32) {
	b := w[len(w)-1]
	weights = make([]float32, len(w)-1)
	for k := range weights {
		v := w[k] * float64(s.inverse[k])
		weights[k] = float32(v)
		b -= v * float64(s.mean[k])
	}
	return weights, float32(b)
}

// pieceRows are the examples whose gradient is added up in float32.
const pieceRows = 256

// loss returns the mean logistic loss of standardised examples with the weights w, of which the last
// is the bias, plus l2/2·|w|² without the bias, and writes its gradient into grad. Pieces are added up in their
// order, so that it does not depend on how many cores there are.
func loss(data []example, w []float64, l2 float64, grad []float64) float64 {
	width := len(w) - 1
	narrow := make([]float32, width)
	for k := range narrow {
		narrow[k] = float32(w[k])
	}
	pieces := (len(data) + pieceRows - 1) / pieceRows
	sums, losses, biases := make([][]float32, pieces), make([]float64, pieces), make([]float64, pieces)
	parallel.Ranges(pieces, func(lo, hi int) {
		for p := lo; p < hi; p++ {
			sum := make([]float32, width)
			for _, e := range data[p*pieceRows : min(len(data), (p+1)*pieceRows)] {
				z, sign := float64(vector.Dot(narrow, e.x))+w[width], 1.0
				if !e.right {
					sign = -1
				}
				losses[p] += softplus(-sign * z)
				g := -sign * sigmoid(-sign*z)
				biases[p] += g
				vector.Axpy(sum, float32(g), e.x)
			}
			sums[p] = sum
		}
	})
	n, total := float64(len(data)), 0.0
	clear(grad)
	for p := range pieces {
		total += losses[p]
		grad[width] += biases[p]
		for k, v := range sums[p] {
			grad[k] += float64(v)
		}
	}
	total /= n
	for k := range grad {
		grad[k] /= n
		if k < width {
			grad[k] += l2 * w[k]
			total += l2 / 2 * w[k] * w[k]
		}
	}
	return total
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 {
	if x > 30 {
		return x
	}
	return math.Log1p(math.Exp(x))
}

// The bounds of a fit.
const (
	memories   = 10   // pairs that L-BFGS remembers
	iterations = 100  // at most
	flat       = 1e-4 // gradient at which it ends
	halvings   = 20   // of a step that goes too far
)

// minimise goes on from w to a minimum of the loss (Nocedal and Wright 2006, "Numerical Optimization",
// Algorithm 7.5: L-BFGS, with steps that are halved until the loss falls).
func minimise(ctx context.Context, data []example, w []float64, l2 float64) error {
	n := len(w)
	grad, next, gradNext := make([]float64, n), make([]float64, n), make([]float64, n)
	f := loss(data, w, l2, grad)
	var ss, ys [][]float64
	for range iterations {
		if err := ctx.Err(); err != nil {
			return err
		}
		if norm(grad) < flat {
			return nil
		}
		d := direction(grad, ss, ys)
		slope := dot(d, grad)
		if slope >= 0 { // rounding has spoilt what it remembers
			ss, ys, d = nil, nil, scaled(grad, -1)
			slope = dot(d, grad)
		}
		step := 1.0
		if len(ss) == 0 {
			step = 1 / max(1, norm(grad))
		}
		fell := false
		for range halvings {
			for k := range next {
				next[k] = w[k] + step*d[k]
			}
			if g := loss(data, next, l2, gradNext); g <= f+1e-4*step*slope {
				f, fell = g, true
				break
			}
			step /= 2
		}
		if !fell {
			return nil
		}
		s, y := make([]float64, n), make([]float64, n)
		for k := range s {
			s[k], y[k] = next[k]-w[k], gradNext[k]-grad[k]
		}
		if dot(s, y) > 1e-12 {
			if ss, ys = append(ss, s), append(ys, y); len(ss) > memories {
				ss, ys = ss[1:], ys[1:]
			}
		}
		copy(w, next)
		grad, gradNext = gradNext, grad
	}
	return nil
}

// direction returns where L-BFGS goes next.
func direction(grad []float64, ss, ys [][]float64) []float64 {
	d, alpha := scaled(grad, -1), make([]float64, len(ss))
	for i := len(ss) - 1; i >= 0; i-- {
		alpha[i] = dot(ss[i], d) / dot(ss[i], ys[i])
		add(d, -alpha[i], ys[i])
	}
	if i := len(ss) - 1; i >= 0 {
		d = scaled(d, dot(ss[i], ys[i])/dot(ys[i], ys[i]))
	}
	for i := range ss {
		add(d, alpha[i]-dot(ys[i], d)/dot(ss[i], ys[i]), ss[i])
	}
	return d
}

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

func norm(a []float64) float64 { return math.Sqrt(dot(a, a)) }

func add(dst []float64, s float64, x []float64) {
	for i, v := range x {
		dst[i] += s * v
	}
}

func scaled(x []float64, s float64) []float64 {
	out := slices.Clone(x)
	for i := range out {
		out[i] *= s
	}
	return out
}
