package scaling

import (
	"reflect"
	"strings"
	"time"
)

// leastQuality bounds Plan.Quality.
const leastQuality = 0.01

// isAim tells whether a setting says what an answer has to reach, so that no method is needed.
func isAim(key string) bool { return key == "quality" || key == "deadline_ms" }

// Unchosen tells whether a method, or its size, is still to be chosen from a profile. A plan
// with a method and a deadline alone is chosen: the deadline ends it.
func (p *Plan) Unchosen() bool { return p.Quality > 0 || p.Deadline > 0 && p.Method == "" }

// validateAims checks what an answer is to reach.
func (p *Plan) validateAims(l *Limits) error {
	switch {
	case p.Method == None:
		return nil
	case p.Quality != 0 && !(p.Quality >= leastQuality && p.Quality <= 1):
		return Errorf(CodeValue, "quality", "%v is not between %v and 1", p.Quality, leastQuality)
	case p.Deadline != 0 && p.Deadline < time.Millisecond:
		return Errorf(CodeValue, "deadline_ms", "%v is less than 1 ms", p.Deadline)
	case p.Deadline > l.Time:
		return Errorf(CodeSearchLimit, "deadline_ms", "%d is more than this server's limit of %d", p.Deadline.Milliseconds(), l.Time.Milliseconds())
	}
	return nil
}

// Sample is the written form of one plain sample, which settings may follow.
const Sample = "single"

// ParseSample does what Parse does, and reads Sample as a search of one candidate.
func ParseSample(s string) (Plan, error) {
	rest, one := strings.CutPrefix(s, Sample)
	if !one || rest != "" && rest[0] != ';' {
		return Parse(s)
	}
	p, err := Parse(string(SelfConsistency) + rest)
	p.N = 1
	return p, err
}

// Take has p, which says what to reach, use the method and settings of q. It returns false
// where p itself says otherwise. What q leaves to defaults, p decides.
func (p *Plan) Take(q *Plan) bool {
	one := q.N == 1 // is the same whatever the method
	switch {
	case p.Method != "" && p.Method != q.Method && !one,
		p.N > 0 && p.N != q.N,
		p.Width > 0 && q.Method.Beams() && p.Width != q.Width,
		p.Adaptive.On && !q.Adaptive.On,
		p.Verifier != "" && p.Verifier != q.Verifier && !one,
		p.Select != "" && p.Select != q.Select && !one,
		p.Temperature != nil && *p.Temperature != *q.Temperature:
		return false
	}
	if p.Method == "" || !one {
		p.Method = q.Method
	}
	p.N, p.Width, p.Adaptive, p.Temperature, p.Quality = q.N, q.Width, q.Adaptive, q.Temperature, 0
	take(&p.Verifier, q.Verifier)
	take(&p.Aggregate, q.Aggregate)
	take(&p.Select, q.Select)
	take(&p.Judge, q.Judge)
	take(&p.DeepConf, q.DeepConf)
	take(&p.Particles, q.Particles)
	return true
}

// take sets v unless it is set.
func take[T any](v *T, other T) {
	if reflect.ValueOf(v).Elem().IsZero() {
		*v = other
	}
}
