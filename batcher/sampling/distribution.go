package sampling

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// A row of logits becomes a distribution as weights e^((logit-max)/temperature) ≤ 1, zero where a logit is no number.
// The parameters allow a window of weights. Tokens are never listed or moved, except the few that are in doubt at a
// window's edge, so a flat distribution costs hardly more than a peaked one.

// cuts holds the parameters that weights and their window come from.
type cuts struct {
	inv, minP, sigmas, typicalP, topP float32
	topK                              int
}

// held says what a sampler's weights are.
type held struct {
	own bool // of the row that draws share
	cuts
	window
	total float64 // of the weights in it
}

// distribution is a row's, as weights. It keeps its memory between rows.
type distribution struct {
	weights ranks
	sums    []float64 // of each run of weights
	held    held
	selector
}

// weigh fills d.weights and d.sums from row, whose largest number is best.
func (d *distribution) weigh(row []float32, best, inv float32) (total float64) {
	d.held.own = false
	r := &d.weights
	r.x = slices.Grow(r.x[:0], len(row))[:len(row)]
	r.tops, d.sums = r.tops[:0], d.sums[:0]
	for lo := 0; lo < len(row); lo += runLen {
		w := r.x[lo:min(lo+runLen, len(row))]
		vector.Scale(w, row[lo:lo+len(w)], inv)
		sum := vector.ExpSum(w, w, best*inv)
		if sum != sum { // the row holds a NaN
			sum = 0
			for i, v := range w {
				if v != v {
					w[i] = 0
				}
				sum += w[i]
			}
		}
		r.tops = append(r.tops, vector.Max(w))
		d.sums = append(d.sums, float64(sum))
		total += float64(sum)
	}
	return total
}

// truncate returns the window of what min-p, top-n-sigma, top-k, typical-p and top-p allow.
// best is the largest logit's token.
func (d *distribution) truncate(row []float32, best int32, p *Params) window {
	w := window{0, d.weights.x[best]}
	if p.MinP > 0 {
		w.lo = math.Nextafter32(p.MinP*w.hi, 0)
	}
	if p.TopNSigma > 0 { // a distance of logits is a ratio of weights
		lo := w.hi * float32(math.Exp(-float64(p.TopNSigma)*deviation(row)/float64(p.Temperature)))
		w.lo = max(w.lo, math.Nextafter32(lo, 0))
	}
	if p.TopK > 0 {
		w = d.heaviest(d.bestOf(&d.weights, w, p.TopK), p.TopK, 1)
	}
	if on(p.TypicalP) {
		w = d.typical(w, float64(p.TypicalP), d.expectation(w, row, best, 1/p.Temperature))
	}
	if on(p.TopP) {
		w = d.heaviest(w, math.MaxInt, float64(p.TopP))
	}
	return w
}

// heaviest keeps the heaviest tokens that reach count or a share of the weight.
func (d *distribution) heaviest(w window, count int, share float64) window {
	in, widest := w.best()
	return d.exclude(d.fewest(&d.weights, in, widest, count, share, descending))
}

func descending(x float32) float64 { return -float64(x) }

// exclude takes the weight of tokens that lie in w by accident.
func (d *distribution) exclude(w window, others []found) window {
	for _, f := range others {
		d.weights.x[f.id] = 0
	}
	return w
}

// typical keeps the tokens whose surprise is nearest to its expectation until
// they weigh a share of all (Meister et al. 2023, "Locally typical sampling").
// Surprises are -ln weight but for a constant; mean is the expected ln weight.
func (d *distribution) typical(w window, share, mean float64) window {
	in, widest := w.around(mean)
	return d.exclude(d.fewest(&d.weights, in, widest, math.MaxInt, share, func(x float32) float64 {
		return math.Abs(math.Log(float64(x)) - mean)
	}))
}

// expectation returns the mean of ln weight in w, where weights come from row.
func (d *distribution) expectation(w window, row []float32, best int32, inv float32) float64 {
	mass, sum := 0.0, 0.0
	for i := range d.weights.tops {
		part, n := d.weights.sumRun(i, w)
		if n == 0 {
			continue
		}
		mass += float64(part)
		lo, hi := d.weights.run(i)
		if n == hi-lo {
			sum += float64(vector.Dot(d.weights.x[lo:hi], row[lo:hi])) - float64(part)*float64(row[best])
			continue
		}
		for j, x := range d.weights.x[lo:hi] {
			if w.has(x) {
				sum += float64(x) * (float64(row[lo+j]) - float64(row[best]))
			}
		}
	}
	return sum / mass * float64(inv)
}

// hold fills d.weights, d.sums and d.held for row and p, unless they are already p's
// and belong to the row that draws share, own.
func (d *distribution) hold(row []float32, own bool, best int32, p *Params) {
	c := cuts{1 / p.Temperature, p.MinP, p.TopNSigma, p.TypicalP, p.TopP, p.TopK}
	h := &d.held
	if own && h.own && h.cuts == c {
		return
	}
	total := d.weigh(row, row[best], c.inv)
	*h = held{own, c, window{0, float32(math.Inf(1))}, total}
	if !p.truncates() {
		return
	}
	h.window = d.truncate(row, best, p)
	d.count()
}

// count fills d.sums and the total from what the window holds.
func (d *distribution) count() {
	d.held.total = 0
	for i := range d.sums {
		part, _ := d.weights.sumRun(i, d.held.window)
		d.sums[i] = float64(part)
		d.held.total += d.sums[i]
	}
}

// excludeTop leaves out all but the least likely of the tokens that reach a probability, if there are two or more
// (XTC, "exclude top choices", p-e-w 2024). What is held is no longer what others that draw from the row hold.
func (d *distribution) excludeTop(threshold float32) {
	d.held.own = false
	reach := float32(float64(threshold) * d.held.total)
	w := window{max(d.held.window.lo, math.Nextafter32(reach, negInf)), d.held.window.hi}
	least, n := float32(math.Inf(1)), 0
	for i := range d.weights.tops {
		if !(d.weights.tops[i] > w.lo) {
			continue
		}
		lo, hi := d.weights.run(i)
		for _, x := range d.weights.x[lo:hi] {
			if w.has(x) {
				least, n = min(least, x), n+1
			}
		}
	}
	if n > 1 {
		d.held.hi = least
		d.count()
	}
}

// deviation returns the standard deviation of a row's finite logits.
func deviation(row []float32) float64 {
	n, sum, squares := 0.0, 0.0, 0.0
	for _, x := range row {
		if v := float64(x); v-v == 0 { // neither infinite nor no number
			n, sum, squares = n+1, sum+v, squares+v*v
		}
	}
	return math.Sqrt(max(0, squares/n-sum/n*(sum/n)))
}

// pick returns the token at which the cumulative sum of what w allows passes at.
func (d *distribution) pick(w window, at float64, best int32) int32 {
	i := 0
	for i < len(d.sums)-1 && at >= d.sums[i] {
		at -= d.sums[i]
		i++
	}
	lo, hi := d.weights.run(i)
	last := best // rounding may carry the sum past the end
	for j, v := range d.weights.x[lo:hi] {
		if w.has(v) {
			last = int32(lo + j)
			if at -= float64(v); at < 0 {
				break
			}
		}
	}
	return last
}

// certainty returns KL(U‖P) of the finite logits, whose log-sum-exp is norm: the
// mean of ln(1/n) - (logit - norm).
func certainty(r *ranks, norm float32) float32 {
	sum, n := r.sum(window{negInf, math.MaxFloat32})
	return float32(float64(norm) - sum/float64(n) - math.Log(float64(n)))
}
