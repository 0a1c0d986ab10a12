package models

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/kv"
)

// DenseLayers is a model as an Accelerator computes it: layers, each as one, of the
// residual stream x.
//
//	x += Factor · postNorm(attention(heads(norm(x)·QKV))·O)
//	                        or ((c · conv(b·x))·O)            b, c, x = norm(x)·QKV
//	                        or (norm(deltaNet(q, k, v))·silu(z))·O    q, k, v, z = norm(x)·QKV
//	x += Factor · postNorm((act(gate)·up)·Down)     gate, up = norm(x)·GateUp
//	                        or a mixture of experts, which rows choose without the Accelerator
//	logits = norm(x)·Head
//
// and behind each sum, of encoders, x = norm(x). Norms of x are RMSNorms or LayerNorms, others RMSNorms;
// all of a layer, and all biases, may be nil.
type DenseLayers struct {
	Hidden, Heads, KVHeads, HeadDim int
	Eps, Factor                     float32
	Parallel                        bool           // gate and up read what QKV reads
	Bidirectional                   bool           // tokens attend to later ones too: a step has whole sequences
	Layers                          []*DenseLayer  // nil: the layer has something else
	Head                            kernels.Linear // nil: likewise, or there is none
	HeadNorm                        DenseNorm
}

// DenseNorm is a norm of the residual stream: LayerNorm where it has a bias, else RMSNorm.
type DenseNorm struct{ Weight, Bias []float32 } // [Hidden], or nil

// DenseLayer is the weights of a layer: attention, or what stands in its place, then a feed-forward or a mixture.
type DenseLayer struct {
	Norm  DenseNorm
	QKV   []kernels.Linear // one product, or q, k and v; with gates each head's q, k, v, and each head's gate
	Conv  *DenseConv       // in place of attention; nil: none
	Delta *DenseDelta      // likewise
	DenseAttention
	O       kernels.Linear // its outputs are [Hidden]
	SumNorm DenseNorm      // of x and what attention has added
	Mixture bool           // in place of the feed-forward
	DenseFFN
}

// DenseAttention is self-attention between the products QKV and O.
type DenseAttention struct {
	KV                          int  // layer of the cache
	Gated                       bool // what O reads is multiplied by the sigmoid of gates
	Q, K                        DenseHeads
	VBias                       []float32
	Rope                        int // which of the step's angles
	Rotated, RotationOfDistance int // numbers of a head that rotate, and how far apart they do; 0: none
	Scale                       float32
	Cap                         float32   // scores are drawn into (-Cap, Cap); 0: they are not
	Window                      int       // 0: all keys
	Both                        bool      // the window lies on both sides, as attention.Mask has it
	Sinks                       []float32 // [Heads], as Attention has them
	AttendedNorm                []float32 // [Heads·HeadDim] of what O reads
	OBias, OPostNorm            []float32 // [Hidden]
}

// DenseFFN is the feed-forward of a layer.
type DenseFFN struct {
	FFNNorm                DenseNorm        // none of parallel layers
	Width                  int              // of what gate and up make
	GateUp                 []kernels.Linear // one product, or gate and up
	GateUpBias             []float32        // of their outputs, one after the other
	Ungated                bool             // GateUp makes gate alone, of which Unit has no up
	Unit                   GatedUnit
	DownNorm               []float32 // [Width] of what Down reads
	Down                   kernels.Linear
	DownBias, DownPostNorm []float32 // [Hidden]
	FFNSumNorm             DenseNorm // of x and what the feed-forward has added
}

// DenseConv is a gated short convolution: the layer's QKV are b, c and x, [Hidden] each, O reads what it makes.
type DenseConv struct {
	Taps    int
	Weights []float32 // [Taps][Hidden], a row's own last
	State   int       // where its part, the last Taps-1 of b·x, begins in a sequence's recurrent state
}

// DenseDelta is a gated delta net: see gatedDelta. The layer's QKV are q, k, v and z, or the first three and z.
type DenseDelta struct {
	KeyHeads, ValueHeads, Width, Taps int
	Grouped                           bool             // value head h reads with head h·KeyHeads/ValueHeads, else h mod KeyHeads
	Conv                              []float32        // [Taps][Channels], a row's own last
	Gates                             []kernels.Linear // of what QKV reads: betas and alphas, [ValueHeads] each, or both
	A, DT                             []float32        // [ValueHeads]
	Norm                              []float32        // [Width] of each head's output
	State                             int              // where its part begins in a sequence's recurrent state: see recurrent.Shape
}

