package batcher

import (
	"cmp"
	"math"
	"slices"
)

// expFloor is the exponent below which a token's weight is taken to be zero:
// at e^-40 a vocabulary of a million adds less than float32 can hold.
const expFloor float32 = -40

// scaled is a row of logits as a distribution: token i has the exponent
// (row[i]-max)·inv ≤ 0 and, unless that is at or below floor, the weight e to
// its power. NaN has none.
type scaled struct {
	row      []float32
	max, inv float32
	floor    float32
}

// runLen is the number of tokens that are summed apart, so that a draw has to
// look into one run only.
const runLen = 512

// total is the sum of all weights; sums, if not nil, takes those of the runs.
func (x scaled) total(sums *[]float64) float64 {
	z := 0.0
	for lo := 0; lo < len(x.row); lo += runLen {
		part := float32(0)
		for _, v := range x.row[lo:min(lo+runLen, len(x.row))] {
			if e := (v - x.max) * x.inv; e > x.floor {
				part += exp(e)
			}
		}
		z += float64(part)
		if sums != nil {
			*sums = append(*sums, float64(part))
		}
	}
	return z
}

// pick draws from the whole distribution by inverting its cumulative sum at u.
func (s *sampler) pick(x scaled, u float64, best int32) int32 {
	s.sums = s.sums[:0]
	at := u * x.total(&s.sums)
	run := 0
	for run < len(s.sums)-1 && at >= s.sums[run] {
		at -= s.sums[run]
		run++
	}
	lo := run * runLen
	last := best // rounding may carry the sum past the end
	for i, v := range x.row[lo:min(lo+runLen, len(x.row))] {
		if e := (v - x.max) * x.inv; e > x.floor {
			last = int32(lo + i)
			if at -= float64(exp(e)); at < 0 {
				break
			}
		}
	}
	return last
}

// found is a token that survived so far.
type found struct {
	id     int32
	key    float32 // what it is ranked by, larger is better
	weight float32
}

// better orders by key, then by id.
func better(a, b found) int {
	return cmp.Or(cmp.Compare(b.key, a.key), cmp.Compare(a.id, b.id))
}

// truncate leaves in s.found what top-k, typical-p and top-p allow.
func (s *sampler) truncate(x scaled, p *Params) {
	if p.TopK > 0 {
		s.gatherTop(x, p.TopK)
	} else {
		if !on(p.TypicalP) {
			// The tokens at or below a weight w weigh len·w together at most,
			// so none below (1-p)·total/len is needed to reach p·total.
			z := x.total(nil)
			cut := math.Log((1-float64(p.TopP))*z/float64(len(x.row))) - 1e-3
			x.floor = max(x.floor, float32(cut))
			s.gather(x)
			s.found = s.found[:prefix(s.found, len(s.found), float64(p.TopP)*z)]
			return
		}
		s.gather(x)
	}
	if on(p.TypicalP) {
		s.typical(float64(p.TypicalP))
	}
	if on(p.TopP) {
		s.found = s.found[:prefix(s.found, len(s.found), float64(p.TopP)*mass(s.found))]
	}
}

// gather finds all tokens that have a weight.
func (s *sampler) gather(x scaled) {
	s.found = s.found[:0]
	for i, v := range x.row {
		if e := (v - x.max) * x.inv; e > x.floor {
			s.found = append(s.found, found{id: int32(i), key: e, weight: exp(e)})
		}
	}
}

// gatherTop finds the k best tokens that have a weight. It keeps a few more
// than k and now and then drops all but the best, which raises the bar for the rest.
func (s *sampler) gatherTop(x scaled, k int) {
	s.found = s.found[:0]
	k = min(k, len(x.row))
	room := 2*k + 256
	bar := x.floor
	for i, v := range x.row {
		e := (v - x.max) * x.inv
		if !(e > bar) {
			continue
		}
		s.found = append(s.found, found{id: int32(i), key: e})
		if len(s.found) == room {
			s.found = s.found[:prefix(s.found, k, math.Inf(1))]
			bar = worst(s.found)
		}
	}
	s.found = s.found[:prefix(s.found, k, math.Inf(1))]
	for i := range s.found {
		s.found[i].weight = exp(s.found[i].key)
	}
}

// worst is the smallest key.
func worst(f []found) float32 {
	w := f[0].key
	for i := range f {
		w = min(w, f[i].key)
	}
	return w
}

