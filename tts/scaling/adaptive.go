package scaling

import "math"

// Adaptive buys whole answers in rounds, each of as many as are worth most beyond their price. It ends once
// the leading answer is likely enough the most frequent one (Aggarwal et al. 2023, "Adaptive-Consistency",
// Beta criterion). N is the most.
type Adaptive struct {
	On        bool
	First     int     // candidates of the first round; 0: 3, or N if that is less
	Threshold float64 // probability that the leading answer stays ahead, which is enough; 0: 0.95
	Price     float64 // of one answer decoded alone, as a probability to answer otherwise; 0: 0.01
	// StepCost has the costs of an engine step with 1, 2, 4, 8, ... rows, relative to one row. It is linear
	// between them, and goes on as at the end; none: DefaultStepCost.
	StepCost []float64
}

// DefaultStepCost returns what lies between two machines' steps of a model with 1 B
// parameters (docs/performance.md, "Whole models").
func DefaultStepCost() []float64 { return []float64{1, 1.25, 1.75, 2.75, 4.75, 9} }

// Cost returns what a step with that many rows, at least 1, costs in steps with one.
func (a *Adaptive) Cost(rows int) float64 {
	curve, at := a.StepCost, 0
	for at < len(curve)-2 && rows > 2<<at {
		at++
	}
	if len(curve) == 1 {
		return curve[0] * float64(rows)
	}
	lo, hi := float64(int(1)<<at), float64(int(2)<<at)
	return curve[at] + (curve[at+1]-curve[at])*(float64(rows)-lo)/(hi-lo)
}

// Enough tells whether an answer with the first number of votes leads one with the second surely enough.
func (a *Adaptive) Enough(first, second int) bool { return Majority(first, second) >= a.Threshold }

// WorthVotes returns how many further votes, most at most, gain most beyond their price, where the closest
// two answers have so many; 0: none is worth it.
func (a *Adaptive) WorthVotes(first, second, most int) int {
	return a.Worth(func(m int) float64 { return expectedGain(first, second, m) }, most)
}

// Worth returns how many further answers, most at most, gain most beyond their price; 0: none is worth it.
func (a *Adaptive) Worth(gain func(m int) float64, most int) (n int) {
	best := 0.0
	for m := 1; ; m = min(2*m, most) {
		if net := gain(m) - a.Price*a.Cost(m); net > best {
			n, best = m, net
		}
		if m >= most {
			return n
		}
	}
}

// Majority returns the probability that the first of two answers is the more frequent one, after a and b
// votes and from a uniform prior. It is P(p > 1/2) for p ~ Beta(a+1, b+1), which is P(k ≤ a) for k of
// a+b+1 fair coins.
func Majority(a, b int) float64 {
	n := a + b + 1
	p, term := 0.0, math.Exp2(-float64(n)) // of k = 0
	for k := range a + 1 {
		p += term
		term *= float64(n-k) / float64(k+1)
	}
	return p
}

// expectedGain returns how much m further votes are expected to raise the probability of having the more frequent of two
// answers. It counts from a and b votes and a uniform prior (preposterior analysis, Raiffa & Schlaifer 1961). It is 0 if
// the votes cannot change which answer leads.
func expectedGain(a, b, m int) float64 {
	// Of the m votes, i are for the first with a Beta-binomial probability. The leading one is then right
	// with the probability of at most so many heads of n coins.
	n := a + b + m + 1
	tail, coin := 0.0, math.Exp2(-float64(n))
	p := 1.0 // of i = 0
	for j := range m {
		p *= float64(b+1+j) / float64(a+b+2+j)
	}
	sum := 0.0
	for k := range a + m + 1 {
		tail += coin
		coin *= float64(n-k) / float64(k+1)
		if i := k - a; i >= 0 {
			sum += p * max(tail, 1-tail)
			p *= float64(m-i) / float64(i+1) * float64(a+1+i) / float64(b+m-i)
		}
	}
	return max(0, sum-Majority(a, b))
}
