package batcher

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels"
)

// expFloor is the exponent below which a token is not worth gathering: at
// e^-40 a vocabulary of a million adds less than float32 can hold.
const expFloor float32 = -40

// scaled is a row of logits as a distribution: token i has the exponent
// (row[i]-max)·inv ≤ 0 and, if that is above floor, the weight e to its power.
// NaN has none.
type scaled struct {
	row      []float32
	own      bool // row is the one that draws share
	max, inv float32
	floor    float32
}

// runLen is the number of tokens that are looked at together: their largest
// logit tells whether to look closer, their sum whether a draw falls among them.
const runLen = 512

// run is run i, its bounds in the row.
func (x *scaled) run(i int) (lo, hi int) { return i * runLen, min((i+1)*runLen, len(x.row)) }

func (x *scaled) runs() int { return (len(x.row) + runLen - 1) / runLen }

// weigh sets s.weights to those of run i, floor aside, and returns their sum.
func (s *sampler) weigh(x *scaled, i int) float64 {
	lo, hi := x.run(i)
	w := s.weights[:hi-lo]
	s.known.weighed = nil
	kernels.Scale(w, x.row[lo:hi], x.inv)
	sum := kernels.ExpSum(w, w, x.max*x.inv)
	if sum == sum {
		return float64(sum)
	}
	sum = 0 // the row holds a NaN
	for i, v := range w {
		if v != v {
			w[i] = 0
		}
		sum += w[i]
	}
	return float64(sum)
}

// total sums all weights, floor aside.
func (s *sampler) total(x *scaled) *masses {
	k := &s.known
	m := &k.other
	if x.own {
		for i := range k.masses[:k.summed] {
			if k.masses[i].inv == x.inv {
				return &k.masses[i]
			}
		}
		m = &k.masses[min(k.summed, len(k.masses)-1)]
		k.summed = min(k.summed+1, len(k.masses))
	}
	m.inv, m.sum, m.runs = x.inv, 0, m.runs[:0]
	for i := range x.runs() {
		part := s.weigh(x, i)
		m.runs = append(m.runs, part)
		m.sum += part
	}
	return m
}

