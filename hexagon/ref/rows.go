package ref

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Rows are rows of float32, Stride numbers apart. Their arithmetic is float32's, each
// operation rounded by itself: conversions keep the compiler from fusing two.
type Rows struct {
	X      []float32
	Stride int
}

// row returns n numbers of row i.
func (r Rows) row(i, n int) []float32 { return r.X[i*r.Stride:][:n] }

// lanes is the number of values in a vector; sums are made in their order.
const lanes = 32

// sumOfLanes adds the numbers of a vector, those half of them apart first.
func sumOfLanes(a [lanes]float32) float32 {
	for s := lanes / 2; s > 0; s /= 2 {
		b := a
		for i := range a {
			a[i] = b[i] + b[(i+s)%lanes]
		}
	}
	return a[0]
}

// reciprocal is 1/d of a normal d > 0 by Newton's steps from a guess.
func reciprocal(d float32) float32 {
	r := math.Float32frombits(0x7ef311c7 - math.Float32bits(d))
	for range 4 {
		r *= 2 - float32(d*r)
	}
	return r
}

// reciprocalRoot is 1/√d of d ≥ 0.
func reciprocalRoot(d float32) float32 {
	half := 0.5 * d
	r := math.Float32frombits(0x5f3759df - math.Float32bits(d)>>1)
	for range 4 {
		r *= 1.5 - float32(half*float32(r*r))
	}
	return r
}

// RMSNorm sets parts of rows to their RMSNorm, each of width numbers. Without a weight it is
// one. inverse is 1/width.
func RMSNorm(dst, src Rows, weight []float32, n, parts, width int, inverse, eps float32) {
	for i := range n * parts {
		at := i % parts * width
		x, y := src.row(i/parts, parts*width)[at:at+width], dst.row(i/parts, parts*width)[at:at+width]
		var sum [lanes]float32
		for k, v := range x {
			sum[k%lanes] += float32(v * v)
		}
		scale := reciprocalRoot(float32(sumOfLanes(sum)*inverse) + eps)
		for k, v := range x {
			if y[k] = v * scale; weight != nil {
				y[k] *= weight[k]
			}
		}
	}
}

// LayerNorm sets rows of width numbers to their LayerNorm. inverse is 1/width.
func LayerNorm(dst, src Rows, weight, bias []float32, n, width int, inverse, eps float32) {
	for i := range n {
		x, y := src.row(i, width), dst.row(i, width)
		var sum, squares [lanes]float32
		for k, v := range x {
			sum[k%lanes] += v
		}
		mean := float32(sumOfLanes(sum) * inverse)
		for k, v := range x {
			y[k] = v - mean
			squares[k%lanes] += float32(y[k] * y[k])
		}
		scale := reciprocalRoot(float32(sumOfLanes(squares)*inverse) + eps)
		for k := range y {
			y[k] = float32(float32(y[k]*scale)*weight[k]) + bias[k]
		}
	}
}

const (
	mostActivation = 8191
	leastMost      = 0x1p-64  // of a row that is not zeros
	toInt          = 0x1.8p23 // a sum with it is rounded to an integer, which its bits show
)

// roundToInt rounds magnitudes below 2²².
func roundToInt(x float32) int32 {
	return int32(math.Float32bits(x+toInt) - math.Float32bits(toInt))
}

// Quantize makes integers of width numbers of each row, zeros up to k, and the scales that
// these are multiples of.
func Quantize(dst []int16, scales []float32, src Rows, n, k, width int) {
	for i := range n {
		var most uint32
		x, q := src.row(i, width), dst[i*k:][:k]
		for _, v := range x {
			most = max(most, math.Float32bits(v)&0x7fffffff)
		}
		var scale, inverse float32
		if most >= math.Float32bits(leastMost) {
			scale = math.Float32frombits(most) * float32(1.0/mostActivation)
			inverse = reciprocal(scale)
		}
		scales[i] = scale
		clear(q)
		for j, v := range x {
			q[j] = int16(max(-mostActivation, min(mostActivation, roundToInt(float32(v*inverse)))))
		}
	}
}

