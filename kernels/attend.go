package kernels

import "math"

// The attention primitives work on one block of t keys or values of one KV
// head, contiguous as [t][d], for the g query rows that share the head
// (grouped-query attention). A row's result does not depend on g. Products and
// sums are float32. Queries come already scaled by 1/√d.

// ScoresF16 sets dst[i*ld + j] = q[i]·k[j] for i < g, j < t, with float16 keys
// k[t][d] and queries q[g][d].
func ScoresF16(dst []float32, ld int, q []float32, k []uint16, g, t, d int) {
	if g == 0 || t == 0 {
		return
	}
	_, _, _ = dst[(g-1)*ld+t-1], q[:g*d], k[:t*d]
	if scoresF16Fast(dst, ld, q, k, g, t, d) {
		return
	}
	for j := range t {
		key := k[j*d : (j+1)*d]
		for i := range g {
			query := q[i*d : (i+1)*d]
			var part [4]float32
			for c, h := range key {
				part[c&3] += query[c] * f16ToF32(h)
			}
			dst[i*ld+j] = (part[0] + part[2]) + (part[1] + part[3])
		}
	}
}

// AccumF16 sets acc[i] += Σ p[i*ld + j] · v[j] over j < t for i < g, with
// float16 values v[t][d] and sums acc[g][d].
func AccumF16(acc []float32, p []float32, ld int, v []uint16, g, t, d int) {
	if g == 0 || t == 0 {
		return
	}
	_, _, _ = p[(g-1)*ld+t-1], acc[:g*d], v[:t*d]
	if accumF16Fast(acc, p, ld, v, g, t, d) {
		return
	}
	for j := range t {
		value := v[j*d : (j+1)*d]
		for i := range g {
			row, w := acc[i*d:(i+1)*d], p[i*ld+j]
			for c, h := range value {
				row[c] += w * f16ToF32(h)
			}
		}
	}
}

// ScoresQ8 is ScoresF16 for int8 keys with one scale a key: key j is
// scale[j] · k[j].
func ScoresQ8(dst []float32, ld int, q []float32, k []int8, scale []float32, g, t, d int) {
	if g == 0 || t == 0 {
		return
	}
	_, _, _, _ = dst[(g-1)*ld+t-1], q[:g*d], k[:t*d], scale[:t]
	if scoresQ8Fast(dst, ld, q, k, scale, g, t, d) {
		return
	}
	for j := range t {
		key := k[j*d : (j+1)*d]
		for i := range g {
			query := q[i*d : (i+1)*d]
			var part [4]float32
			for c, b := range key {
				part[c&3] += query[c] * float32(b)
			}
			dst[i*ld+j] = ((part[0] + part[2]) + (part[1] + part[3])) * scale[j]
		}
	}
}

// AccumQ8 is AccumF16 for int8 values with one scale a value: value j is
// scale[j] · v[j].
func AccumQ8(acc []float32, p []float32, ld int, v []int8, scale []float32, g, t, d int) {
	if g == 0 || t == 0 {
		return
	}
	_, _, _, _ = p[(g-1)*ld+t-1], acc[:g*d], v[:t*d], scale[:t]
	if accumQ8Fast(acc, p, ld, v, scale, g, t, d) {
		return
	}
	for j := range t {
		value := v[j*d : (j+1)*d]
		for i := range g {
			row, w := acc[i*d:(i+1)*d], p[i*ld+j]*scale[j]
			for c, b := range value {
				row[c] += w * float32(b)
			}
		}
	}
}

// QuantizeQ8 rounds one key or value to int8 with an absmax scale, which it
// returns: x[i] ≈ dst[i] · scale.
func QuantizeQ8(dst []int8, x []float32) (scale float32) {
	dst = dst[:len(x)]
	top := AbsMax(x)
	if !(top >= minAbsMax && top <= math.MaxFloat32) {
		clear(dst)
		return 0
	}
	inv := 127 / top
	for i, v := range x {
		dst[i] = int8(math.RoundToEven(float64(v * inv)))
	}
	return top / 127
}

// OnlineSoftmax is the running state of a softmax over blocks of scores (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", §3): Max is the
// largest score seen, Sum the sum of exp(score - Max).
type OnlineSoftmax struct{ Max, Sum float32 }

// NewOnlineSoftmax is the state before any score.
func NewOnlineSoftmax() OnlineSoftmax { return OnlineSoftmax{Max: negInf} }

// Block turns one block of scores into weights exp(score - Max) in place, after
// raising Max and rescaling the sum and the accumulator acc[d] of the blocks
// before. A block whose scores are all -Inf gives weights of 0.
func (s *OnlineSoftmax) Block(scores, acc []float32) {
	if m := Max(scores); m > s.Max {
		if s.Sum != 0 {
			c := exp32(s.Max - m)
			s.Sum *= c
			ScaleInto(acc, c)
		}
		s.Max = m
	}
	if s.Max == negInf {
		clear(scores)
		return
	}
	s.Sum += ExpSum(scores, scores, s.Max)
}

// Finish divides acc by the sum. With nothing seen acc becomes zero.
func (s *OnlineSoftmax) Finish(acc []float32) {
	if s.Sum == 0 {
		clear(acc)
		return
	}
	ScaleInto(acc, 1/s.Sum)
}
