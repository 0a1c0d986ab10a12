package sampling

import (
	"cmp"
	"math"
	"slices"
)

// Defaults of DRY, llama.cpp's.
const (
	dryBase    = 1.75
	dryAllowed = 2
)

// Breakers are the texts across which DRY counts no repetition, as tokens. NewBreakers makes them.
type Breakers struct {
	tokens    TokenSet  // that hold such a text
	sequences [][]int32 // of two tokens or more, which spell one
	ends      TokenSet  // the last tokens of sequences
}

// NewBreakers takes the tokens that hold such a text, and the sequences of two tokens or more that spell one.
func NewBreakers(tokens []int32, sequences [][]int32) *Breakers {
	b := &Breakers{tokens: NewTokenSet(tokens), sequences: sequences}
	var ends []int32
	for _, seq := range sequences {
		ends = append(ends, seq[len(seq)-1])
	}
	b.ends = NewTokenSet(ends)
	return b
}

// dries reports whether repetitions are made less likely.
func (p *Params) dries() bool { return p.DRYMultiplier != 0 }

// dry makes tokens less likely that would continue a repetition ("Don't Repeat Yourself", p-e-w 2024, as in llama.cpp).
// Where the last n tokens, n ≥ DRYAllowedLength, stood before, a token followed them. Its logit loses
// DRYMultiplier · DRYBase^(n − DRYAllowedLength), for the largest n. Nothing before the last breaker counts, and tokens
// that break are left alone.
func (s *Sampler) dry(row []float32, tokens []int32, p *Params) {
	if w := p.DRYWindow; w > 0 {
		tokens = tokens[max(0, len(tokens)-w):]
	}
	allowed := cmp.Or(p.DRYAllowedLength, dryAllowed)
	limit := p.DRYBreakers.since(tokens)
	if limit < allowed {
		return
	}
	base := float64(cmp.Or(p.DRYBase, dryBase))
	longest := s.counts
	matches := s.suffixes(tokens)
	for i := 1; i < len(tokens); i++ {
		next := tokens[len(tokens)-i]
		if n := min(int(matches[i]), limit); n >= allowed && int(next) < len(row) {
			longest[next] = max(longest[next], int32(n))
		}
	}
	for _, t := range tokens {
		if int(t) >= len(row) || longest[t] == 0 {
			continue
		}
		if !p.DRYBreakers.has(t) {
			penalty := float64(p.DRYMultiplier) * math.Pow(base, float64(int(longest[t])-allowed))
			row[t] -= float32(min(penalty, math.MaxFloat32/4)) // neither infinite nor no number
		}
		longest[t] = 0
	}
}

// has tells whether a token breaks by itself.
func (b *Breakers) has(id int32) bool { return b != nil && b.tokens.Has(id) }

// since returns how many of the last tokens come after the last breaker.
func (b *Breakers) since(tokens []int32) int {
	if b == nil {
		return len(tokens)
	}
	for n := range len(tokens) {
		upTo := tokens[:len(tokens)-n]
		last := upTo[len(upTo)-1]
		if b.tokens.Has(last) {
			return n
		}
		if !b.ends.Has(last) {
			continue
		}
		for _, seq := range b.sequences {
			if k := len(upTo) - len(seq); k >= 0 && slices.Equal(upTo[k:], seq) {
				return n
			}
		}
	}
	return len(tokens)
}

// suffixes returns for each i how many tokens the list without its last i has in common with the whole list,
// counted from the end. It takes time that is linear in the tokens (the Z-algorithm).
func (s *Sampler) suffixes(tokens []int32) []int32 {
	n := len(tokens)
	at := func(i int) int32 { return tokens[n-1-i] }
	z := slices.Grow(s.matches[:0], n)[:n]
	s.matches = z
	for i, lo, hi := 1, 0, 0; i < n; i++ { // [lo, hi) is the match that ends last
		m := 0
		if i < hi {
			m = min(hi-i, int(z[i-lo]))
		}
		for i+m < n && at(m) == at(i+m) {
			m++
		}
		if z[i] = int32(m); i+m > hi {
			lo, hi = i, i+m
		}
	}
	return z
}
