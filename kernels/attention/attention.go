package attention

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// The attention primitives work on t keys or values of one KV head, for the g
// query rows that share the head (grouped-query attention). A row's result does
// not depend on g. Products and sums are float32. Queries come already scaled by 1/√d.
//
// Keys and values lie in groups of eight anywhere in the cache: at[j] is the number of the
// first of group j, so that (at[j]+8)·d elements or more are there. Keys are interleaved,
// [d][8], so that a vector element is a key and no score needs a horizontal sum; values
// stand one after another, [8][d].

// KeyGroup is the number of keys whose elements are interleaved.
const KeyGroup = 8

// Ahead names what will be read next and is prefetched: as many groups of vectors as the
// call itself reads, group j from vector At[j] of Data on. With fewer groups, like the
// zero value, nothing is prefetched. Results do not depend on it, and the memory need
// not exist.
type Ahead[T int8 | uint8 | uint16] struct {
	Data []T
	At   []int32
}

// ScoresF16 sets dst[i*ld + j] = q[i]·k[j] for i < g, j < t, with float16 keys
// k and queries q[g][d]. It may also set what follows in a row, up to as many
// scores as at has groups.
func ScoresF16(dst []float32, ld int, q []float32, k []uint16, at []int32, g, t, d int, next Ahead[uint16]) {
	if g == 0 || t == 0 {
		return
	}
	n := checkKeys(len(dst), len(k), ld, at, g, t, d)
	_ = q[:g*d]
	if scoresF16Fast(dst, ld, q, k, at, g, n, d, next) {
		return
	}
	for i := range g {
		for j, first := range at[:n] {
			row, keys := dst[i*ld+j*KeyGroup:][:KeyGroup], k[int(first)*d:]
			clear(row)
			for c, w := range q[i*d : (i+1)*d] {
				for l := range row {
					row[l] += w * vector.FromF16(keys[c*KeyGroup+l])
				}
			}
		}
	}
}

// checkKeys returns the number of groups that t keys take. It wants room for a
// whole number of them.
func checkKeys(dst, keys, ld int, at []int32, g, t, d int) (groups int) {
	groups = (t + KeyGroup - 1) / KeyGroup
	if groups*KeyGroup > ld && g > 1 || dst < (g-1)*ld+groups*KeyGroup {
		panic(fmt.Sprintf("kernels: scores of %d queries with %d keys, into %d with rows of %d", g, t, dst, ld))
	}
	_ = at[:groups]
	checkGroups(keys, at, KeyGroup, d)
	return groups
}

// checkGroups panics unless the groups are there, of the last one n vectors.
func checkGroups(elements int, at []int32, n, d int) {
	last := at[len(at)-1]
	least, most := last, last+int32(n)
	for _, first := range at[:len(at)-1] {
		least, most = min(least, first), max(most, first+KeyGroup)
	}
	if least < 0 || int(most)*d > elements {
		panic(fmt.Sprintf("kernels: groups of vectors of %d at %v in %d elements", d, at, elements))
	}
}

// StoreKeyF16 puts a key x[d] at place j of a group of keys [d][8].
func StoreKeyF16(group []uint16, j int, x []float32) {
	group = group[j : len(x)*KeyGroup]
	for i := storeKeyF16Fast(group, x); i < len(x); i++ {
		group[i*KeyGroup] = vector.ToF16(x[i])
	}
}

// StoreKeyQ8 puts a key x[d] at place j of a group of keys [d][8] and returns
// its scale; see QuantizeQ8.
func StoreKeyQ8(group []int8, j int, x []float32) (scale float32) {
	var codes [64]int8
	top := vector.AbsMax(x)
	for lo := 0; lo < len(x); lo += len(codes) {
		part := x[lo:min(lo+len(codes), len(x))]
		scale = quantizeQ8(codes[:len(part)], part, top)
		for i, c := range codes[:len(part)] {
			group[(lo+i)*KeyGroup+j] = c
		}
	}
	return scale
}

// AccumF16 sets acc[i] += Σ p[i*ld + j] · v[j] over j < t for i < g, with
// float16 values v and sums acc[g][d].
func AccumF16(acc []float32, p []float32, ld int, v []uint16, at []int32, g, t, d int, next Ahead[uint16]) {
	if g == 0 || t == 0 {
		return
	}
	_, _ = p[(g-1)*ld+t-1], acc[:g*d]
	at = checkValues(len(v), at, t, d)
	if accumF16Fast(acc, p, ld, v, at, g, t, d, next) {
		return
	}
	for j := range t {
		value := v[(int(at[j/KeyGroup])+j%KeyGroup)*d:][:d]
		for i := range g {
			row, w := acc[i*d:(i+1)*d], p[i*ld+j]
			for c, h := range value {
				row[c] += w * vector.FromF16(h)
			}
		}
	}
}

// checkValues gives the groups that t values take.
func checkValues(elements int, at []int32, t, d int) []int32 {
	at = at[:(t+KeyGroup-1)/KeyGroup]
	checkGroups(elements, at, t-(len(at)-1)*KeyGroup, d)
	return at
}

