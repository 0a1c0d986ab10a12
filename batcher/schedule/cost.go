package schedule

import "math/bits"

// CostModel learns how long a step takes by the number of its tokens. A step's time is
// neither proportional to its tokens nor linear in them: one row is bound by
// reading the weights, a few by unpacking them, whole tiles by arithmetic. So
// it keeps the times of 1, 2, 4, 8, ... tokens, which are exponentially
// weighted means, and goes straight from one to the next.
//
// Every measurement also moves all of them a little, so that contexts that
// grow and machines that slow down are followed at the sizes not seen lately.
// Slow steps count for less than quick ones, and much quicker ones for more, so that the
// model learns how long a step takes when nothing else uses the processors.
type CostModel struct {
	knots [24]knot // knots[i]: steps of 2^i tokens
	known bool     // there has been a measurement
}

// knot is the time of a step of one size in seconds; 0: none of about that size was seen.
type knot struct {
	time  float64
	seen  int
	since int // steps since one of about that size
}

const (
	Forget     = 0.15 // least weight of a new measurement
	drift      = 0.03 // its weight for steps of other sizes
	SlowWeight = 0.2  // of these weights, for a step that took longer than expected
	Outlier    = 4.0  // a measurement further off than this factor is taken for one less far off
)

// Known reports whether there has been a measurement.
func (m *CostModel) Known() bool { return m.known }

// below returns the knot below n tokens, and how far n is on the way to the next.
func below(n int) (i int, far float64) {
	n = max(n, 1)
	i = min(bits.Len(uint(n))-1, len(CostModel{}.knots)-2)
	return i, float64(n-1<<i) / float64(int(1)<<i)
}

// Observe takes in a step of n tokens that took the given seconds.
func (m *CostModel) Observe(n int, took float64) {
	if n < 1 || took <= 0 {
		return
	}
	i, far := below(n)
	nearest := i
	if far > 0.5 {
		nearest++
	}
	if k := &m.knots[nearest]; k.seen == 0 || k.seen <= tried && took < m.Time(n) {
		k.time, k.seen = m.first(nearest, n, took), max(k.seen, 1)
		m.known = true
	}
	off := min(max(took/m.Time(n), 1/Outlier), Outlier) - 1
	least := max(Forget, -off)
	if off > 0 {
		off *= SlowWeight
	}
	for j := range m.knots {
		k, weight := &m.knots[j], 0.0
		switch j {
		case i:
			weight = 1 - far
		case i + 1:
			weight = far
		}
		if k.seen == 0 {
			continue
		}
		if k.since++; weight > 0 {
			k.seen, k.since = k.seen+1, 0
		}
		// Divided by the sum of squares, the weights of the two knots correct
		// what they say together of n by as much as one of them would.
		k.time *= 1 + off*max(drift, weight*max(least, 1/float64(k.seen+1))/(far*far+(1-far)*(1-far)))
	}
}

// first returns the time of knot i, of which a step of n tokens is the first measurement. It lies on the way to that from
// the size known below, since further rows are cheap; without one it is proportional.
func (m *CostModel) first(i, n int, took float64) float64 {
	size := float64(int(1) << i)
	for lo := i - 1; lo >= 0; lo-- {
		if k := &m.knots[lo]; k.seen > 0 {
			at := float64(int(1) << lo)
			return k.time + max(0, took-k.time)*(size-at)/(float64(n)-at)
		}
	}
	return took * size / float64(n)
}

// Time returns what a step of n tokens is expected to take in seconds. Beyond the
// sizes seen it is proportional to n, which errs on the side of those who wait.
func (m *CostModel) Time(n int) float64 {
	if n < 1 || !m.known {
		return 0
	}
	i, _ := below(n)
	lo, hi := i, i+1
	for lo >= 0 && m.knots[lo].seen == 0 {
		lo--
	}
	for hi < len(m.knots) && m.knots[hi].seen == 0 {
		hi++
	}
	at := func(i int) float64 { return float64(int(1) << i) }
	switch {
	case lo < 0:
		return m.knots[hi].time * float64(n) / at(hi)
	case hi == len(m.knots):
		return m.knots[lo].time * float64(n) / at(lo)
	}
	a, b := &m.knots[lo], &m.knots[hi]
	return a.time + (b.time-a.time)*(float64(n)-at(lo))/(at(hi)-at(lo))
}

// Optimistic returns Time, except for a size of which too little is known, or nothing of late. For that
// it is the time of the size before, as if further tokens were free: so that size
// is tried, and then the next.
func (m *CostModel) Optimistic(n int) float64 {
	i, far := below(n)
	if far > 0.5 {
		i++
	}
	if i == 0 || m.knots[i].seen >= tried && m.knots[i].since < stale || m.knots[i-1].seen < tried {
		return m.Time(n)
	}
	return min(m.Time(n), m.knots[i-1].time)
}

// Tried reports whether enough steps of about n tokens were seen to hold others against them.
func (m *CostModel) Tried(n int) bool {
	i, far := below(n)
	if far > 0.5 {
		i++
	}
	return m.knots[i].seen > tried
}

// tried steps make a size known: the first may have met cold caches.
const tried = 2

// stale is the number of steps after which a size is tried again: others may have used the processors.
const stale = 256
