package tts

import "slices"

// Repetition ends an answer in which a pattern of MinPattern to MaxPattern tokens comes MinCount times
// in a row, as vLLM's repetition_detection does. A longer least pattern lets shorter ones come more
// often: eight times eight tokens may be one token 64 times. The zero value ends none.
type Repetition struct{ MinPattern, MaxPattern, MinCount int }

// MostPattern bounds MaxPattern.
const MostPattern = 1024

// repeats looks for patterns in the tokens of an answer as they come.
type repeats struct {
	Repetition
	tokens int     // so far
	latest []int32 // a ring of the latest tokens
	// runs[i] counts the latest tokens that equal, each, the one MinPattern+i before it.
	runs []int
}

func newRepeats(r Repetition) repeats {
	if r.MaxPattern == 0 {
		return repeats{}
	}
	r.MinPattern = max(r.MinPattern, 1)
	return repeats{Repetition: r, latest: make([]int32, r.MaxPattern), runs: make([]int, r.MaxPattern-r.MinPattern+1)}
}

func (r *repeats) clone() repeats {
	c := *r
	c.latest, c.runs = slices.Clone(r.latest), slices.Clone(r.runs)
	return c
}

// push adds a token, and tells whether it completes a pattern for the last time.
func (r *repeats) push(id int32) (complete bool) {
	for i := range r.runs {
		length := r.MinPattern + i
		if length > r.tokens {
			break
		}
		if r.runs[i]++; r.latest[(r.tokens-length)%len(r.latest)] != id {
			r.runs[i] = 0
		}
		complete = complete || r.runs[i] >= length*(r.MinCount-1)
	}
	if len(r.latest) > 0 {
		r.latest[r.tokens%len(r.latest)] = id
		r.tokens++
	}
	return complete
}
