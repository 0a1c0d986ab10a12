package models

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/recurrent"
	"github.com/lutra-lm/lutra/models/weights"
)

// selfAttention is a layer's grouped-query attention, from normed rows h to what
// it adds to the residual stream, y:
//
//	q, k, v = h·Wq, h·Wk, h·Wv     with biases, head norms, rotation
//	y = attention(q, keys, values)·Wo
//
// With an output gate attn_q makes one more number for each of a query, by whose
// sigmoid the attended values are multiplied. Biases and norms may be nil.
type selfAttention struct {
	place          kvPlace
	q, kv          int             // numbers of a row's queries, and of its keys
	valueNorm      []float32       // of each head of values: ones; nil: none
	qkv            weights.Stacked // and gates, if there are any
	normed         *normedStack    // in place of qkv's matrices; nil: they read h as it is
	gated          bool
	qHeads, kHeads heads
	vBias          []float32
	mask           attention.Mask
	subNorm        []float32 // of what o reads
	o              kernels.Linear
	oBias          []float32
	postNorm       []float32 // of y
	rotate, last   rotation  // of what qkv and o read
	onQKV, onO     *target
}

// heads is what becomes of a layer's queries or keys after their product.
type heads struct {
	dim       int
	bias      []float32 // nil: none
	norm      []float32 // [HeadDim] RMSNorm of each head, or of all together; nil: none
	normLast  bool      // the norm follows the rotation
	rope      ropeOrder
	ropeIndex int // which of the model's ropes
	temper    temper
}

// temper is what queries are multiplied by, the further back they may look: 1 + scale·log(1 + ⌊position/every⌋)
// (Meta 2025, "Llama 4", as Ministral 3 has it). Zero: nothing.
type temper struct {
	scale float32
	every int
}

func (t *temper) at(position int) float32 {
	return 1 + t.scale*float32(math.Log(float64(1+position/t.every)))
}

// temper reads it.
func (l *loader) temper() (t temper) {
	if l.Err() != nil || !l.arch.attention.tempered {
		return t
	}
	t.scale = float32(l.positive("attention.temperature_scale"))
	t.every = l.count("rope.scaling.original_context_length", 1, 1<<30, l.cfg.longest)
	return t
}