// Scale makes numbers of sums: sum · (scale of the row · r) + bias, if there is one.
func Scale(dst Rows, sums []int32, stride int, scales, r, bias []float32, n, width int) {
	for i := range n {
		y := dst.row(i, width)
		for k, s := range sums[i*stride:][:width] {
			if y[k] = float32(s) * float32(scales[i]*r[k]); bias != nil {
				y[k] += bias[k]
			}
		}
	}
}

// AddRows adds rows times a factor to others.
func AddRows(dst, src Rows, n, width int, factor float32) {
	for i := range n {
		y := dst.row(i, width)
		for k, v := range src.row(i, width) {
			y[k] += float32(factor * v)
		}
	}
}

// Rope rotates the first numbers of each part: x[k]·cos[k] + x[partner]·sin[k], partners
// standing distance apart. angles has cosines and sines [rotated] of each row, the sign of
// the sine in them.
func Rope(rows Rows, angles []float32, n, parts, width, rotated, distance int) {
	old := make([]float32, rotated)
	for i := range n {
		cos, sin := angles[i*2*rotated:][:rotated], angles[(i*2+1)*rotated:][:rotated]
		for part := range parts {
			x := rows.row(i, parts*width)[part*width:][:rotated]
			copy(old, x)
			for k := range x {
				partner := k + distance
				if k/distance%2 == 1 {
					partner = k - distance
				}
				x[k] = float32(old[k]*cos[k]) + float32(old[partner]*sin[k])
			}
		}
	}
}

// The gated units.
const (
	GLUSiLU  = iota
	GLUGELU  // its tanh form
	GLUReLU2 // max(g, 0)²
	GLUClamped
	GLUSigmoid  // sigmoid(g)
	GLUErfGELU  // its exact form
	GLUErfAlone // the same without up
)

// Clamp says of GLUClamped where gates end, from above, and ups, on both sides, and what makes of
// them: g·sigmoid(Alpha·g)·(u + Plus).
type Clamp struct{ Limit, Alpha, Plus float32 }

// powersOfTwo is the series of 2^f, the highest power first.
var powersOfTwo = [...]float32{0x1.430912p-13, 0x1.5d87fep-10, 0x1.3b2ab6p-7, 0x1.c6b08ep-5, 0x1.ebfbep-3, 0x1.62e43p-1, 1}

// expMinus is e^-|x|, of at most 80.
func expMinus(x float32) float32 {
	a := math.Float32frombits(min(math.Float32bits(x)&0x7fffffff, math.Float32bits(80)))
	z := float32(a * -0x1.715476p0)
	up := z + toInt
	f := z - float32(up-toInt)
	p := powersOfTwo[0]
	for _, c := range powersOfTwo[1:] {
		p = float32(p*f) + c
	}
	return math.Float32frombits(math.Float32bits(p) + uint32(roundToInt(z))<<23)
}

// inverse is 1/d of d from 1 to 2.
func inverse(d float32) float32 {
	r := float32(24.0/17) - float32(d*float32(8.0/17))
	for range 3 {
		r *= 2 - float32(d*r)
	}
	return r
}

func sigmoid(x float32) float32 {
	e := expMinus(x)
	r := inverse(e + 1)
	if math.Signbit(float64(x)) {
		return e * r
	}
	return r
}

// halfErfc is half the series of erfc (Abramowitz and Stegun 1964, 7.1.26), the highest power first.
var halfErfc = [...]float32{0.5307027145, -0.7265760135, 0.7107068705, -0.142248368, 0.127414796}

