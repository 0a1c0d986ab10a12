package probe

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/lab/eval"
)

// Report says what a probe is worth on the problems that were held out.
type Report struct {
	Problems int    `json:"problems"`
	Held     int    `json:"held_out"` // of them
	N        int    `json:"n"`
	Layers   []int  `json:"layers"`
	Verifier string `json:"verifier,omitempty"`
	Whole    Fitted `json:"whole"`
	Step     Fitted `json:"step"`

	Probe Quality  `json:"probe"`
	Other *Quality `json:"other,omitempty"` // the verifier's
	// Chosen is the share of problems that each way of choosing gets right.
	Chosen []Choice `json:"chosen"`
}

// Quality says how well scores tell right answers from wrong ones.
type Quality struct {
	AUC   float64 `json:"auc"`
	Brier float64 `json:"brier"`
	ECE   float64 `json:"ece"` // expected calibration error, of ten bins
}

// Choice is a way to choose among candidates.
type Choice struct {
	By    string  `json:"by"`
	Right float64 `json:"right"` // share
}

// judge fills in what the held-out problems show.
func (r *Report) judge(t *Trainer) {
	var probes, others []scored
	type rule struct {
		by     string
		choose func(list []answer) bool
	}
	best := func(score func(a *answer) float64) func([]answer) bool {
		return func(list []answer) bool {
			at := 0
			for i := range list {
				if score(&list[i]) > score(&list[at]) {
					at = i
				}
			}
			return list[at].right
		}
	}
	rules := []rule{
		{"some candidate is right", func(list []answer) bool { return slices.ContainsFunc(list, func(a answer) bool { return a.right }) }},
		{"vote", func(list []answer) bool { return elect(list, func(*answer) float64 { return 1 }) }},
		{"vote weighted by the probe", func(list []answer) bool { return elect(list, func(a *answer) float64 { return a.probe }) }},
		{"probe, the highest", best(func(a *answer) float64 { return a.probe })},
	}
	if t.verifier != "" {
		rules = append(rules, rule{"verifier, the highest", best(func(a *answer) float64 { return a.score })},
			rule{"probe × verifier, the highest", best(func(a *answer) float64 { return a.probe * a.score })})
	}
	right, single := make([]int, len(rules)), 0.0
	for i := range t.problems {
		p := &t.problems[i]
		if !p.judged || len(p.answers) == 0 {
			continue
		}
		r.Held++
		all, ok := 0, 0
		for k := range p.answers {
			a := &p.answers[k]
			probes, others = append(probes, scored{a.probe, a.right, a.votes}), append(others, scored{a.score, a.right, a.votes})
			if all += a.votes; a.right {
				ok += a.votes
			}
		}
		single += float64(ok) / float64(all)
		complete := eval.Complete(p.answers, func(a answer) bool { return a.cut })
		for k, rule := range rules {
			if rule.choose(complete) {
				right[k]++
			}
		}
	}
	n := float64(max(1, r.Held))
	r.Chosen = append(r.Chosen, Choice{"one candidate", single / n})
	for k, rule := range rules {
		r.Chosen = append(r.Chosen, Choice{rule.by, float64(right[k]) / n})
	}
	r.Probe = measure(probes)
	if t.verifier != "" {
		q := measure(others)
		r.Other = &q
	}
}

// elect tells whether the final answer with the greatest sum of weights is right; of equal ones the first.
func elect(list []answer, weight func(*answer) float64) bool {
	sums, right := map[string]float64{}, map[string]bool{}
	var order []string
	for i := range list {
		if k := list[i].key; k != "" {
			if _, known := sums[k]; !known {
				order = append(order, k)
			}
			sums[k] += float64(list[i].votes) * weight(&list[i])
			right[k] = list[i].right
		}
	}
	best := ""
	for _, k := range order {
		if best == "" || sums[k] > sums[best] {
			best = k
		}
	}
	return right[best]
}

// scored is a score of an answer that so many candidates have given.
type scored struct {
	score float64
	right bool
	votes int
}

// bins is the number of bins of the expected calibration error.
const bins = 10

// measure compares scores with what is right. The AUC is of different answers; the others are of
// candidates.
func measure(list []scored) (q Quality) {
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	var right, wrong, ahead float64
	for lo := 0; lo < len(list); {
		hi, up, down := lo, 0.0, 0.0
		for ; hi < len(list) && list[hi].score == list[lo].score; hi++ {
			if list[hi].right {
				up++
			} else {
				down++
			}
		}
		ahead += up * (wrong + down/2)
		right, wrong, lo = right+up, wrong+down, hi
	}
	if q.AUC = 0.5; right*wrong > 0 {
		q.AUC = ahead / (right * wrong)
	}
	var sums, hits, counts [bins]float64
	all := 0.0
	for _, s := range list {
		n, hit := float64(s.votes), 0.0
		if s.right {
			hit = 1
		}
		q.Brier += n * (s.score - hit) * (s.score - hit)
		at := min(bins-1, int(s.score*bins))
		sums[at], hits[at], counts[at], all = sums[at]+n*s.score, hits[at]+n*hit, counts[at]+n, all+n
	}
	if all == 0 {
		return q
	}
	q.Brier /= all
	for i := range counts {
		q.ECE += math.Abs(sums[i]-hits[i]) / all
	}
	return q
}
