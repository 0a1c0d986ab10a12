package models

import (
	"cmp"
	"fmt"
	"maps"
	"math"

	"github.com/lutra-lm/lutra/models/load"
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

// unscaled returns the share of pair i's frequency that stays under YaRN ("NTK-by-parts", YaRN §3.2). It is 1 for pairs
// that rotate often within the original context, 0 for pairs that rotate less than once.
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

// ropeSpec describes the ropes of a model.
type ropeSpec struct {
	none     bool        // no layer rotates
	stands   bool        // the file says that its layers do not, see positionTraits.mayStand
	all      ropeParams  // of layers, but for those that windowed is for
	windowed *ropeParams // of layers with windows; nil: as the others
}

// readRopes reads the rope.* hyper-parameters. The context it is for is m's.
func readRopes(h *load.Header, m *spec) {
	v := &m.arch.positions
	if m.ropes.none = v.order == ropeNone || m.arch.attention.none; m.ropes.none {
		return
	}
	m.ropes.stands = v.mayStand && !h.Flag("rope.scaling.finetuned", true)
	m.ropes.all = readRope(h, m)
	if !v.windowedRope {
		return
	}
	p := ropeParams{dims: m.ropes.all.dims, attn: 1}
	if dim := m.Others.HeadDim; dim > 0 {
		if p.dims = h.Int("rope.dimension_count_swa", 2, dim, dim); p.dims%2 != 0 {
			h.Fail("%s is %d, want an even number", h.Key("rope.dimension_count_swa"), p.dims)
		}
	}
	if p.base = h.Float("rope.freq_base_swa", cmp.Or(v.windowedBase, m.ropes.all.base)); p.base <= 1 {
		h.Fail("%s is %v, want more than 1", h.Key("rope.freq_base_swa"), p.base)
	}
	m.ropes.windowed = &p
}

// Keys of LoadOptions.Metadata that extend the context of a model of any architecture: they stand for the keys that
// have its name in front. The context becomes as many times the original one.
const (
	KeyScaling         = "rope.scaling.type"                    // none, linear or yarn
	KeyScalingFactor   = "rope.scaling.factor"                  // 1 or more
	KeyScalingOriginal = "rope.scaling.original_context_length" // tokens that the model was made for; default: what the file says
)

// extendContext has those keys, if any are there, take the place of what the file says.
func extendContext(h *load.Header, a *architecture) error {
	if len(h.File.Metadata.Under("rope.scaling.")) == 0 {
		return nil
	}
	md := maps.Clone(h.File.Metadata)
	h.File.Metadata = md
	if a.positions.order == ropeNone || a.attention.none {
		return fmt.Errorf("%w: rope.scaling has no meaning for architecture %s, which does not rotate positions", ErrModel, h.Arch)
	}
	own, _ := md.String(h.Key(KeyScaling))
	kind, ok := md.String(KeyScaling)
	if !ok || kind != scalingNone && kind != scalingLinear && kind != scalingYarn {
		return fmt.Errorf("%w: %s is %v, want %s, %s or %s", ErrModel, KeyScaling, md[KeyScaling], scalingNone, scalingLinear, scalingYarn)
	}
	factor, ok := md.Float(KeyScalingFactor)
	if kind == scalingNone {
		factor, ok = 1, true
	}
	if !ok || !(factor >= 1 && factor <= load.MaxContext) {
		return fmt.Errorf("%w: %s is %v, want 1 to %d", ErrModel, KeyScalingFactor, md[KeyScalingFactor], load.MaxContext)
	}
	context := h.Int("context_length", 1, load.MaxContext, load.Required)
	original := h.Int(KeyScalingOriginal, 1, load.MaxContext, context)
	if _, there := md[KeyScalingOriginal]; there {
		if original, ok = md.Int(KeyScalingOriginal); !ok || original < 1 || original > load.MaxContext {
			return fmt.Errorf("%w: %s is %v, want 1 to %d", ErrModel, KeyScalingOriginal, md[KeyScalingOriginal], load.MaxContext)
		}
	}
	if kind != own { // a gain of the file belongs to the file's scaling
		delete(md, h.Key("rope.scaling.attn_factor"))
	}
	md[h.Key(KeyScaling)], md[h.Key(KeyScalingFactor)], md[h.Key(KeyScalingOriginal)] = kind, factor, int64(original)
	md[h.Key("context_length")] = int64(min(load.MaxContext, factor*float64(original)))
	if err := h.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return nil
}

// readRope reads the hyper-parameters of the rope of all layers.
func readRope(h *load.Header, m *spec) ropeParams {
	p := ropeParams{
		dims:    h.Int("rope.dimension_count", 2, m.HeadDim, m.HeadDim),
		base:    h.Float("rope.freq_base", 10000),
		scaling: h.Text("rope.scaling.type", ""),
		factor:  h.Float("rope.scaling.factor", 0),
		attn:    h.Float("rope.scaling.attn_factor", 1),
	}
	if p.factor == 0 { // the key of older files
		p.factor = h.Float("rope.scale_linear", 1)
	}
	if p.scaling == "" { // files from before the key existed scale linearly
		p.scaling = scalingLinear
	}
	p.original = h.Int("rope.scaling.original_context_length", 1, load.MaxContext, m.longest)
	p.betaFast = h.Float("rope.scaling.yarn_beta_fast", 32)
	p.betaSlow = h.Float("rope.scaling.yarn_beta_slow", 1)
	p.ext, p.smooth = h.Float("rope.scaling.yarn_ext_factor", 1), m.arch.positions.smoothRamp
	if p.dims%2 != 0 {
		h.Fail("%s is %d, want an even number", h.Key("rope.dimension_count"), p.dims)
	}
	if p.base <= 1 || p.factor <= 0 || p.attn <= 0 || p.betaFast <= 0 || p.betaSlow <= 0 {
		h.Fail("%s, factor %v, base %v: out of range", h.Key("rope.scaling"), p.factor, p.base)
	}
	switch p.scaling {
	case scalingNone, scalingLinear, scalingYarn:
	case scalingLong:
		m.decisive = true
	default:
		h.Fail("%s %q is not supported", h.Key("rope.scaling.type"), p.scaling)
	}
	_, p.ungained = latentGain(h, m)
	if !m.arch.attention.latent && p.scaling == scalingYarn { // a part of YaRN's gain that is taken back
		p.attn /= 1 + 0.1*h.NotNegative("rope.scaling.yarn_log_multiplier")*math.Log(max(1, p.factor))
	}
	if m.latent.rotated > 0 {
		p.dims = m.latent.rotated
	}
	return p
}

// ropeOf returns how the heads of a layer rotate, and by which of the model's ropes.
func (m *spec) ropeOf(y *layerSpec) (order ropeOrder, index int) {
	v, windows := &m.arch.positions, m.mask.Window > 0
	if m.ropes.windowed != nil && (y.window && windows || y.place.kind == 1) {
		index = 1
	}
	switch {
	case m.ropes.stands, v.windowedOnly && windows && !y.window, v.skipEvery > 0 && (y.index+1)%v.skipEvery == 0:
		return ropeNone, index
	}
	return v.order, index
}

// loadRopes makes the ropes of a model: the second, if any, is for layers with windows.
func loadRopes(t *tensors, m *spec) []rope {
	if m.ropes.none {
		return []rope{{}}
	}
	p := m.ropes.all
	if p.factors = loadRopeFactors(t, m); t.Err() != nil {
		return nil
	}
	ropes := []rope{newRope(p)}
	if m.ropes.windowed != nil {
		ropes = append(ropes, newRope(*m.ropes.windowed))
	}
	return ropes
}

// loadRopeFactors returns what each pair's frequency is divided by, or nil. LongRoPE has
// two sets, the second for contexts beyond the one it was trained with at first.
func loadRopeFactors(t *tensors, m *spec) []float32 {
	name, p := "rope_freqs.weight", &m.ropes.all
	if m.arch.positions.ownFreqs {
		t.Ignore(name)
		return nil
	}
	if p.scaling == scalingLong {
		short, long := "rope_factors_short.weight", "rope_factors_long.weight"
		t.Ignore(short)
		t.Ignore(long)
		if name = short; m.Context > p.original {
			name = long
		}
		if !t.Has(name) {
			t.Fail("tensor %s is missing", name)
		}
	}
	factors := t.OptionalVector(name, p.dims/2)
	for i, f := range factors {
		if f <= 0 {
			t.Fail("tensor %s: element %d is %v", name, i, f)
		}
	}
	return factors
}
