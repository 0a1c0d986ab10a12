package models

import (
	"cmp"
	"math"
)

// rope is rotary position embedding (RoFormer §3.2): pair i of a head rotates by
// position × freq[i]. Every way of extending the context becomes, at load,
// frequencies and one gain.
type rope struct {
	freq []float64 // [dims/2] radians a position
	gain float64   // cos and sin are multiplied by it (YaRN §3.4)
	// cached holds the angles of the first positions, once they are wanted:
	// [ropePage] cosines and sines, [dims/2] each.
	cached [ropeCached / ropePage][]float32
}

// ropeCached is the number of positions whose angles are cached, a page at a
// time: sines take longer than a small model's norms.
const (
	ropeCached = 4096
	ropePage   = 64
)

// The ways of extending the context (rope.scaling.type).
const (
	scalingNone   = "none"
	scalingLinear = "linear"
	scalingYarn   = "yarn"
	scalingLong   = "longrope" // Ding et al. 2024, "LongRoPE", §3
)

// ropeParams are the metadata that describe a rope.
type ropeParams struct {
	dims     int     // leading elements of a head that rotate
	base     float64 // rope.freq_base
	scaling  string  // rope.scaling.type
	factor   float64 // rope.scaling.factor; 1: none
	attn     float64 // rope.scaling.attn_factor
	original int     // rope.scaling.original_context_length
	// YaRN's ramp between scaled and unscaled pairs, in rotations over the original context.
	betaFast, betaSlow, ext float64
	ungained                bool      // YaRN multiplies scores, not queries and keys
	smooth                  bool      // the ramp's ends are not rounded to pairs
	factors                 []float32 // [dims/2] rope_freqs.weight: each pair's frequency is divided by it; nil: none
}

// newRope computes the frequencies.
func newRope(p ropeParams) rope {
	r := rope{freq: make([]float64, p.dims/2), gain: p.attn}
	if p.scaling == scalingYarn && p.ext != 0 && p.factor > 1 && !p.ungained {
		r.gain *= 1 + 0.1*math.Log(p.factor)
	}
	for i := range r.freq {
		f := math.Pow(p.base, -2*float64(i)/float64(p.dims))
		if p.factors != nil {
			f /= float64(p.factors[i])
		}
		switch p.scaling {
		case scalingLinear:
			f /= p.factor
		case scalingYarn:
			keep := p.ext * p.unscaled(i)
			f = f/p.factor*(1-keep) + f*keep
		}
		r.freq[i] = f
	}
	return r
}

// pairs returns how many pairs of elements rotate.
func (r *rope) pairs() int { return len(r.freq) }

// unscaled returns how much of pair i's frequency stays under YaRN ("NTK-by-parts",
// YaRN §3.2): 1 for pairs that rotate often within the original context, 0 for
// those that rotate less than once.
func (p *ropeParams) unscaled(i int) float64 {
	pairWith := func(rotations float64) float64 {
		return float64(p.dims) * math.Log(float64(p.original)/(rotations*2*math.Pi)) / (2 * math.Log(p.base))
	}
	lo, hi := pairWith(p.betaFast), pairWith(p.betaSlow)
	if !p.smooth {
		lo, hi = math.Floor(lo), math.Ceil(hi)
	}
	lo, hi = max(0, lo), min(float64(p.dims-1), hi)
	ramp := (float64(i) - lo) / max(0.001, hi-lo)
	return 1 - min(1, max(0, ramp))
}

// angles are cosines and sines of rows' positions, [rows][pairs] each.
type angles struct {
	cos, sin []float32
	pairs    int
}

// angles sets cos and sin, [len(pos)][dims/2] each, for the positions.
func (r *rope) angles(cos, sin []float32, pos []int32) {
	n := len(r.freq)
	for t, p := range pos {
		c, s := cos[t*n:(t+1)*n], sin[t*n:(t+1)*n]
		if p >= ropeCached {
			r.compute(c, s, p)
			continue
		}
		page := r.page(int(p) / ropePage)[p%ropePage*2*int32(n):]
		copy(c, page)
		copy(s, page[n:])
	}
}

// page returns the angles of ropePage positions.
func (r *rope) page(i int) []float32 {
	if r.cached[i] == nil {
		n := len(r.freq)
		r.cached[i] = make([]float32, ropePage*2*n)
		for p := range ropePage {
			at := r.cached[i][p*2*n:]
			r.compute(at[:n], at[n:2*n], int32(i*ropePage+p))
		}
	}
	return r.cached[i]
}

// compute sets cos and sin for one position.
func (r *rope) compute(cos, sin []float32, pos int32) {
	for i, f := range r.freq {
		s, c := math.Sincos(float64(pos) * f)
		cos[i], sin[i] = float32(c*r.gain), float32(s*r.gain)
	}
}

