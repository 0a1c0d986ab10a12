package models

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/load"
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
	q, kv          int          // numbers of a row's queries, and of its keys
	valueNorm      []float32    // of each head of values: ones; nil: none
	qkv            product      // and gates, if there are any
	normed         *normedStack // in place of qkv's matrices; nil: they read h as it is
	gated          bool
	qHeads, kHeads heads
	vBias          []float32
	mask           attention.Mask
	subNorm        []float32 // of what o reads
	o              product
	oBias          []float32
	postNorm       []float32 // of y
}

// heads describes the operations on a layer's queries or keys after their product.
type heads struct {
	dim       int
	bias      []float32 // nil: none
	norm      []float32 // [HeadDim] RMSNorm of each head, or of all together; nil: none
	normLast  bool      // the norm follows the rotation
	rope      ropeOrder
	ropeIndex int // which of the model's ropes
	temper    temper
}

// temper multiplies queries, the more the further back they may look: 1 + scale·log(1 + ⌊position/every⌋)
// (Meta 2025, "Llama 4", as Ministral 3 has it). Zero: nothing.
type temper struct {
	scale float32
	every int
}

func (t *temper) at(position int) float32 {
	return 1 + t.scale*float32(math.Log(float64(1+position/t.every)))
}

// readTemper reads it.
func readTemper(h *load.Header, m *spec) {
	if m.arch.attention.tempered {
		m.temper.scale = float32(h.NotNegative("attention.temperature_scale"))
		m.temper.every = h.Int("rope.scaling.original_context_length", 1, load.MaxContext, m.longest)
	}
}

// loadAttention loads the attention of a layer, with the state space beside it if there is one.
func loadAttention(t *tensors, m *spec, y *layerSpec) mixer {
	v, out := &m.arch.attention, y.tensor("attn_output.weight")
	kvHeads, dim := m.headsOf(y.place.kind)
	a := &selfAttention{place: y.place, q: m.Heads * dim, kv: kvHeads * dim, gated: v.gated || v.gateApart, mask: m.maskOf(y)}
	if v.sinks {
		a.mask.Sinks = t.Vector(y.tensor("attn_sinks.weight"), m.Heads)
	}
	if a.normed = loadNormedStack(t, m, y, []string{"attn_q", "attn_k", "attn_v"}, a.q, a.kv, a.kv); a.normed != nil {
		a.qkv.Sum = a.normed.sum
	} else {
		a.qkv = t.rotatedProduct(m.Hidden, qkvParts(t, m, y, a)...)
	}
	a.loadHeads(t, m, y, dim)
	switch {
	case m.arch.norms.sub:
		a.subNorm = t.Vector(y.tensor("attn_sub_norm.weight"), a.q)
	case a.normed != nil:
		a.subNorm = t.Vector(y.tensor("attn_output_norm_in.weight"), a.q)
	}
	a.o = t.rotatedMatrix(out, m.Hidden, a.q)
	a.oBias = t.OptionalVector(y.tensor("attn_output.bias"), m.Hidden)
	if m.arch.norms.post {
		a.postNorm = t.Vector(y.tensor("post_attention_norm.weight"), m.Hidden)
	}
	if m.arch.states.kind == besideStates {
		return loadBesideStates(t, m, y, a)
	}
	return a
}

// qkvName returns the name of the one matrix of queries, keys and values, empty where they have one each.
func qkvName(t *tensors, m *spec, y *layerSpec) string {
	name := y.tensor("attn_qkv")
	if v := &m.arch.attention; v.qkv == fused || v.qkv == either && t.Has(name+".weight") {
		return name
	}
	return ""
}

