package choice

import (
	"slices"
	"strconv"
	"strings"
)

// Rule says that from a number of tokens on a method multiplies.
type Rule struct {
	From   int
	Method string
}

// Rules are in ascending order; the first is from one token on.
type Rules []Rule

// Always returns the rules of one method.
func Always(method string) Rules { return Rules{{1, method}} }

// For returns the method for n tokens; "" if there are no rules.
func (r Rules) For(n int) (method string) {
	for _, rule := range r {
		if n >= rule.From {
			method = rule.Method
		}
	}
	return method
}

// with adds a rule, unless it says what holds already.
func (r Rules) with(from int, method string) Rules {
	if r.For(from) == method {
		return r
	}
	return append(r, Rule{from, method})
}

// parse reads rules that String wrote. They count only if they are an answer to q.
func (q *Question) parse(text string) (rules Rules, ok bool) {
	for part := range strings.SplitSeq(text, ";") {
		number, method, _ := strings.Cut(part, ":")
		from, err := strconv.Atoi(number)
		known := slices.ContainsFunc(q.Methods, func(m Method) bool { return m.Name == method })
		width := slices.ContainsFunc(q.Widths, func(w Width) bool { return w.From == from })
		if err != nil || !known || !width || len(rules) == 0 && from != 1 || len(rules) > 0 && from <= rules[len(rules)-1].From {
			return nil, false
		}
		rules = append(rules, Rule{from, method})
	}
	return rules, true
}

// timing is the time in which a method multiplied n tokens, in a unit that all with as many tokens share.
type timing struct {
	n      int
	method string
	took   float64
}

// margin is the factor by which a method must be faster than the usual one to take its place.
// Measuring errs by about as much.
const margin = 1.05

// choose makes rules of timings. Each width gets the method that loses least to the fastest one at the
// number of tokens where it loses most.
func (q *Question) choose(timings []timing) (rules Rules) {
	for _, w := range q.Widths {
		best := make(map[int]float64) // by tokens
		for _, t := range timings {
			if b, ok := best[t.n]; slices.Contains(w.Tokens, t.n) && (!ok || t.took < b) {
				best[t.n] = t.took
			}
		}
		usual := q.Usual.For(w.From)
		chosen, least := usual, 0.0
		if loss, ok := lossOf(usual, timings, best); ok {
			least = loss / margin
		}
		for _, m := range q.Methods {
			if loss, ok := lossOf(m.Name, timings, best); ok && (least == 0 || loss < least) {
				chosen, least = m.Name, loss
			}
		}
		rules = rules.with(w.From, chosen)
	}
	return rules
}

// lossOf returns by which factor a method takes longer than the best times of some numbers of tokens,
// at most; false unless it was timed with all of them.
func lossOf(method string, timings []timing, best map[int]float64) (most float64, ok bool) {
	timed := 0
	for _, t := range timings {
		if b, ok := best[t.n]; ok && t.method == method {
			most = max(most, t.took/b)
			timed++
		}
	}
	return most, timed > 0 && timed == len(best)
}