// normalShare returns the share of a normal distribution below x, within 1.5·10⁻⁷: erfc(|x|/√2)/2, or
// 1 less that.
func normalShare(x float32) float32 {
	a := math.Float32frombits(min(math.Float32bits(x)&0x7fffffff, math.Float32bits(13)))
	d := 1 + float32(a*0.23164189)
	t := math.Float32frombits(0x7ef311c7 - math.Float32bits(d))
	for range 3 {
		t *= 2 - float32(d*t)
	}
	p := halfErfc[0]
	for _, c := range halfErfc[1:] {
		p = float32(p*t) + c
	}
	q := float32(p*t) * expMinus(float32(a*a)*0.5)
	if math.Signbit(float64(x)) {
		return q
	}
	return 1 - q
}

func activation(g float32, unit int) float32 {
	switch unit {
	case GLUReLU2:
		if math.Signbit(float64(g)) {
			g = 0
		}
		return g * g
	case GLUGELU:
		return g * sigmoid(float32(g+float32(float32(float32(g*g)*g)*0x1.6e4e26p-5))*0x1.988454p0)
	case GLUSigmoid:
		return sigmoid(g)
	case GLUErfGELU, GLUErfAlone:
		return g * normalShare(g)
	}
	return g * sigmoid(g)
}

// GLU sets dst to act(gate)·up; of GLUClamped to what c says, of GLUErfAlone to act(gate).
func GLU(dst, gate, up Rows, n, width, unit int, c Clamp) {
	for i := range n {
		y, u := dst.row(i, width), up.row(i, width)
		for k, g := range gate.row(i, width) {
			switch unit {
			case GLUClamped:
				y[k] = c.unit(g, u[k])
			case GLUErfAlone:
				y[k] = activation(g, unit)
			default:
				y[k] = float32(activation(g, unit)) * u[k]
			}
		}
	}
}

func (c Clamp) unit(g, u float32) float32 {
	g, u = min(g, c.Limit), max(-c.Limit, min(u, c.Limit))
	return float32(g*sigmoid(float32(c.Alpha*g))) * float32(u+c.Plus)
}

// ToTiles sets rows (across: columns) first to first+n of tiles to numbers of rows, times a
// factor, in fp16. Each part has tiles of its own, step numbers apart.
func ToTiles(dst []uint16, src Rows, n, parts, width, step, first int, across bool, factor float32) {
	for i := range n {
		for part := range parts {
			for k, v := range src.row(i, parts*width)[part*width:][:width] {
				row, col := first+i, k%layout.Tile
				if across {
					row, col = col, row
				}
				dst[part*step+k/layout.Tile*1024+layout.TileIndex(row, col)] = layout.F16(v * factor)
			}
		}
	}
}

// FromTiles sets rows to those (across: columns) of tiles from first on, divided by their
// sums. Lanes of saturated get all ones where a number is as large as fp16 allows.
func FromTiles(dst Rows, tiles []uint16, sums []float32, saturated []uint32, n, width, first int, across bool) {
	for i := range n {
		by := reciprocal(sums[first+i])
		y := dst.row(i, width)
		for k := range y {
			row, col := first+i, k%layout.Tile
			if across {
				row, col = col, row
			}
			h := tiles[k/layout.Tile*1024+layout.TileIndex(row, col)]
			if y[k] = layout.F32(h) * by; h&0x7fff >= layout.Largest {
				saturated[k%lanes] = math.MaxUint32
			}
		}
	}
}

// Fold adds the sums of a step of the softmax to the sums of the steps before, which decay, and
// hands its maxima to the next one, if there is one.
func Fold(sums []float32, states, next []uint32, begins bool) {
	for i := range layout.Tile {
		s := states[i*StateWords:][:StateWords]
		sum := float32(float32(float32(s[StateSumHigh])*0x1p32)+float32(s[StateSumLow])) * 0x1p-24
		if begins {
			sums[i] = sum
		} else {
			sums[i] = float32(sums[i]*layout.F32(uint16(s[StateFactor]))) + sum
		}
		if next != nil {
			next[i*StateWords+StateMax] = s[StateMax]
		}
	}
}