// qkvParts finds the matrices that make queries, keys, values and what stands after them in a row.
func qkvParts(t *tensors, m *spec, y *layerSpec, a *selfAttention) []*load.Stored {
	whole := func(name string, rows int) *load.Stored { return t.Whole(y.tensor(name+".weight"), rows, m.Hidden) }
	if qkv := qkvName(t, m, y); qkv != "" {
		part := func(lo, hi int) *load.Stored { return t.Rows(qkv+".weight", lo, hi, m.Hidden, a.q+2*a.kv) }
		return []*load.Stored{part(0, a.q), part(a.q, a.q+a.kv), part(a.q+a.kv, a.q+2*a.kv)}
	}
	v := &m.arch.attention
	switch {
	case y.place.reads:
		return []*load.Stored{whole("attn_q", a.q)}
	case v.valueNorm && !t.Has(y.tensor("attn_v.weight")):
		t.Params -= int64(a.kv) * int64(m.Hidden) // of which the file has one
		return []*load.Stored{whole("attn_q", a.q), whole("attn_k", a.kv), whole("attn_k", a.kv)}
	case v.gated:
		queries, gates := queriesAndGates(t, m, y.tensor("attn_q.weight"))
		return slices.Concat(queries, []*load.Stored{whole("attn_k", a.kv), whole("attn_v", a.kv)}, gates)
	}
	parts := []*load.Stored{whole("attn_q", a.q), whole("attn_k", a.kv), whole("attn_v", a.kv)}
	if v.gateApart {
		parts = append(parts, whole("attn_gate", a.q))
	}
	if m.arch.states.kind == besideStates {
		parts = append(parts, stateSpaceIn(t, m, y))
	}
	return parts
}

// queriesAndGates returns the rows of a matrix that holds both a head, taken apart.
func queriesAndGates(t *tensors, m *spec, name string) (queries, gates []*load.Stored) {
	rows := 2 * m.Heads * m.HeadDim
	for at := 0; at < rows && t.Err() == nil; at += 2 * m.HeadDim {
		queries = append(queries, t.Rows(name, at, at+m.HeadDim, m.Hidden, rows))
		gates = append(gates, t.Rows(name, at+m.HeadDim, at+2*m.HeadDim, m.Hidden, rows))
	}
	return queries, gates
}

// loadHeads loads the biases and norms of queries, keys and values, of dim numbers a head.
func (a *selfAttention) loadHeads(t *tensors, m *spec, y *layerSpec, dim int) {
	v := &m.arch.attention
	a.qHeads = heads{dim: dim, normLast: v.qkNorm == qkNormRotated}
	a.qHeads.rope, a.qHeads.ropeIndex = m.ropeOf(y)
	a.kHeads = a.qHeads
	a.qHeads.temper = m.temper
	a.qHeads.bias = t.OptionalVector(y.tensor("attn_q.bias"), a.q)
	a.kHeads.bias = t.OptionalVector(y.tensor("attn_k.bias"), a.kv)
	a.vBias = t.OptionalVector(y.tensor("attn_v.bias"), a.kv)
	if qkv := qkvName(t, m, y); qkv != "" && v.qkv == either {
		if b := t.OptionalVector(qkv+".bias", a.q+2*a.kv); b != nil {
			a.qHeads.bias, a.kHeads.bias, a.vBias = b[:a.q], b[a.q:a.q+a.kv], b[a.q+a.kv:]
		}
	}
	queries, keys := y.tensor("attn_q_norm.weight"), y.tensor("attn_k_norm.weight")
	switch v.qkNorm {
	case qkNormHeads, qkNormRotated:
		a.qHeads.norm = t.Vector(queries, dim)
		if !y.place.reads {
			a.kHeads.norm = t.Vector(keys, dim)
		}
	case qkNormStored:
		a.qHeads.norm, a.kHeads.norm = t.OptionalVector(queries, dim), t.OptionalVector(keys, dim)
	case qkNormAll:
		a.qHeads.norm, a.kHeads.norm = t.Vector(queries, a.q), t.Vector(keys, a.kv)
	}
	if v.valueNorm {
		a.valueNorm = slices.Repeat([]float32{1}, dim)
	}
}

// rowWidth returns the width of [q, k, v, gates].
func (a *selfAttention) rowWidth() int { return a.qkv.Sum }

// project makes the queries, keys and values of h, and stores the keys and values.
func (a *selfAttention) project(s *rowShard) {
	if a.normed != nil {
		a.normed.run(s.qkv, s)
	} else {
		a.qkv.run(s, s.qkv, s.h)
	}
	storeKV(s, a)
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
	a.o.run(s, s.y, s.a)
	s.ops.addBias(s.y, s.rows, a.oBias)
	s.ops.normInto(s.y, s.rows, a.postNorm, s.cfg.postEps)
}

// storeKV finishes the queries, keys and values of a shard and writes the keys
// and values into their layer of the cache.
func storeKV(s *rowShard, a *selfAttention) {
	o := &s.ops
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
		a.settle(s.kv, keys, p.Pos)
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
		Drift: a.mask.DriftIn(s.kv),
	}
	return d.accelerator.Attend(&d.request)
}