// mass is the sum of weights.
func mass(f []found) float64 {
	m := 0.0
	for i := range f {
		m += float64(f[i].weight)
	}
	return m
}

// typical keeps the tokens whose surprise is nearest to its expectation until
// they weigh p of all (Meister et al. 2023, "Locally typical sampling").
func (s *sampler) typical(p float64) {
	z, mean := mass(s.found), 0.0
	for _, f := range s.found {
		mean += float64(f.weight) * float64(f.key)
	}
	// With surprise = ln z - key, its expectation is the entropy ln z - mean/z.
	mean /= z
	for i := range s.found {
		f := &s.found[i]
		f.key = -float32(math.Abs(float64(f.key) - mean))
	}
	s.found = s.found[:prefix(s.found, len(s.found), p*z)]
	for i := range s.found { // rank by probability again
		s.found[i].key = s.found[i].weight
	}
}

// pickFound draws from f by inverting its cumulative sum at u.
func pickFound(f []found, u float64) int32 {
	at := u * mass(f)
	for i := range f {
		if at -= float64(f[i].weight); at < 0 {
			return f[i].id
		}
	}
	return f[len(f)-1].id
}

// prefix reorders f so that its best tokens come first, and returns how many
// of them it takes to reach count tokens or a sum of weights. The order within
// them is arbitrary but depends on f alone. Expected time is linear.
func prefix(f []found, count int, weight float64) int {
	if count >= len(f) && math.IsInf(weight, 1) {
		return len(f)
	}
	lo, hi := 0, len(f) // f[:lo] is in, f[hi:] is out
	for depth := 0; hi-lo > 16; depth++ {
		if depth == 64 { // a sequence of bad pivots
			break
		}
		mid := partition(f[lo:hi]) + lo
		sum := mass(f[lo:mid])
		if mid >= count || sum >= weight {
			hi = mid
		} else {
			weight -= sum
			lo = mid
		}
	}
	slices.SortFunc(f[lo:hi], better)
	for lo < hi && lo < count {
		weight -= float64(f[lo].weight)
		lo++
		if weight <= 0 {
			break
		}
	}
	return lo
}

// partition splits f, of three elements at least, into a better and a worse
// part, neither empty, and returns the length of the better one.
func partition(f []found) int {
	a, b, c := f[0], f[len(f)/2], f[len(f)-1]
	if better(a, b) > 0 {
		a, b = b, a
	}
	pivot := b // the median is not the best, so something is better than it
	if better(c, a) < 0 {
		pivot = a
	} else if better(c, b) < 0 {
		pivot = c
	}
	n := 0
	for i := range f {
		if better(f[i], pivot) < 0 {
			f[n], f[i] = f[i], f[n]
			n++
		}
	}
	return n
}

// report fills the log-probability of tok, and its best alternatives, from
// unmodified logits.
func (s *sampler) report(tok *Token, row []float32, top int) {
	best := argmax(row)
	if best < 0 || math.IsInf(float64(row[best]), 1) {
		tok.Logprob = negInf
		return
	}
	x := scaled{row: row, max: row[best], inv: 1, floor: expFloor}
	norm := x.max + float32(math.Log(x.total(nil)))
	if tok.Logprob = row[tok.ID] - norm; tok.Logprob != tok.Logprob {
		tok.Logprob = negInf
	}
	if top == 0 {
		return
	}
	x.floor = negInf
	s.gatherTop(x, top)
	slices.SortFunc(s.found, better)
	tok.Top = make([]TokenLogprob, len(s.found))
	for i, f := range s.found {
		tok.Top[i] = TokenLogprob{ID: f.id, Logprob: row[f.id] - norm}
	}
}

// exp is e^x for x in [expFloor, 0] within 2e-7 of it, relative: 2^n times a
// polynomial on [-½, ½]·ln 2 (coefficients of Cephes' expf).
func exp(x float32) float32 {
	n := float32(int32(x*math.Log2E - 0.5))
	r := x - n*0.693359375
	r += n * 2.12194440e-4
	y := float32(1.9875691500e-4)
	y = y*r + 1.3981999507e-3
	y = y*r + 8.3334519073e-3
	y = y*r + 4.1665795894e-2
	y = y*r + 1.6666665459e-1
	y = y*r + 5.0000001201e-1
	y = y*r*r + r + 1
	return y * math.Float32frombits(uint32(int32(n)+127)<<23)
}