// attention loads that of layer i, whose keys and values are at place, with the state space
// beside it if there is one.
func (l *loader) attention(i int, place kvPlace, mask attention.Mask, shape recurrent.Shape) mixer {
	c, v, name := &l.cfg, &l.arch.attention, layerNames(i)
	kvHeads, dim := c.headsOf(place.kind)
	q, kv := c.Heads*dim, kvHeads*dim
	a := &selfAttention{place: place, q: q, kv: kv, gated: v.gated}
	anyWindow := mask.Window > 0
	if !l.windowed(i) {
		mask.Window, mask.Both = 0, false
	}
	order, ropeIndex := l.arch.positions.order, 0
	if l.arch.positions.windowedRope && (mask.Window > 0 || place.kind == 1) {
		ropeIndex = 1
	}
	if l.arch.positions.mayStand && !l.rotates() {
		order = ropeNone
	}
	if l.arch.positions.windowedOnly && anyWindow && mask.Window == 0 {
		order = ropeNone
	}
	if n := l.arch.positions.skipEvery; n > 0 && (i+1)%n == 0 {
		order = ropeNone
	}
	if v.sinks {
		mask.Sinks = l.Vector(name("attn_sinks.weight"), c.Heads)
	}
	a.mask = mask
	wq, wk, wv, out := name("attn_q.weight"), name("attn_k.weight"), name("attn_v.weight"), name("attn_output.weight")
	a.last = l.rotation(q, out)
	qkv := name("attn_qkv.weight")
	together := v.qkv == fused || v.qkv == either && l.file.Tensor(qkv) != nil
	a.normed = l.normedStack(i, []string{"attn_q", "attn_k", "attn_v"}, q, kv, kv)
	switch {
	case a.normed != nil:
		a.qkv.Sum = a.normed.sum
	case together:
		a.rotate = l.rotation(c.Hidden, qkv)
		a.qkv = l.Stack(l.Part(qkv, q+2*kv, 0, q, c.Hidden), l.Part(qkv, q+2*kv, q, q+kv, c.Hidden), l.Part(qkv, q+2*kv, q+kv, q+2*kv, c.Hidden))
	case place.reads:
		a.rotate = l.rotation(c.Hidden, wq)
		a.qkv = l.Stack(l.Whole(wq, q, c.Hidden))
	case v.valueNorm && l.file.Tensor(wv) == nil:
		a.rotate = l.rotation(c.Hidden, wq, wk)
		a.qkv = l.Stack(l.Whole(wq, q, c.Hidden), l.Whole(wk, kv, c.Hidden), l.Whole(wk, kv, c.Hidden))
		l.Params -= int64(kv) * int64(c.Hidden) // of which the file has one
	case v.besideStates:
		a.qkv = l.Stack(l.Whole(wq, q, c.Hidden), l.Whole(wk, kv, c.Hidden), l.Whole(wv, kv, c.Hidden), l.stateSpaceIn(i, shape.StateSpace))
	case v.gateApart:
		gate := name("attn_gate.weight")
		a.rotate = l.rotation(c.Hidden, wq, wk, wv, gate)
		a.qkv, a.gated = l.Stack(l.Whole(wq, q, c.Hidden), l.Whole(wk, kv, c.Hidden), l.Whole(wv, kv, c.Hidden), l.Whole(gate, q, c.Hidden)), true
	case v.gated:
		a.rotate = l.rotation(c.Hidden, wq, wk, wv)
		queries, gates := l.queriesAndGates(wq)
		a.qkv = l.Stack(slices.Concat(queries, []*weights.Stored{l.Whole(wk, kv, c.Hidden), l.Whole(wv, kv, c.Hidden)}, gates)...)
	default:
		a.rotate = l.rotation(c.Hidden, wq, wk, wv)
		a.qkv = l.Stack(l.Whole(wq, q, c.Hidden), l.Whole(wk, kv, c.Hidden), l.Whole(wv, kv, c.Hidden))
	}
	if a.normed == nil {
		a.onQKV = l.target(c.Hidden, &a.rotate, a.qkv.Rows...)
	}
	a.qHeads = heads{dim: dim, bias: l.OptionalVector(name("attn_q.bias"), q), rope: order, ropeIndex: ropeIndex}
	a.qHeads.temper = l.temper()
	a.kHeads = heads{dim: dim, bias: l.OptionalVector(name("attn_k.bias"), kv), rope: order, ropeIndex: ropeIndex}
	a.vBias = l.OptionalVector(name("attn_v.bias"), kv)
	if together && v.qkv == either {
		if b := l.OptionalVector(name("attn_qkv.bias"), q+2*kv); b != nil {
			a.qHeads.bias, a.kHeads.bias, a.vBias = b[:q], b[q:q+kv], b[q+kv:]
		}
	}
	switch v.qkNorm {
	case qkNormHeads, qkNormRotated:
		a.qHeads.norm = l.Vector(name("attn_q_norm.weight"), dim)
		if !place.reads {
			a.kHeads.norm = l.Vector(name("attn_k_norm.weight"), dim)
		}
	case qkNormStored:
		a.qHeads.norm = l.OptionalVector(name("attn_q_norm.weight"), dim)
		a.kHeads.norm = l.OptionalVector(name("attn_k_norm.weight"), dim)
	case qkNormAll:
		a.qHeads.norm = l.Vector(name("attn_q_norm.weight"), q)
		a.kHeads.norm = l.Vector(name("attn_k_norm.weight"), kv)
	}
	a.qHeads.normLast, a.kHeads.normLast = v.qkNorm == qkNormRotated, v.qkNorm == qkNormRotated
	if v.valueNorm {
		a.valueNorm = slices.Repeat([]float32{1}, dim)
	}
	switch {
	case l.arch.norms.sub:
		a.subNorm = l.Vector(name("attn_sub_norm.weight"), q)
	case a.normed != nil:
		a.subNorm = l.Vector(name("attn_output_norm_in.weight"), q)
	}
	a.o = l.Matrix(out, c.Hidden, q)
	a.onO = l.target(q, &a.last, whole(out, c.Hidden))
	a.oBias = l.OptionalVector(name("attn_output.bias"), c.Hidden)
	if l.arch.norms.post {
		a.postNorm = l.Vector(name("post_attention_norm.weight"), c.Hidden)
	}
	if v.besideStates {
		return l.besideStates(i, a, shape)
	}
	return a
}

// queriesAndGates returns the rows of a matrix that holds both a head, taken apart.
func (l *loader) queriesAndGates(name string) (queries, gates []*weights.Stored) {
	c, rows := &l.cfg, 2*l.cfg.Heads*l.cfg.HeadDim
	for at := 0; at < rows && l.Err() == nil; at += 2 * c.HeadDim {
		queries = append(queries, l.Part(name, rows, at, at+c.HeadDim, c.Hidden))
		gates = append(gates, l.Part(name, rows, at+c.HeadDim, at+2*c.HeadDim, c.Hidden))
	}
	return queries, gates
}

