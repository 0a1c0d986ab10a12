package eval

import (
	"math"
	"slices"
	"time"
)

// Result sums up a point over the problems. Accuracies are shares in [0, 1],
// costs are means a problem.
type Result struct {
	Point
	Problems     int      `json:"problems"`
	Accuracy     float64  `json:"accuracy"` // of a single sample: pass@1
	Low          float64  `json:"ci_low"`   // 95 % Wilson interval of Accuracy
	High         float64  `json:"ci_high"`
	Any          *float64 `json:"any_right,omitempty"` // some candidate is right: what a perfect choice would reach
	Tokens       float64  `json:"tokens"`
	Verifier     float64  `json:"verifier_tokens,omitempty"` // 0: none, or not known
	LatencyMS    float64  `json:"latency_ms"`
	MedianMS     float64  `json:"latency_p50_ms"`
	TokensPerSec float64  `json:"tok_s"`               // generated, by all problems in flight
	VsSingle     float64  `json:"vs_single,omitempty"` // latency as a multiple of the model's single sample; 0: there is none
	Pareto       bool     `json:"pareto"`              // no other point is both at least as accurate and as fast

	// Of an NPU, modelled: means a problem. 0: not modelled.
	ModelledMS float64 `json:"modelled_ms,omitempty"`
	ModelledMJ float64 `json:"modelled_mj,omitempty"`
}

// Report has the results of a run, with all that it takes to repeat it.
type Report struct {
	Version string   `json:"version"` // of this program
	Command []string `json:"command"`
	Setup
	Problems int      `json:"problems"`
	Left     int      `json:"left"` // answers that an interruption left out
	Results  []Result `json:"results"`
	// Differences compare the results with one of them.
	Differences []Difference `json:"differences,omitempty"`
}

// Summarise gives one result a point, in order, counting the first problems
// only. Points without records are left out. concurrency is the number of
// problems that were in flight.
func Summarise(points []Point, records []Record, problems, concurrency int) []Result {
	byPoint := map[Point][]Record{}
	for _, r := range records {
		if r.Problem >= 0 && r.Problem < problems {
			byPoint[r.Point] = append(byPoint[r.Point], r)
		}
	}
	var results []Result
	for _, p := range points {
		if rs := byPoint[p]; len(rs) > 0 {
			results = append(results, summarise(p, rs, concurrency))
		}
	}
	for i := range results {
		r := &results[i]
		if at := slices.IndexFunc(results, func(s Result) bool { return s.Model == r.Model && s.Plain() }); at >= 0 {
			r.VsSingle = r.LatencyMS / results[at].LatencyMS
		}
		r.Pareto = !slices.ContainsFunc(results, func(s Result) bool { return s.dominates(r) })
	}
	return results
}

func summarise(p Point, records []Record, concurrency int) Result {
	r := Result{Point: p, Problems: len(records)}
	right, found, known := 0, 0, 0
	var latencies []time.Duration
	var took time.Duration
	for _, rec := range records {
		if rec.Right {
			right++
		}
		if rec.Any != nil {
			known++
			if *rec.Any {
				found++
			}
		}
		r.Tokens += float64(rec.Tokens)
		r.Verifier += float64(rec.Verifier)
		if m := rec.Modelled; m != nil {
			r.ModelledMS += 1e3 * m.Seconds
			r.ModelledMJ += 1e3 * m.Joules
		}
		took += rec.Latency
		latencies = append(latencies, rec.Latency)
	}
	n := float64(len(records))
	slices.Sort(latencies)
	r.TokensPerSec = r.Tokens / took.Seconds() * float64(max(concurrency, 1))
	r.Tokens /= n
	r.Verifier /= n
	r.ModelledMS /= n
	r.ModelledMJ /= n
	r.LatencyMS, r.MedianMS = milliseconds(took)/n, milliseconds(latencies[len(latencies)/2])
	r.Accuracy = float64(right) / n
	r.Low, r.High = Wilson(right, len(records))
	if known == len(records) {
		share := float64(found) / n
		r.Any = &share
	}
	return r
}

// Cost chooses the horizontal axis of a chart.
type Cost int

// The costs.
const (
	Latency   Cost = iota // measured here
	OnNPU                 // modelled latency on an NPU
	Energy                // modelled energy there
	Generated             // tokens, of all candidates
)

// by returns the results with another cost in the place of latency, and the front that it
// makes.
func by(results []Result, c Cost) []Result {
	if c == Latency {
		return results
	}
	list := slices.Clone(results)
	for i := range list {
		r := &list[i]
		r.LatencyMS = map[Cost]float64{OnNPU: r.ModelledMS, Energy: r.ModelledMJ, Generated: r.Tokens}[c]
	}
	for i := range list {
		list[i].Pareto = !slices.ContainsFunc(list, func(s Result) bool { return s.dominates(&list[i]) })
	}
	return list
}

// dominates reports whether r is better than s in one way and no worse in the
// other.
func (r *Result) dominates(s *Result) bool {
	return r.Accuracy >= s.Accuracy && r.LatencyMS <= s.LatencyMS && (r.Accuracy > s.Accuracy || r.LatencyMS < s.LatencyMS)
}

// Wilson returns the 95 % score interval of a share, given right of n (Wilson 1927). Unlike
// the normal interval it stays in [0, 1] and is not empty at 0 and 1.
func Wilson(right, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054 // 97.5 % quantile of the normal distribution
	p, m := float64(right)/float64(n), float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, centre-half), min(1, centre+half)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
