package profile

import (
	"math"
	"sync"
	"time"
)

// Forecast learns the factor by which answers take longer than a profile and an engine's pace say, because of queues, other
// engines and other programs. It keeps a mean and a mean deviation as TCP does of round trips (Jacobson 1988). Its knowledge
// fades, so that one bad minute does not refuse requests for good. Its methods may be called at once.
type Forecast struct {
	mu        sync.Mutex
	mean, dev float64 // logarithms of factors
	at        time.Time
}

const (
	halfLife  = 2 * time.Second // of what was learnt
	unlearnt  = 0.1             // deviation, in any case
	sureOf    = 1.0             // deviations above the mean, which most answers do not exceed
	mostLearn = 5.0             // logarithm of the largest factor
)

// Correct returns what an answer is expected to take that should take base, and what most do
// not exceed: the deadline ends the others. A nil Forecast corrects nothing.
func (f *Forecast) Correct(base time.Duration, now time.Time) (mean, sure time.Duration) {
	if f == nil {
		return base, base
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m, d := f.faded(now)
	scale := func(log float64) time.Duration { return time.Duration(float64(base) * math.Exp(log)) }
	return scale(m), scale(m + sureOf*(d+unlearnt))
}

// Observe takes in that an answer which should have taken base took took.
func (f *Forecast) Observe(base, took time.Duration, now time.Time) {
	if f == nil || base <= 0 || took <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mean, f.dev = f.faded(now)
	f.at = now
	off := min(max(math.Log(float64(took)/float64(base)), -mostLearn), mostLearn) - f.mean
	f.mean += off / 8
	f.dev += (math.Abs(off) - f.dev) / 4
}

// Took tells a choice's Forecast what its answer took.
func (c *Choice) Took(f *Forecast, took time.Duration, now time.Time) { f.Observe(c.base, took, now) }

// faded returns what is left of what was learnt. Locked.
func (f *Forecast) faded(now time.Time) (mean, dev float64) {
	left := math.Exp2(-float64(max(0, now.Sub(f.at))) / float64(halfLife))
	return f.mean * left, f.dev * left
}