// pick draws from the whole distribution by inverting its cumulative sum at u.
func (s *sampler) pick(x *scaled, u float64, best int32) int32 {
	m := s.total(x)
	at, i := u*m.sum, 0
	for i < len(m.runs)-1 && at >= m.runs[i] {
		at -= m.runs[i]
		i++
	}
	if k := &s.known; k.weighed != m || k.run != i || !x.own {
		s.weigh(x, i)
		k.weighed, k.run = m, i
	}
	lo, hi := x.run(i)
	last := best // rounding may carry the sum past the end
	for j, w := range s.weights[:hi-lo] {
		if w > 0 {
			last = int32(lo + j)
			if at -= float64(w); at < 0 {
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

// better orders by key, then by id; keys are numbers.
func better(a, b found) bool { return a.key > b.key || a.key == b.key && a.id < b.id }

// byRank is better for sorting.
func byRank(a, b found) int {
	switch {
	case better(a, b):
		return -1
	case better(b, a):
		return 1
	}
	return 0
}

// truncate leaves in s.found what min-p, top-k, typical-p and top-p allow.
func (s *sampler) truncate(x *scaled, p *Params) {
	switch {
	case p.TopK > 0:
		s.gatherTop(x, p.TopK)
	case p.MinP > 0 || on(p.TypicalP):
		s.gather(x)
	default:
		s.gatherMass(x, float64(p.TopP))
		return
	}
	if on(p.TypicalP) {
		s.typical(float64(p.TypicalP))
	}
	if on(p.TopP) {
		s.found = s.found[:prefix(s.found, len(s.found), float64(p.TopP)*mass(s.found))]
	}
}

// gather finds all tokens that have a weight.
func (s *sampler) gather(x *scaled) {
	s.found = s.found[:0]
	s.above(x, x.floor, func(id int32, e float32) float32 {
		s.found = append(s.found, found{id: id, key: e})
		return x.floor
	})
	s.weighFound()
}

// gatherMass finds the fewest tokens that weigh p of all together. Those at
// or below a weight w weigh len·w together at most, so none below
// (1-p)·total/len is needed; mostly a far shorter list will do.
func (s *sampler) gatherMass(x *scaled, p float64) {
	need := p * s.total(x).sum
	lowest := float32(math.Log((1-p)/p*need/float64(len(x.row)))) - 1e-3
	for floor := float32(-3); ; floor *= 1.5 {
		x.floor = max(floor, lowest)
		s.gather(x)
		if x.floor == lowest || mass(s.found) >= need {
			break
		}
	}
	s.found = s.found[:prefix(s.found, len(s.found), need)]
}

// gatherTop finds the k best tokens that have a weight. It keeps a few more
// than k and now and then drops all but the best, which raises the bar for the rest.
func (s *sampler) gatherTop(x *scaled, k int) {
	s.found = s.found[:0]
	k = min(k, len(x.row))
	room := 2*k + 256
	bar := x.floor
	s.above(x, bar, func(id int32, e float32) float32 {
		s.found = append(s.found, found{id: id, key: e})
		if len(s.found) == room {
			s.found = s.found[:prefix(s.found, k, math.Inf(1))]
			bar = worst(s.found)
		}
		return bar
	})
	s.found = s.found[:prefix(s.found, k, math.Inf(1))]
	s.weighFound()
}

// above calls add for the tokens whose exponent is above bar, in order; add
// returns the bar for those that follow. Runs below it are skipped whole.
func (s *sampler) above(x *scaled, bar float32, add func(id int32, e float32) float32) {
	for i := range x.runs() {
		lo, hi := x.run(i)
		if (kernels.Max(x.row[lo:hi])-x.max)*x.inv <= bar {
			continue
		}
		for j, v := range x.row[lo:hi] {
			if e := (v - x.max) * x.inv; e > bar {
				bar = add(int32(lo+j), e)
			}
		}
	}
}

// weighFound sets the weights of s.found from their exponents.
func (s *sampler) weighFound() {
	s.known.weighed = nil
	for lo := 0; lo < len(s.found); lo += runLen {
		part := s.found[lo:min(lo+runLen, len(s.found))]
		w := s.weights[:len(part)]
		for i := range part {
			w[i] = part[i].key
		}
		kernels.ExpSum(w, w, 0)
		for i := range part {
			part[i].weight = w[i]
		}
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
	slices.SortFunc(f[lo:hi], byRank)
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
	if better(b, a) {
		a, b = b, a
	}
	pivot := b // the median is not the best, so something is better than it
	if better(c, a) {
		pivot = a
	} else if better(c, b) {
		pivot = c
	}
	n := 0
	for i := range f {
		if better(f[i], pivot) {
			f[n], f[i] = f[i], f[n]
			n++
		}
	}
	return n
}

// certainty is KL(U‖P) of the finite logits, whose log-sum-exp is norm: the
// mean of ln(1/n) - (logit - norm).
func certainty(row []float32, norm float32) float32 {
	sum, n := 0.0, 0
	for _, v := range row {
		if v > negInf { // false for NaN
			sum += float64(v)
			n++
		}
	}
	return float32(float64(norm) - sum/float64(n) - math.Log(float64(n)))
}

// report fills the log-probability of tok, and its best alternatives, from
// unmodified logits.
func (s *sampler) report(tok *Token, row []float32, top int) {
	best := s.best(row, true)
	if best < 0 || math.IsInf(float64(row[best]), 1) {
		tok.Logprob = negInf
		return
	}
	x := &scaled{row: row, own: true, max: row[best], inv: 1, floor: negInf}
	k := &s.known
	if !k.normed {
		k.normed, k.norm = true, x.max+float32(math.Log(s.total(x).sum))
	}
	norm := k.norm
	if tok.Logprob = row[tok.ID] - norm; tok.Logprob != tok.Logprob {
		tok.Logprob = negInf
	}
	if !k.certain {
		k.certain, k.certainty = true, certainty(row, norm)
	}
	tok.Certainty = k.certainty
	if top == 0 {
		return
	}
	s.gatherTop(x, top)
	slices.SortFunc(s.found, byRank)
	tok.Top = make([]TokenLogprob, len(s.found))
	for i, f := range s.found {
		tok.Top[i] = TokenLogprob{ID: f.id, Logprob: row[f.id] - norm}
	}
}
