package layout

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Rows are the rows of a float32 matrix: Row fills dst, Cols long, with row m. It may
// be called from several goroutines.
type Rows struct {
	Rows, Cols int
	Row        func(m int, dst []float32)
}

// Quantize rounds a matrix to a format. Each group has the scale, and offset, that
// leaves the least squared error among those tried.
func Quantize(r Rows, f Format) (*Weights, error) {
	w, err := New(r.Rows, r.Cols, f)
	if err != nil {
		return nil, err
	}
	values := newValueSet(w)
	groups := (w.Cols + w.Group - 1) / w.Group
	failed := make([]error, w.Rows)
	matrix.Parallel(w.Rows, func(m int) {
		row, codes, scales := make([]float32, w.Cols), make([]uint8, w.Cols), make([]float32, groups)
		var offsets []float32
		if f.Offsets {
			offsets = make([]float32, groups)
		}
		r.Row(m, row)
		for g := range groups {
			from, to := g*w.Group, min((g+1)*w.Group, w.Cols)
			if f.Offsets {
				scales[g], offsets[g] = values.fitLine(codes[from:to], row[from:to])
			} else {
				scales[g] = values.fit(codes[from:to], row[from:to])
			}
		}
		failed[m] = w.SetRow(m, codes, scales, offsets)
	})
	return w, cmp.Or(failed...)
}

// QuantizeTiles rounds a matrix to super-groups: groups of 32 numbers that follow one
// another in a tile, with the 16 values given.
func QuantizeTiles(r Rows, values []float32) *SuperGroups {
	g := NewSuperGroups(r.Rows, r.Cols, values)
	set := newValueSet(&Weights{Format: Format{Bits: 4, Values: values}})
	matrix.Parallel(g.M/Tile, func(row int) {
		var strip [Tile][]float32
		for i := range strip {
			strip[i] = make([]float32, g.K)
			if m := row*Tile + i; m < r.Rows {
				r.Row(m, strip[i][:r.Cols])
			}
		}
		for col := range g.K / Tile {
			var numbers [Tile * Tile]float32
			for y := range Tile {
				for x := range Tile {
					numbers[TileIndex(y, x)] = strip[y][col*Tile+x]
				}
			}
			var scales [32]uint16
			var codes [Tile * Tile]uint8
			for i := range scales {
				at := i * superGroupScale
				scales[i] = F16(set.fit(codes[at:at+superGroupScale], numbers[at:at+superGroupScale]))
			}
			g.SetTile(row, col, &scales, &codes)
		}
	})
	return g
}

// Dequantizer is a matrix that has been quantised.
type Dequantizer interface{ Dequantize(dst []float32, m int) }

// RelativeError returns the root of the squared error's share of the squared weights.
func RelativeError(r Rows, d Dequantizer) float64 {
	want, got := make([]float32, r.Cols), make([]float32, r.Cols)
	var wrong, all float64
	for m := range r.Rows {
		r.Row(m, want)
		d.Dequantize(got, m)
		for k, f := range want {
			wrong += float64(f-got[k]) * float64(f-got[k])
			all += float64(f) * float64(f)
		}
	}
	return math.Sqrt(wrong / all)
}

// valueSet finds the code whose value is nearest.
type valueSet struct {
	values  []float32  // sorted
	codes   []uint8    // of values
	largest float32    // magnitude
	cells   float32    // a unit
	near    [256]uint8 // of each cell from the first value to the last, the value nearest to its middle
}

func newValueSet(w *Weights) *valueSet {
	s := &valueSet{}
	levels := 1 << w.Bits
	if w.Bits == 2 && w.A == 1 && w.B == 1 && w.Values == nil {
		levels = 3 // of a ternary matrix
	}
	for q := range levels {
		s.codes = append(s.codes, uint8(q))
	}
	slices.SortStableFunc(s.codes, func(a, b uint8) int { return cmp.Compare(w.value(int(a)), w.value(int(b))) })
	for _, q := range s.codes {
		v := w.value(int(q))
		s.values = append(s.values, v)
		s.largest = max(s.largest, v, -v)
	}
	if first, last := s.values[0], s.values[levels-1]; first < last {
		cells := float32(len(s.near)) / (last - first)
		for i := range s.near {
			s.near[i] = uint8(s.nearest(first + (float32(i)+0.5)/cells))
		}
		s.cells = cells
	}
	return s
}

// nearest returns the index of the value nearest to f, of two as near the lower one. It looks
// from the value that is nearest to most of the numbers in f's cell.
func (s *valueSet) nearest(f float32) int {
	best, values := 0, s.values
	if cell := (f - values[0]) * s.cells; cell > 0 {
		best = int(s.near[int(min(cell, float32(len(s.near)-1)))])
	}
	for best > 0 && !(f-values[best-1] > values[best]-f) {
		best--
	}
	for best+1 < len(values) && f-values[best] > values[best+1]-f {
		best++
	}
	return best
}

// shrinks lists the scales that are tried, relative to the one that represents the largest number.
var shrinks = []float32{1.05, 1, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3}

// fit chooses a scale and codes.
func (s *valueSet) fit(codes []uint8, w []float32) (scale float32) {
	var most float32
	for _, f := range w {
		most = max(most, f, -f)
	}
	if s.largest == 0 || most == 0 {
		return s.round(codes, w, 0, 0)
	}
	gain := -1.0
	for _, shrink := range shrinks {
		for _, sign := range []float32{1, -1} {
			// The least squares' scale for the codes of a tried one takes (Σwv)²/Σv²
			// from the squared error.
			inverse := s.largest / (most * shrink) * sign
			var wv, vv float64
			for _, f := range w {
				v := s.values[s.nearest(f*inverse)]
				wv += float64(f) * float64(v)
				vv += float64(v) * float64(v)
			}
			if vv > 0 && wv*wv/vv > gain {
				gain, scale = wv*wv/vv, float32(wv/vv)
			}
		}
	}
	return s.round(codes, w, scale, 0)
}

// fitLine chooses a scale, an offset and codes.
func (s *valueSet) fitLine(codes []uint8, w []float32) (scale, offset float32) {
	lo, hi := slices.Min(w), slices.Max(w)
	first, last := s.values[0], s.values[len(s.values)-1]
	if lo == hi || first == last {
		return s.round(codes, w, 0, lo), lo
	}
	least := math.Inf(1)
	for _, shrink := range shrinks {
		step := (hi - lo) * shrink / (last - first)
		base := (hi+lo)/2 - step*(first+last)/2
		var n, v1, v2, w1, wv, w2 float64
		for _, f := range w {
			v, f := float64(s.values[s.nearest((f-base)/step)]), float64(f)
			n, v1, v2, w1, wv, w2 = n+1, v1+v, v2+v*v, w1+f, wv+f*v, w2+f*f
		}
		d := n*v2 - v1*v1
		if d <= 0 {
			continue
		}
		a := (n*wv - w1*v1) / d
		b := (w1 - a*v1) / n
		if e := w2 - a*wv - b*w1; e < least {
			least, scale, offset = e, float32(a), float32(b)
		}
	}
	return s.round(codes, w, scale, offset), offset
}

// round chooses the codes of a scale and offset. It returns the scale.
func (s *valueSet) round(codes []uint8, w []float32, scale, offset float32) float32 {
	for i, f := range w {
		var v float32
		if scale != 0 {
			v = (f - offset) / scale
		}
		codes[i] = s.codes[s.nearest(v)]
	}
	return scale
}
