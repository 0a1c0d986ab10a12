package sampling

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Sampler holds the scratch memory of one worker. What it draws depends on
// the draw alone.
type Sampler struct {
	changed []float32    // a copy of the row when both it and its original matter
	dist    distribution // of the last row that was weighed
	counts  []int32      // [vocabulary], zero between uses
	mask    []uint64     // one bit a token
	matches []int32      // of DRY, a number a token
	known   known
}

// known keeps what has been found out about the row that draws share, so that it
// is found out once.
type known struct {
	searched  bool
	best      int32 // argmax
	normed    bool
	norm      float32   // log-sum-exp
	tops      []float32 // largest logit of each run
	certainty float32
}

// Run fills d.Token or d.Err.
func (s *Sampler) Run(d *Draw) {
	s.known.searched, s.known.normed, s.dist.held.own = false, false, false
	s.again(d)
}

// again draws once more from the row of the draw before.
func (s *Sampler) again(d *Draw) {
	p := &d.Params
	report := p.Reports()
	row := d.Row
	if d.ID == Sampled {
		if p.Constraint != nil || len(p.LogitBias) > 0 || p.penalises() {
			if report || d.shared {
				s.changed = append(s.changed[:0], row...)
				row = s.changed
			}
			if d.Err = s.change(row, d); d.Err != nil {
				return
			}
		}
		id := s.choose(row, d)
		if id < 0 && p.forbids() {
			d.Err = fmt.Errorf("%w at position %d", ErrForbidden, d.Position)
			return
		}
		if id < 0 {
			d.Err = fmt.Errorf("%w: no finite logit at position %d", ErrSample, d.Position)
			return
		}
		d.Token = Token{ID: id}
	} else {
		d.Token = Token{ID: d.ID}
	}
	if report {
		s.report(&d.Token, d.Row, p.TopLogprobs)
	}
}

// change applies the stages that alter single logits.
func (s *Sampler) change(row []float32, d *Draw) error {
	p := &d.Params
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
		seen := d.Tokens
		if w := p.RepetitionWindow; w > 0 {
			seen = seen[max(0, len(seen)-w):]
		}
		s.repetition(row, seen, p.RepetitionPenalty)
	}
	if p.PresencePenalty != 0 || p.FrequencyPenalty != 0 {
		s.frequency(row, d.Tokens[d.Prompt:], p.FrequencyPenalty, p.PresencePenalty)
	}
	if p.dries() {
		s.dry(row, d.Tokens, p)
	}
	return nil
}

// constrain removes the tokens that the constraint does not allow. Its panic
// costs the one sequence only.
func (s *Sampler) constrain(row []float32, d *Draw) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: constraint: panic: %v", ErrSample, r)
		}
	}()
	words := (max(len(row), d.Vocab) + 63) / 64
	s.mask = slices.Grow(s.mask[:0], words)[:words]
	clear(s.mask)
	d.Params.Constraint.Allow(s.mask)
	if f, ok := d.Params.Constraint.(Fallible); ok && f.Err() != nil {
		return fmt.Errorf("%w: %w", ErrSample, f.Err())
	}
	forbid(row, s.mask[:(len(row)+63)/64])
	return nil
}

// forbid sets logits to -Inf whose bit is zero in mask.
func forbid(row []float32, mask []uint64) {
	for w, allowed := range mask {
		part := row[w*64 : min(w*64+64, len(row))]
		if allowed == 0 {
			copy(part, never[:])
			continue
		}
		for rest := ^allowed; rest != 0; rest &= rest - 1 {
			if id := bits.TrailingZeros64(rest); id < len(part) {
				part[id] = negInf
			}
		}
	}
}

// never is logits of tokens that are not allowed, as many as a word of a mask has bits.
var never = func() (row [64]float32) {
	for i := range row {
		row[i] = negInf
	}
	return row
}()

// repetition makes every token seen less likely, once (CTRL, Keskar et al. 2019, §4.1).
func (s *Sampler) repetition(row []float32, tokens []int32, penalty float32) {
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
func (s *Sampler) frequency(row []float32, tokens []int32, each, once float32) {
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

// choose returns the token that row and the parameters lead to, or -1.
func (s *Sampler) choose(row []float32, d *Draw) int32 {
	p := &d.Params
	own := &row[0] == &d.Row[0]
	best := s.best(row, own)
	if best < 0 || p.Temperature == 0 || math.IsInf(float64(row[best]), 1) {
		return best
	}
	s.dist.hold(row, own, best, p)
	if p.XTCProbability > 0 && uniform(p.Seed+xtcSeed, p.Candidate, d.Position) < float64(p.XTCProbability) {
		s.dist.excludeTop(p.XTCThreshold)
	}
	return s.dist.pick(s.dist.held.window, uniform(p.Seed, p.Candidate, d.Position)*s.dist.held.total, best)
}

// best returns argmax, of the row that draws share if own.
func (s *Sampler) best(row []float32, own bool) int32 {
	if !own {
		return argmax(row)
	}
	if k := &s.known; !k.searched {
		k.searched, k.best = true, argmax(row)
	}
	return s.known.best
}

// argmax returns the lowest index of the largest number, or -1 when there is none
// above -Inf. NaN is no number.
func argmax(row []float32) int32 {
	i := vector.Argmax(row)
	if i >= 0 && row[i] == negInf {
		return -1
	}
	return int32(i)
}

// report fills the log-probability of tok, and its best alternatives, from
// unmodified logits.
func (s *Sampler) report(tok *Token, row []float32, top int) {
	best := s.best(row, true)
	if best < 0 || math.IsInf(float64(row[best]), 1) {
		tok.Logprob = negInf
		return
	}
	k := &s.known
	if !k.normed {
		k.norm = row[best] + float32(math.Log(s.dist.weigh(row, row[best], 1)))
		k.tops = k.tops[:0]
		for lo := 0; lo < len(row); lo += runLen {
			k.tops = append(k.tops, vector.Max(row[lo:min(lo+runLen, len(row))]))
		}
		k.certainty = certainty(&ranks{row, k.tops}, k.norm)
		k.normed = true
	}
	norm := k.norm
	if tok.Logprob = row[tok.ID] - norm; tok.Logprob != tok.Logprob {
		tok.Logprob = negInf
	}
	tok.Certainty = k.certainty
	tok.Rank = rank(row, k.tops, row[tok.ID])
	if top == 0 {
		return
	}
	r := &ranks{row, k.tops}
	s.dist.found = r.appendTo(s.dist.found[:0], s.dist.bestOf(r, window{negInf, row[best]}, top))
	first := firstOf(s.dist.found, top)
	tok.Top = make([]TokenLogprob, len(first))
	for i, f := range first {
		tok.Top[i] = TokenLogprob{ID: f.id, Logprob: f.x - norm}
	}
}

// rank counts the logits that are at least x; tops are the largest of each run.
func rank(row, tops []float32, x float32) (n int) {
	for i, most := range tops {
		if most < x {
			continue
		}
		for _, y := range row[i*runLen : min((i+1)*runLen, len(row))] {
			if y >= x {
				n++
			}
		}
	}
	return n
}

// xtcSeed makes the randomness of XTC another than the draw's.
const xtcSeed = 0x78_74_63

// uniform returns a number in [0, 1) that depends on its arguments alone: a
// counter-based generator needs no state that preemption could lose.
func uniform(seed uint64, candidate, position int) float64 {
	h := Mix(Mix(Mix(seed)+uint64(candidate)) + uint64(position))
	return float64(h>>11) / (1 << 53)
}

// Mix returns the finaliser of splitmix64 (Steele et al. 2014) after its increment.
func Mix(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