// rowWidth returns the width of [q, k, v, gates].
func (a *selfAttention) rowWidth() int { return a.qkv.Sum }

// project makes the queries, keys and values of h, and stores the keys and values.
func (a *selfAttention) project(s *rowShard) {
	if a.normed != nil {
		a.normed.run(s.qkv, s)
	} else {
		s.ops.rotate(s.h, s.rows, s.cfg.Hidden, &a.rotate)
		s.acts.Set(s.h, s.rows, s.cfg.Hidden)
		a.qkv.Mul(s.qkv, &s.acts, &s.part)
		s.adapt(s.qkv, a.onQKV)
	}
	s.ops.storeKV(s, a)
}

// attend turns the queries into y.
func (a *selfAttention) attend(s *rowShard) {
	if !a.onDevice(s) {
		s.att[a.place.kind].Run(s.a, s.qkv[:s.rows*a.qkv.Sum], &s.plans[a.place.kind], s.rowPos, s.kv, a.place.layer, &a.mask)
	}
	if a.gated {
		s.ops.gateOutput(s.a, s.qkv, s.rows, a.q, a.qkv.Sum)
	}
	s.ops.normInto(s.a, s.rows, a.subNorm, s.cfg.NormEps)
	s.ops.rotate(s.a, s.rows, a.q, &a.last)
	s.acts.Set(s.a, s.rows, a.q)
	a.o.Mul(s.y, &s.acts)
	s.adapt(s.y, a.onO)
	s.ops.addBias(s.y, s.rows, a.oBias)
	s.ops.normInto(s.y, s.rows, a.postNorm, s.cfg.postEps)
}

// storeKV finishes the queries, keys and values of a shard and writes the keys
// and values into their layer of the cache.
func (o *rowOps) storeKV(s *rowShard, a *selfAttention) {
	o.shard, o.layer = s, a
	o.each(s.rows, a.qkv.Sum, func(o *rowOps, i int) {
		s, a, p := o.shard, o.layer.(*selfAttention), &o.shard.rowPos[i]
		row, q, kv := rowOf(s.qkv, i, a.qkv.Sum), a.q, a.kv
		a.qHeads.finish(s, i, row[:q])
		if a.place.reads {
			return
		}
		keys, values := row[q:q+kv], row[q+kv:q+2*kv]
		a.kHeads.finish(s, i, keys)
		if a.vBias != nil {
			vector.AddInto(values, a.vBias)
		}
		normAll(values, a.valueNorm, s.cfg.NormEps)
		s.kv.Store(a.place.layer, p.Seq, p.Pos, keys, values)
	})
}

// finish does to heads x of row i what follows their product.
func (h *heads) finish(s *rowShard, i int, x []float32) {
	at := &s.angles[h.ropeIndex]
	cos, sin := rowOf(at.cos, i, at.pairs), rowOf(at.sin, i, at.pairs)
	if h.bias != nil {
		vector.AddInto(x, h.bias)
	}
	if !h.normLast {
		normAll(x, h.norm, s.cfg.NormEps)
	}
	switch h.rope {
	case ropePairs:
		vector.RopePairs(x, h.dim, cos, sin)
	case ropeHalves:
		vector.RopeHalves(x, h.dim, cos, sin)
	}
	if h.normLast {
		normAll(x, h.norm, s.cfg.NormEps)
	}
	if h.temper.scale != 0 {
		vector.ScaleInto(x, h.temper.at(s.rowPos[i].Pos))
	}
}

// normAll applies a norm, if there is one, to heads x.
func normAll(x, norm []float32, eps float32) {
	for from := 0; norm != nil && from < len(x); from += len(norm) {
		head := x[from : from+len(norm)]
		vector.RMSNorm(head, head, norm, eps)
	}
}

// onDevice has the backend compute the attention of the rows of s into s.a, and tells
// whether it has.
func (a *selfAttention) onDevice(s *rowShard) bool {
	c, d := s.cfg, s.device
	// It knows layers that have the same heads.
	if d.accelerator == nil || d.backend.Err() != nil || c.Others.Layers > 0 {
		return false
	}
	d.request = Attention{
		Out: s.a[:s.rows*c.Heads*c.HeadDim], QKV: s.qkv, Width: a.qkv.Sum, Heads: c.Heads, Rows: s.rowPos, Cache: s.kv, Layer: a.place.layer,
		Scale: a.mask.Scale, Cap: a.mask.Cap, Window: a.mask.Window, Both: a.mask.Both, Slopes: a.mask.Slopes, Sinks: a.mask.Sinks,
	}
	return d.accelerator.Attend(&d.request)
}