// Values returns the numbers of all value heads of a token.
func (d *DenseDelta) Values() int { return d.ValueHeads * d.Width }

// Channels returns the numbers of a token that are convolved.
func (d *DenseDelta) Channels() int { return 2*d.KeyHeads*d.Width + d.Values() }

// DenseHeads describes the operations on queries or keys after their product.
type DenseHeads struct {
	Bias     []float32
	Norm     []float32 // [HeadDim] of each head, or of all together
	NormLast bool      // it follows the rotation
}

// DenseStep is the rows of a step, before some layer.
type DenseStep struct {
	X      []float32 // [rows][Hidden]
	Rows   []RowPos
	Wanted []bool          // [rows] the row wants logits
	Cos    [2][]float32    // [rows][rotated/2], by each of the model's ropes
	Sin    [2][]float32    //
	Spans  []RecurrentSpan // of models with recurrent layers: their states are as the rows want them
	Cache  *kv.Cache       // gets the rows' keys and values
	Logits []float32       // [rows that want them][Vocab], set if the head is computed
	Model  *DenseLayers    //
	First  int             // the layer
	// Experts, if not nil, belong to the layer before First: their outputs are added to X first. A mixture whose
	// rows have chosen is then no request of its own.
	Experts *Experts
	// Within is set where layer next of RunLayers is computed up to its mixture.
	Within bool
}

// offer describes m to the accelerator, if there is one, which may compute layers of it: those that the CPU
// would compute otherwise are left out.
func (m *decoder) offer(accelerator Accelerator, opt *LoadOptions) {
	c := m.spec
	if accelerator == nil || m.inputs != nil || c.Others.Layers > 0 || opt.Observe != nil || c.postEps != c.NormEps {
		return
	}
	d := &DenseLayers{Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Eps: c.NormEps, Factor: c.factors.residual, Parallel: c.arch.norms.parallel, Bidirectional: c.Bidirectional}
	for i := range m.layers {
		y := m.layers[i].dense(m.ropes)
		if y != nil && m.enc.normsAfter() {
			n := &m.enc.layers[i]
			y.SumNorm, y.FFNSumNorm = n.attention.dense(), n.ffn.dense()
		}
		d.Layers = append(d.Layers, y)
	}
	if h := &m.head; !h.out.none() && h.dense.none() && h.bias == nil && h.out.rotated.Block == 0 && m.norm.known() {
		d.Head, d.HeadNorm = h.out.Device(), m.norm.dense()
	}
	if !slices.ContainsFunc(d.Layers, func(y *DenseLayer) bool { return y != nil }) || !accelerator.Layers(d) {
		return
	}
	m.dense = d
	m.spec.GuessBytes = 0 // the backend has the states
	for i, y := range d.Layers {
		if y != nil && y.Mixture {
			m.layers[i].ffn.(*mixture).joins = true
		}
	}
}

// known tells whether the norm is one that a DenseNorm describes.
func (n *rowNorm) known() bool { return n.centred == (n.bias != nil) }

func (n *rowNorm) dense() DenseNorm { return DenseNorm{n.weight, n.bias} }

// dense describes the layer, nil if it has something that a DenseLayer has not.
func (y *decoderLayer) dense(ropes []rope) *DenseLayer {
	if y.end != nil || y.mixer == nil || !y.norm.known() || !y.ffnNorm.known() {
		return nil
	}
	d := &DenseLayer{Norm: y.norm.dense()}
	switch f := y.ffn.(type) {
	case *mixture:
		d.Mixture = true
	case *feedForward:
		if f.normed != nil || f.up.rotated.Block+f.down.rotated.Block > 0 {
			return nil
		}
		d.DenseFFN = f.dense(y.ffnNorm.dense())
	default:
		return nil
	}
	switch x := y.mixer.(type) {
	case *shortConv:
		d.QKV, d.O, d.Conv = x.in.Devices(), x.out.Device(), x.dense()
	case *gatedDelta:
		if x.qkvz.rotated.Block+x.out.rotated.Block > 0 {
			return nil
		}
		d.QKV, d.O, d.Delta = x.qkvz.Devices(), x.out.Device(), x.dense()
	case *selfAttention:
		if !x.plain() {
			return nil
		}
		d.QKV, d.O, d.DenseAttention = x.qkv.Devices(), x.o.Device(), x.dense(ropes)
	default:
		return nil
	}
	return d
}

