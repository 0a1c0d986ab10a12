package batcher

import (
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// sampled as draw.id asks for a token instead of naming one.
const sampled int32 = -1

// draw is one row of logits to turn into a token.
type draw struct {
	row      []float32 // [vocabulary]; the stages change it in place, unless shared
	shared   bool      // other draws read row too
	params   Params
	id       int32   // the token to report on, or sampled
	position int     // of the token in its sequence
	tokens   []int32 // all tokens before it, when Params.looksBack
	prompt   int     // of them belong to the prompt
	next     int     // index of the next draw from row; 0: none

	tok Token
	err error
}

// sampler holds the scratch memory of one worker. What it draws depends on
// the draw alone.
type sampler struct {
	changed []float32 // a copy of the row when both it and its original matter
	weights ranks
	sums    []float64 // of each run of weights
	held    held
	found   []found   // tokens in doubt
	order   []float32 // the largest of each run, sorted
	counts  []int32   // [vocabulary], zero between uses
	mask    []uint64  // one bit a token
	known   known
}

// known is what has been found out about the row that draws share, so that it
// is found out once.
type known struct {
	searched  bool
	best      int32 // argmax
	normed    bool
	norm      float32   // log-sum-exp
	tops      []float32 // largest logit of each run
	certainty float32
}

// looksBack tells whether sampling depends on the tokens so far.
func (p *Params) looksBack() bool { return p.Constraint != nil || p.penalises() }

// forbids tells whether some tokens may not be sampled at all.
func (p *Params) forbids() bool {
	if p.Constraint != nil {
		return true
	}
	for _, bias := range p.LogitBias {
		if bias == negInf {
			return true
		}
	}
	return false
}

func (p *Params) penalises() bool {
	return p.repeats() || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

func (p *Params) repeats() bool { return p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1 }

// truncates tells whether some tokens are left out for being too unlikely.
func (p *Params) truncates() bool {
	return p.MinP > 0 || p.TopK > 0 || on(p.TypicalP) || on(p.TopP)
}

// on tells whether a probability mass is one to cut at.
func on(p float32) bool { return p > 0 && p < 1 }

// run fills d.tok or d.err.
func (s *sampler) run(d *draw) {
	s.known.searched, s.known.normed, s.held.own = false, false, false
	s.again(d)
}

// again is run for a further draw from the row of the one before.
func (s *sampler) again(d *draw) {
	p := &d.params
	report := p.Logprobs || p.TopLogprobs > 0
	row := d.row
	if d.id == sampled {
		if p.Constraint != nil || len(p.LogitBias) > 0 || p.penalises() {
			if report || d.shared {
				s.changed = append(s.changed[:0], row...)
				row = s.changed
			}
			if d.err = s.change(row, d); d.err != nil {
				return
			}
		}
		id := s.choose(row, d)
		if id < 0 && p.forbids() {
			d.err = fmt.Errorf("%w at position %d", ErrForbidden, d.position)
			return
		}
		if id < 0 {
			d.err = fmt.Errorf("%w: no finite logit at position %d", ErrSample, d.position)
			return
		}
		d.tok = Token{ID: id}
	} else {
		d.tok = Token{ID: d.id}
	}
	if report {
		s.report(&d.tok, d.row, p.TopLogprobs)
	}
}

// change applies the stages that alter single logits.
func (s *sampler) change(row []float32, d *draw) error {
	p := &d.params
	if p.Constraint != nil {
		if err := s.constrain(row, d); err != nil {
			return err
		}
	}
	for id, bias := range p.LogitBias {
		if int(id) < len(row) {
			row[id] += bias
		}
	}
	if len(s.counts) < len(row) {
		s.counts = make([]int32, len(row))
	}
	if p.repeats() {
		seen := d.tokens
		if w := p.RepetitionWindow; w > 0 {
			seen = seen[max(0, len(seen)-w):]
		}
		s.repetition(row, seen, p.RepetitionPenalty)
	}
	if p.PresencePenalty != 0 || p.FrequencyPenalty != 0 {
		s.frequency(row, d.tokens[d.prompt:], p.FrequencyPenalty, p.PresencePenalty)
	}
	return nil
}

// constrain removes the tokens that the constraint does not allow. Its panic
// costs the one sequence only.
func (s *sampler) constrain(row []float32, d *draw) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: constraint: panic: %v", ErrSample, r)
		}
	}()
	words := (len(row) + 63) / 64
	s.mask = slices.Grow(s.mask[:0], words)[:words]
	clear(s.mask)
	d.params.Constraint.Allow(s.mask, d.tokens[d.prompt:])
	for w, bits := range s.mask {
		if bits == math.MaxUint64 {
			continue
		}
		for id := w * 64; id < min(w*64+64, len(row)); id++ {
			if bits>>(id%64)&1 == 0 {
				row[id] = negInf
			}
		}
	}
	return nil
}

var negInf = float32(math.Inf(-1))

// repetition makes every token seen less likely, once (CTRL, Keskar et al. 2019, §4.1).
func (s *sampler) repetition(row []float32, tokens []int32, penalty float32) {
	for _, t := range tokens {
		if int(t) >= len(row) || s.counts[t] != 0 {
			continue
		}
		s.counts[t] = 1
		if row[t] > 0 {
			row[t] /= penalty
		} else {
			row[t] *= penalty
		}
	}
	for _, t := range tokens {
		if int(t) < len(row) {
			s.counts[t] = 0
		}
	}
}

// frequency subtracts OpenAI's penalties for each token seen.
func (s *sampler) frequency(row []float32, tokens []int32, each, once float32) {
	for _, t := range tokens {
		if int(t) < len(row) {
			s.counts[t]++
		}
	}
	for _, t := range tokens {
		if int(t) < len(row) && s.counts[t] != 0 {
			row[t] -= float32(s.counts[t])*each + once
			s.counts[t] = 0
		}
	}
}

// choose is the token that row and the parameters lead to, or -1.
func (s *sampler) choose(row []float32, d *draw) int32 {
	p := &d.params
	own := &row[0] == &d.row[0]
	best := s.best(row, own)
	if best < 0 || p.Temperature == 0 || math.IsInf(float64(row[best]), 1) {
		return best
	}
	s.hold(row, own, best, p)
	return s.pick(s.held.window, uniform(p.Seed, p.Candidate, d.position)*s.held.total, best)
}

// best is argmax, of the row that draws share if own.
func (s *sampler) best(row []float32, own bool) int32 {
	if !own {
		return argmax(row)
	}
	if k := &s.known; !k.searched {
		k.searched, k.best = true, argmax(row)
	}
	return s.known.best
}

// argmax is the lowest index of the largest number, or -1 when there is none
// above -Inf. NaN is no number.
func argmax(row []float32) int32 {
	i := vector.Argmax(row)
	if i >= 0 && row[i] == negInf {
		return -1
	}
	return int32(i)
}

// uniform is a number in [0, 1) that depends on its arguments alone: a
// counter-based generator needs no state that preemption could lose.
func uniform(seed uint64, candidate, position int) float64 {
	h := mix(mix(mix(seed)+uint64(candidate)) + uint64(position))
	return float64(h>>11) / (1 << 53)
}

// mix is the finaliser of splitmix64 (Steele et al. 2014) behind its increment.
func mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
