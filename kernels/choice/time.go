package choice

import (
	"slices"
	"time"
)

// hopeless bounds the slowness of a method that is still timed with more tokens: its time with fewer tokens,
// divided by another method's time with more. More tokens never take less time.
const hopeless = 1.5

// rounds are timed, the first included; too few of them say nothing.
const (
	rounds = 12
	enough = 4
)

// time times the methods with the tokens of all widths by product, which says when there is no more
// time. It returns nil unless that is after enough rounds. The usual method is always among those timed.
// Every other round goes backwards, for units of 512 bits are slow until they have been used.
func (q *Question) time(product func(method string, n int) (took time.Duration, ok bool)) []timing {
	tokens := q.tokens()
	for _, m := range q.Methods { // pages, caches and buffers
		if _, ok := product(m.Name, slices.Max(tokens)); !ok {
			return nil
		}
	}
	var timings []timing
	var first []time.Duration
	last := make(map[string]time.Duration) // with fewer tokens
	for _, n := range tokens {
		fit := slices.DeleteFunc(slices.Clone(q.Methods), func(m Method) bool { return n < m.Least })
		slices.SortStableFunc(fit, func(a, b Method) int { return int(last[a.Name] - last[b.Name]) })
		usual, best := q.Usual.For(n), time.Hour
		for _, m := range fit {
			if float64(last[m.Name]) > hopeless*float64(best) && m.Name != usual {
				continue
			}
			took, ok := product(m.Name, n)
			if !ok {
				return nil
			}
			timings, first = append(timings, timing{n: n, method: m.Name}), append(first, took)
			last[m.Name], best = took, min(best, took)
		}
	}
	all := again(timings, first, product)
	if len(all) < enough {
		return nil
	}
	return q.compare(timings, all)
}

// again repeats the first round of timings, as long as there is time, and returns all rounds.
func again(timings []timing, first []time.Duration, product func(method string, n int) (took time.Duration, ok bool)) [][]time.Duration {
	all := [][]time.Duration{first}
	for len(all) < rounds {
		round := make([]time.Duration, len(timings))
		for i := range timings {
			if len(all)%2 == 1 {
				i = len(timings) - 1 - i
			}
			took, ok := product(timings[i].method, timings[i].n)
			if !ok {
				return all
			}
			round[i] = took
		}
		all = append(all, round)
	}
	return all
}

// compare sets the times of timings, in each round in units of the usual method's time with as many tokens. The
// upper quarter of the rounds counts: a method that is to replace the usual one must be faster in most rounds.
// A shared machine is slow at times, and a system subtracts its hypervisor's time, at times too much.
func (q *Question) compare(timings []timing, all [][]time.Duration) []timing {
	for i, t := range timings {
		unit := slices.IndexFunc(timings, func(u timing) bool { return u.n == t.n && u.method == q.Usual.For(t.n) })
		if unit < 0 { // the usual one is none of those
			unit = slices.IndexFunc(timings, func(u timing) bool { return u.n == t.n })
		}
		ratios := make([]float64, len(all))
		for r, round := range all {
			ratios[r] = float64(round[i]) / float64(max(round[unit], 1))
		}
		slices.Sort(ratios)
		timings[i].took = ratios[len(ratios)*3/4]
	}
	return timings
}

// tokens returns the numbers of tokens that are measured.
func (q *Question) tokens() (list []int) {
	for _, w := range q.Widths {
		list = append(list, w.Tokens...)
	}
	return list
}
