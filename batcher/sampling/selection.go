package sampling

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// runLen is the number of tokens that are looked at together: their largest
// number shows whether to look closer, their sum whether a draw falls among them.
const runLen = 1024

// ranks holds a number a token, weights or logits, to select tokens by.
type ranks struct {
	x    []float32 // [vocabulary]
	tops []float32 // largest number of each run
}

// window is a range of numbers: above lo, up to hi.
type window struct{ lo, hi float32 }

func (w window) has(v float32) bool { return v > w.lo && v <= w.hi }

// run returns run i, its bounds in x.
func (r *ranks) run(i int) (lo, hi int) { return i * runLen, min((i+1)*runLen, len(r.x)) }

// sumRun returns the sum and the number of those in w of run i.
func (r *ranks) sumRun(i int, w window) (float32, int) {
	if !(r.tops[i] > w.lo) {
		return 0, 0
	}
	lo, hi := r.run(i)
	return vector.SumWithin(r.x[lo:hi], w.lo, w.hi)
}

// sum returns the sum and the number of those in w.
func (r *ranks) sum(w window) (sum float64, n int) {
	for i := range r.tops {
		part, k := r.sumRun(i, w)
		sum, n = sum+float64(part), n+k
	}
	return sum, n
}

// nested are windows by width: each lies within those after it.
type nested func(width uint32) window

// best returns the windows from the upper end of w down, the widest being w.
func (w window) best() (in nested, widest uint32) {
	top := ordered(w.hi)
	return func(width uint32) window { return window{unordered(top - width), w.hi} }, top - ordered(w.lo)
}

// around returns the windows in w around e to the power of mean, by their distance
// from it in logarithms.
func (w window) around(mean float64) (in nested, widest uint32) {
	const resolution = 1 << 20 // widths a unit; nothing is e^128 times more than another
	return func(width uint32) window {
		d := float64(width) / resolution
		return window{max(w.lo, float32(math.Exp(mean-d))), min(w.hi, float32(math.Exp(mean+d)))}
	}, 128 * resolution
}

// ordered maps numbers to integers of the same order, neighbours to neighbours.
func ordered(v float32) uint32 {
	bits := math.Float32bits(v)
	return bits ^ (uint32(int32(bits)>>31) | 1<<31)
}

func unordered(o uint32) float32 {
	return math.Float32frombits(o ^ (uint32(int32(^o)>>31) | 1<<31))
}

// found is a token and its number.
type found struct {
	id int32
	x  float32
}

// firstOf moves the n largest of list to its beginning, in order, and returns them. Most of a
// vocabulary is passed over at a glance, where sorting would take longer than the model's step.
func firstOf(list []found, n int) []found {
	n = min(n, len(list))
	order := func(a, b found) int { return cmp.Or(cmp.Compare(b.x, a.x), cmp.Compare(a.id, b.id)) }
	first := list[:n]
	slices.SortFunc(first, order)
	for _, f := range list[n:] {
		if n == 0 || order(f, first[n-1]) > 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(first, f, order)
		copy(first[i+1:], first[i:])
		first[i] = f
	}
	return first
}

// few is the number of tokens whose sorting takes as long as another pass over all
// tokens.
const few = 128

// appendTo lists the tokens of w in order.
func (r *ranks) appendTo(list []found, w window) []found {
	for i := range r.tops {
		_, n := r.sumRun(i, w)
		lo, _ := r.run(i)
		for id := lo; n > 0; id++ {
			if x := r.x[id]; w.has(x) {
				list = append(list, found{int32(id), x})
				n--
			}
		}
	}
	return list
}

// selector narrows windows to the best tokens. It keeps its memory between uses.
type selector struct {
	found []found   // tokens in doubt
	order []float32 // the largest of each run, sorted
}

// fewest narrows the widest of the windows to the best tokens that reach count or a share of the sum. The best have the
// smallest distance, then the lowest id; narrower windows hold smaller distances. It returns a window that holds them,
// and what else lies in it: tokens as far off as the last one. It halves the width until few tokens are in doubt, and
// sorts these.
func (s *selector) fewest(r *ranks, in nested, widest uint32, count int, share float64, distance func(x float32) float64) (window, []found) {
	all, total := r.sum(in(widest))
	if total <= count && !(share < 1) {
		return in(widest), nil
	}
	reaches := func(sum float64, n int) bool { return n >= count || share < 1 && sum >= share*all }
	lo, hi := uint32(0), widest // in(lo) falls short
	sum, n := 0.0, 0            // of in(lo)
	for hi-lo > 1 && total-n > few {
		mid := lo + (hi-lo)/2
		if part, k := r.sum(in(mid)); reaches(part, k) {
			hi, total = mid, k
		} else {
			lo, sum, n = mid, part, k
		}
	}
	inner, outer := in(lo), in(hi)
	s.found = r.appendTo(s.found[:0], window{outer.lo, inner.lo})
	s.found = r.appendTo(s.found, window{max(inner.lo, inner.hi), outer.hi})
	slices.SortFunc(s.found, func(a, b found) int {
		return cmp.Or(cmp.Compare(distance(a.x), distance(b.x)), cmp.Compare(a.id, b.id))
	})
	kept, taken := inner, 0
	if n == 0 {
		kept = window{float32(math.Inf(1)), negInf}
	}
	for ; taken < len(s.found) && (n == 0 || !reaches(sum, n)); taken++ {
		x := s.found[taken].x
		kept.lo, kept.hi = min(kept.lo, math.Nextafter32(x, negInf)), max(kept.hi, x)
		sum, n = sum+float64(x), n+1
	}
	return kept, slices.DeleteFunc(s.found[taken:], func(f found) bool { return !kept.has(f.x) })
}

// bestOf narrows w, which ends at the largest number, to a window that still
// holds the best count: that many runs have one each.
func (s *selector) bestOf(r *ranks, w window, count int) window {
	if count <= len(r.tops) {
		s.order = append(s.order[:0], r.tops...)
		slices.Sort(s.order)
		w.lo = max(w.lo, math.Nextafter32(s.order[len(s.order)-count], negInf))
	}
	return w
}

var negInf = float32(math.Inf(-1))