// ScoresQ8 does as ScoresF16 for int8 keys with one scale a key: key j is
// scale[j] · k[j].
func ScoresQ8(dst []float32, ld int, q []float32, k []int8, scale []float32, at []int32, g, t, d int, next Ahead[int8]) {
	if g == 0 || t == 0 {
		return
	}
	n := checkKeys(len(dst), len(k), ld, at, g, t, d)
	_ = q[:g*d]
	checkGroups(len(scale), at, KeyGroup, 1)
	if scoresQ8Fast(dst, ld, q, k, scale, at, g, n, d, next) {
		return
	}
	for i := range g {
		for j, first := range at[:n] {
			row, keys := dst[i*ld+j*KeyGroup:][:KeyGroup], k[int(first)*d:]
			clear(row)
			for c, w := range q[i*d : (i+1)*d] {
				for l := range row {
					row[l] += w * float32(keys[c*KeyGroup+l])
				}
			}
			for l := range row {
				row[l] *= scale[int(first)+l]
			}
		}
	}
}

// AccumQ8 does as AccumF16 for int8 values with one scale a value: value j is
// scale[j] · v[j].
func AccumQ8(acc []float32, p []float32, ld int, v []int8, scale []float32, at []int32, g, t, d int, next Ahead[int8]) {
	if g == 0 || t == 0 {
		return
	}
	_, _ = p[(g-1)*ld+t-1], acc[:g*d]
	at = checkValues(len(v), at, t, d)
	checkValues(len(scale), at, t, 1)
	if accumQ8Fast(acc, p, ld, v, scale, at, g, t, d, next) {
		return
	}
	for j := range t {
		n := int(at[j/KeyGroup]) + j%KeyGroup
		value := v[n*d : (n+1)*d]
		for i := range g {
			row, w := acc[i*d:(i+1)*d], p[i*ld+j]*scale[n]
			for c, b := range value {
				row[c] += w * float32(b)
			}
		}
	}
}

// QuantizeQ8 rounds one key or value to int8 with an absmax scale, which it
// returns: x[i] ≈ dst[i] · scale.
func QuantizeQ8(dst []int8, x []float32) (scale float32) {
	return quantizeQ8(dst[:len(x)], x, vector.AbsMax(x))
}

func quantizeQ8(dst []int8, x []float32, top float32) (scale float32) {
	if !(top >= vector.MinAbsMax && top <= math.MaxFloat32) {
		clear(dst)
		return 0
	}
	vector.RoundInt8(dst, x, 127/top)
	return top / 127
}

// Softmax is the running state of a softmax over blocks of scores (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", §3). Max is the
// largest score seen, Sum the sum of exp(score - Max).
type Softmax struct{ Max, Sum float32 }

// NewSoftmax returns the state before any score.
func NewSoftmax() Softmax { return Softmax{Max: float32(math.Inf(-1))} }

// SoftmaxBlock adds a block of scores of each row to its softmax. The first n[i]
// scores of row i become weights exp(score - Max) in place, after raising Max and
// rescaling the sum and the row's accumulator in acc[rows][d]. Before any score both must be zero. Rows of scores are ld
// apart and have room for n[i] rounded up to 8; what follows the weights there is lost.
// A row without any score above -Inf becomes NaN.
func SoftmaxBlock(rows []Softmax, scores []float32, ld int, n []int32, acc []float32, d int) {
	if len(rows) == 0 {
		return
	}
	n = n[:len(rows)]
	_, _ = scores[:len(rows)*ld], acc[:len(rows)*d]
	for _, n := range n {
		if cpu.RoundUp(int(n), KeyGroup) > ld {
			panic(fmt.Sprintf("kernels: softmax of %d scores in rows of %d", n, ld))
		}
	}
	if softmaxRowsFast(rows, scores, ld, n, acc, d) {
		return
	}
	for i, n := range n {
		if n > 0 {
			rows[i].block(scores[i*ld:i*ld+int(n)], acc[i*d:(i+1)*d])
		}
	}
}

func (s *Softmax) block(scores, acc []float32) {
	if m := vector.Max(scores); m > s.Max {
		c := vector.Exp(s.Max - m)
		s.Sum *= c
		vector.ScaleInto(acc, c)
		s.Max = m
	}
	s.Sum += vector.ExpSum(scores, scores, s.Max)
}

// Merge merges o and its accumulator, more, into s and acc: two softmaxes over
// different keys become one over all of them (Milakov and Gimelshein, §3.1). A state
// before any score changes nothing.
func (s *Softmax) Merge(acc []float32, o Softmax, more []float32) {
	nothing := NewSoftmax()
	switch {
	case o == nothing:
		return
	case *s == nothing:
		*s = o
		copy(acc, more)
		return
	}
	if o.Max > s.Max {
		c := vector.Exp(s.Max - o.Max)
		s.Sum *= c
		vector.ScaleInto(acc, c)
		s.Max = o.Max
	}
	w := vector.Exp(o.Max - s.Max)
	s.Sum += float32(w * o.Sum) // the conversion forbids a fused multiply-add
	vector.Axpy(acc, w, more)
}

// Finish sets dst to acc divided by the sum.
func (s *Softmax) Finish(dst, acc []float32) { vector.Scale(dst, acc, 1/s.Sum) }