// ropes reads the rope.* hyper-parameters. The context it is for is l.cfg's.
func (l *loader) ropes() []rope {
	if l.Err() != nil {
		return nil
	}
	if l.arch.positions.order == ropeNone || l.arch.attention.none {
		return []rope{{}}
	}
	p := ropeParams{
		dims:    l.count("rope.dimension_count", 2, l.cfg.HeadDim, l.cfg.HeadDim),
		base:    l.number("rope.freq_base", 10000),
		scaling: l.text("rope.scaling.type", ""),
		factor:  l.number("rope.scaling.factor", 0),
		attn:    l.number("rope.scaling.attn_factor", 1),
	}
	if p.factor == 0 { // the key of older files
		p.factor = l.number("rope.scale_linear", 1)
	}
	if p.scaling == "" { // files from before the key existed scale linearly
		p.scaling = scalingLinear
	}
	p.original = l.count("rope.scaling.original_context_length", 1, 1<<30, l.count("context_length", 1, 1<<30, required))
	p.betaFast = l.number("rope.scaling.yarn_beta_fast", 32)
	p.betaSlow = l.number("rope.scaling.yarn_beta_slow", 1)
	p.ext, p.smooth = l.number("rope.scaling.yarn_ext_factor", 1), l.arch.positions.smoothRamp
	if p.dims%2 != 0 {
		l.Fail("%s is %d, want an even number", l.key("rope.dimension_count"), p.dims)
	}
	if p.base <= 1 || p.factor <= 0 || p.attn <= 0 || p.betaFast <= 0 || p.betaSlow <= 0 {
		l.Fail("%s, factor %v, base %v: out of range", l.key("rope.scaling"), p.factor, p.base)
	}
	switch p.scaling {
	case scalingNone, scalingLinear, scalingYarn, scalingLong:
	default:
		l.Fail("%s %q is not supported", l.key("rope.scaling.type"), p.scaling)
	}
	_, p.ungained = l.latentGain()
	if !l.arch.attention.latent && p.scaling == scalingYarn { // a part of YaRN's gain that is taken back
		p.attn /= 1 + 0.1*l.positive("rope.scaling.yarn_log_multiplier")*math.Log(max(1, p.factor))
	}
	if n := l.cfg.latent.rotated; n > 0 {
		p.dims = n
	}
	p.factors = l.ropeFactors(p)
	v, local := &l.arch.positions, ropeParams{dims: p.dims, attn: 1}
	if dim := l.cfg.Others.HeadDim; dim > 0 {
		if local.dims = l.count("rope.dimension_count_swa", 2, dim, dim); local.dims%2 != 0 {
			l.Fail("%s is %d, want an even number", l.key("rope.dimension_count_swa"), local.dims)
		}
	}
	if v.windowedRope {
		if local.base = l.number("rope.freq_base_swa", cmp.Or(v.windowedBase, p.base)); local.base <= 1 {
			l.Fail("%s is %v, want more than 1", l.key("rope.freq_base_swa"), local.base)
		}
	}
	if l.Err() != nil {
		return nil
	}
	ropes := []rope{newRope(p)}
	if v.windowedRope {
		ropes = append(ropes, newRope(local))
	}
	return ropes
}

// rotates reads whether heads rotate: some files say of layers that they do not.
func (l *loader) rotates() bool {
	const name = "rope.scaling.finetuned"
	value, there := l.file.Metadata[l.key(name)]
	rotates, ok := value.(bool)
	if there && !ok {
		l.Fail("%s is %v, want true or false", l.key(name), value)
	}
	return rotates || !there
}

// ropeFactors returns what each pair's frequency is divided by, or nil. LongRoPE has
// two sets, the second for contexts beyond the one it was trained with at first.
func (l *loader) ropeFactors(p ropeParams) []float32 {
	name := "rope_freqs.weight"
	if l.arch.positions.ownFreqs {
		l.Ignore(name)
		return nil
	}
	if p.scaling == scalingLong {
		short, long := "rope_factors_short.weight", "rope_factors_long.weight"
		l.Ignore(short)
		l.Ignore(long)
		if name = short; l.cfg.Context > p.original {
			name = long
		}
		l.cfg.ownContext = true
		if l.file.Tensor(name) == nil {
			l.Fail("tensor %s is missing", name)
		}
	}
	factors := l.OptionalVector(name, p.dims/2)
	for i, f := range factors {
		if f <= 0 {
			l.Fail("tensor %s: element %d is %v", name, i, f)
		}
	}
	return factors
}