// dense describes the feed-forward for an Accelerator.
func (f *feedForward) dense(norm DenseNorm) DenseFFN {
	return DenseFFN{
		FFNNorm: norm, Width: f.width, GateUp: f.up.Devices(), GateUpBias: f.upBias, Ungated: f.ungated, Unit: f.unit,
		DownNorm: f.subNorm, Down: f.down.Device(), DownBias: f.downBias, DownPostNorm: f.postNorm,
	}
}

// plain tells whether a DenseAttention has all that the attention has.
func (a *selfAttention) plain() bool {
	return a.normed == nil && !a.place.reads && a.place.kind == 0 && a.valueNorm == nil && a.qkv.rotated.Block+a.o.rotated.Block == 0 &&
		a.mask.Slopes == nil && a.qHeads.temper.scale == 0
}

// dense describes the attention for an Accelerator.
func (a *selfAttention) dense(ropes []rope) DenseAttention {
	d := DenseAttention{
		KV: a.place.layer, Gated: a.gated, VBias: a.vBias, Rope: a.qHeads.ropeIndex,
		Q:     DenseHeads{a.qHeads.bias, a.qHeads.norm, a.qHeads.normLast},
		K:     DenseHeads{a.kHeads.bias, a.kHeads.norm, a.kHeads.normLast},
		Scale: a.mask.Scale, Cap: a.mask.Cap, Window: a.mask.Window, Both: a.mask.Both, Sinks: a.mask.Sinks,
		AttendedNorm: a.subNorm, OBias: a.oBias, OPostNorm: a.postNorm,
	}
	switch pairs := ropes[d.Rope].pairs(); a.qHeads.rope {
	case ropePairs:
		d.Rotated, d.RotationOfDistance = 2*pairs, 1
	case ropeHalves:
		d.Rotated, d.RotationOfDistance = 2*pairs, pairs
	}
	return d
}

// wholeLayers has the backend compute layers from first on, and the head behind the last one. Rows choose
// their experts between its requests. It returns the first layer that it has not: with the head, stages.
func (m *decoder) wholeLayers(s *rowShard, first int) int {
	d := s.device
	if m.dense == nil || d.adapted || m.dense.Layers[first] == nil {
		return first
	}
	var chosen *mixture // of layer first-1, whose experts may be part of the next request
	for d.backend.Err() == nil && (first == len(m.layers) || m.dense.Layers[first] != nil) {
		step := m.wholeStep(s, first, chosen)
		next := d.accelerator.RunLayers(step)
		if next == first && !step.Within {
			if chosen == nil {
				return first
			}
			m.finish(s, chosen)
			chosen = nil
			continue
		}
		if chosen != nil {
			chosen.pass.end()
			chosen = nil
		}
		if next > len(m.layers) {
			wanted := 0
			for _, w := range step.Wanted {
				if w {
					wanted++
				}
			}
			m.head.finish(s, wanted)
			return next
		}
		if m.last >= first && (m.last < next || m.last == next && step.Within) {
			s.trim(m.layers[m.last].mixer.rowWidth(), m.last+1 < len(m.layers))
		}
		if !step.Within {
			return next
		}
		if s.rows == 0 {
			return m.stages()
		}
		first = next + 1
		m.layers[next].ffnNorm.run(s)
		chosen = m.layers[next].ffn.(*mixture)
		if chosen.pass.choose(&chosen.expertSet, s); chosen.pass.fusedRequest() == nil {
			m.finish(s, chosen)
			chosen = nil
		}
	}
	if chosen != nil {
		m.finish(s, chosen)
	}
	return first
}

// wholeStep returns the backend's request from layer first on; the rows have chosen experts of the layer before, or nil.
func (m *decoder) wholeStep(s *rowShard, first int, chosen *mixture) *DenseStep {
	step := &s.device.step
	*step = DenseStep{X: s.x[:s.rows*s.cfg.Hidden], Rows: s.rowPos, Wanted: s.wanted, Spans: s.spans, Cache: s.kv, Logits: s.logits, Model: m.dense, First: first}
	for i := range m.ropes {
		step.Cos[i], step.Sin[i] = s.angles[i].cos, s.angles[i].sin
	}
	if chosen != nil {
		step.Experts = chosen.pass.fusedRequest()
	}
	return step
}

// finish adds to the stream what rows make with the experts that they have chosen.
func (m *decoder) finish(s *rowShard, chosen *mixture) {
	chosen.pass.finish()
	m.add(s)
}
