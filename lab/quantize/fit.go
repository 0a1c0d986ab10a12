package quantize

import "math"

// The fits below search for the scale, and the offset, that make the weighted squared error of a block least. They try a range of
// scales, round the codes for each, and solve for the best scale for these codes. They take the steps of make_qx_quants,
// make_qkx3_quants and make_qp_quants of ggml-quants.c, in the same order of float32 operations, so that codes are the same.
// Conversions forbid fused multiply-adds.

// tiny is the magnitude below which a block counts as zeros.
const tiny = 1e-15

// round returns the integer nearest to x, the even one of two. |x| < 2²²; the results of
// others are unspecified.
func round(x float32) int {
	const ulpIsOne = 1.5 * (1 << 23)
	return int(math.Float32bits(x+ulpIsOne)&0x7fffff) - 1<<22
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// sumSquares adds in order.
func sumSquares(x []float32) (sum float32) {
	for _, v := range x {
		sum += float32(v * v)
	}
	return sum
}

// largest returns the value of largest magnitude with its sign, the first of equals.
func largest(x []float32) (most float32) {
	for _, v := range x {
		if abs(v) > abs(most) {
			most = v
		}
	}
	return most
}

// importance sets dst to the weights of errors of x: the columns', and more for values that are large against their mean square.
func importance(dst, x, columns []float32, meanSquare float32) {
	for i, v := range x {
		dst[i] = columns[i] * sqrt(meanSquare+float32(v*v))
	}
}

// fitSymmetric finds the scale of codes -top to top-1, and sets codes to them plus top.
// weights nil: each error weighs as much as its value's square. The value of largest
// magnitude is first given the code -top, then ones around it.
func fitSymmetric(codes []byte, x, weights []float32, top int) (scale float32) {
	most := largest(x)
	if abs(most) < tiny {
		clear(codes)
		return 0
	}
	const tries = 9
	best := float32(0)
	for try := range 2*tries + 1 {
		shift := try - 1 - tries // the first try has none
		if try == 0 {
			shift = 0
		} else if try > tries {
			shift++
		}
		inverse := -(float32(top) + float32(0.1*float32(shift))) / most
		var sumLX, sumL2 float32
		for i, v := range x {
			w := float32(v * v)
			if weights != nil {
				w = weights[i]
			}
			l := float32(code(float32(inverse*v), top))
			sumLX += float32(float32(w*v) * l)
			sumL2 += float32(float32(w*l) * l)
		}
		switch {
		case try == 0 && sumL2 != 0:
			scale = sumLX / sumL2
		case try > 0 && sumL2 > 0 && float32(sumLX*sumLX) > float32(best*sumL2):
			scale = sumLX / sumL2
		case try > 0:
			continue
		}
		best = float32(scale * sumLX)
		for i, v := range x {
			codes[i] = byte(code(float32(inverse*v), top) + top)
		}
	}
	return scale
}

// code rounds to -top to top-1.
func code(x float32, top int) int { return max(-top, min(top-1, round(x))) }

// search is the range of scales that fitAffine tries.
type search struct {
	from, step float32 // added to the largest code
	steps      int
}

// fitAffine finds scale and offset of codes 0 to top, so that scale·code - offset is near
// x. The offset is not negative. Blocks have 32 values.
func fitAffine(codes *[32]byte, x, weights *[32]float32, top int, s search) (scale, offset float32) {
	low, high := x[0], x[0]
	var sumW, sumX float32
	for i, v := range x {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
		sumW += weights[i]
		sumX += float32(weights[i] * v)
	}
	low = min(low, 0)
	if high <= low {
		*codes = [32]byte{}
		return 0, -low
	}
	inverse := float32(top) / (high - low)
	scale = 1 / inverse
	affineCodes(codes, x, low, inverse, top)
	best := affineError(codes, x, weights, scale, low)
	var tried [32]byte
	for step := range s.steps + 1 {
		// low is the best offset so far, from which the next codes are counted.
		inverse = (s.from + float32(s.step*float32(step)) + float32(top)) / (high - low)
		affineCodes(&tried, x, low, inverse, top)
		newScale, newLow, ok := solveAffine(&tried, x, weights, sumW, sumX)
		if !ok {
			continue
		}
		if e := affineError(&tried, x, weights, newScale, newLow); e < best {
			best, scale, low, *codes = e, newScale, newLow, tried
		}
	}
	return scale, -low
}

func affineCodes(codes *[32]byte, x *[32]float32, low, inverse float32, top int) {
	for i, v := range x {
		codes[i] = byte(max(0, min(top, round(float32(inverse*(v-low))))))
	}
}

// solveAffine returns the scale and offset, at most 0, of least error for codes.
func solveAffine(codes *[32]byte, x, weights *[32]float32, sumW, sumX float32) (scale, offset float32, ok bool) {
	var sumL, sumL2, sumXL float32
	for i, v := range x {
		wl := float32(weights[i] * float32(codes[i]))
		sumL += wl
		sumL2 += float32(wl * float32(codes[i]))
		sumXL += float32(wl * v)
	}
	det := float32(sumW*sumL2) - float32(sumL*sumL)
	if !(det > 0) {
		return 0, 0, false
	}
	scale = (float32(sumW*sumXL) - float32(sumX*sumL)) / det
	offset = (float32(sumL2*sumX) - float32(sumL*sumXL)) / det
	if offset > 0 {
		return sumXL / sumL2, 0, true
	}
	return scale, offset, true
}

func affineError(codes *[32]byte, x, weights *[32]float32, scale, offset float32) (sum float32) {
	for i, v := range x {
		d := float32(scale*float32(codes[i])) + offset - v
		sum += float32(weights[i] * float32(d*d))
	}
	return sum
}

// fitPositive finds the scale of codes 0 to top of values that are not negative, then
// improves one code after the other.
func fitPositive(codes []byte, x, weights []float32, top int) (scale float32) {
	most := float32(0)
	for _, v := range x {
		most = max(most, v)
	}
	if most < tiny {
		clear(codes)
		return 0
	}
	clamped := func(v, inverse float32) float32 { return float32(min(top, round(float32(inverse*v)))) }
	inverse, best := float32(top)/most, float32(0)
	for try := range 9 {
		shift := try - 5 // the first try has none
		if try == 0 {
			shift = 0
		} else if try > 4 {
			shift++
		}
		inv := (float32(0.1*float32(shift)) + float32(top)) / most
		s, sum := 1/inv, float32(0)
		for i, v := range x {
			d := v - float32(s*clamped(v, inv))
			sum += float32(float32(weights[i]*d) * d)
		}
		if try == 0 || sum < best {
			best, inverse = sum, inv
		}
	}
	var sumLX, sumL2 float32
	for i, v := range x {
		l := clamped(v, inverse)
		codes[i] = byte(l)
		sumLX += float32(float32(weights[i]*v) * l)
		sumL2 += float32(float32(weights[i]*l) * l)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			w, l := weights[i], float32(codes[i])
			lx, l2 := sumLX-float32(float32(w*v)*l), sumL2-float32(float32(w*l)*l)
			if !(lx > 0 && l2 > 0) {
				continue
			}
			next := min(top, round(float32(v*l2)/lx))
			if next == int(codes[i]) {
				continue
			}
			lx += float32(float32(w*v) * float32(next))
			l2 += float32(float32(w*float32(next)) * float32(next))
			if float32(float32(lx*lx)*sumL2) > float32(float32(sumLX*sumLX)*l2) {
				codes[i], sumLX, sumL2, changed = byte(next), lx, l2, true
			}
		}
		if !changed {
			break
		}
	}
	if sumL2 > 0 {
		return sumLX / sumL2
	}
	return 0
}
