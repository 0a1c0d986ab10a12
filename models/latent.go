package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/load"
)

// latentShape has the sizes of multi-head latent attention; zero: a model has none.
type latentShape struct {
	queryRank int // of queries; 0: they are a product of h
	rank      int // of keys and values: elements of a latent
	plain     int // elements of a head that do not rotate
	rotated   int // elements of a head that do, of keys the same for all heads
	value     int // elements of a head's value
}

// latentAttention is a layer's multi-head latent attention (DeepSeek-AI 2024,
// "DeepSeek-V2", §2.1), from normed rows h to what it adds to the residual stream, y. Of a
// token the cache has one latent for all heads, from which each head makes its key and
// value. These products stand with the queries and the outputs instead (§C), so that heads
// attend to latents:
//
//	q = norm(h·Wqa)·Wqb; c, r = h·Wkv; c = norm(c)
//	query = [q_plain·Wkey, rope(q_rotated)]     of each head
//	key, value = [c, rope(r)], c                of all heads
//	y = (attention(queries, keys, values)·Wvalue)·Wo
type latentAttention struct {
	place      kvPlace
	mask       attention.Mask
	queryDown  product // Wqa; none: queryUp reads h
	queryNorm  []float32
	queryUp    product // Wqb
	down       product // Wkv
	norm       []float32
	keys       headMatrices // Wkey, [rank][plain]
	values     headMatrices // Wvalue, [value][rank]
	o          product
	heads, dim int
	latentShape
}

// readLatent reads the hyper-parameters of latent attention, if the model has it.
func readLatent(h *load.Header, m *spec) {
	if !m.arch.attention.latent {
		return
	}
	s := &m.latent
	s.queryRank = h.Int("attention.q_lora_rank", 0, load.MaxDim, 0)
	s.rank = h.Int("attention.kv_lora_rank", 1, load.MaxDim, load.Required)
	key := h.Int("attention.key_length_mla", 2, load.MaxDim, load.Required)
	s.value = h.Int("attention.value_length_mla", 1, load.MaxDim, load.Required)
	s.rotated = h.Int("rope.dimension_count", 2, load.MaxDim, load.Required)
	s.plain = key - s.rotated
	switch {
	case h.Err() != nil:
	case s.plain < 1:
		h.Fail("%s is %d, of which %s is %d: nothing is left", h.Key("attention.key_length_mla"), key, h.Key("rope.dimension_count"), s.rotated)
	case s.rank+s.rotated != m.HeadDim || m.KVHeads != 1:
		h.Fail("%s: %d KV heads of %d elements, want one of %d and %d", h.Key("attention.key_length"), m.KVHeads, m.HeadDim, s.rank, s.rotated)
	case int64(m.Heads)*int64(max(key, s.value)) > load.MaxDim:
		h.Fail("%s: %d heads of %d and %d elements are too many", h.Key("attention.head_count"), m.Heads, key, s.value)
	}
	if x := h.Float("attention.temperature_scale", 0); x != 0 {
		h.Fail("%s is %v: scores that depend on positions are not supported", h.Key("attention.temperature_scale"), x)
	}
}

// latentWidth returns the width of queries, by whose root scores are divided.
func latentWidth(m *spec) int { return max(1, m.latent.plain+m.latent.rotated) }

// latentGain returns what YaRN multiplies scores by ("DeepSeek-V2", §3.1.4), in place of
// queries and keys; ok is false if the file does not say.
func latentGain(h *load.Header, m *spec) (gain float64, ok bool) {
	const name = "rope.scaling.yarn_log_multiplier"
	if !h.Has(name) || !m.arch.attention.latent {
		return 1, false
	}
	factor := max(1, h.Float("rope.scaling.factor", 1))
	if gain = 1 + h.Float(name, 0)*math.Log(factor); gain <= 0 || gain > load.MaxDim {
		h.Fail("%s is %v: out of range", h.Key(name), h.Value(name))
		return 1, true
	}
	return gain * gain, true
}

// loadLatentAttention loads the latent attention of a layer.
func loadLatentAttention(t *tensors, m *spec, y *layerSpec) *latentAttention {
	s := m.latent
	a := &latentAttention{place: y.place, mask: m.mask, heads: m.Heads, dim: m.HeadDim, latentShape: s}
	queries := m.Heads * (s.plain + s.rotated)
	if s.queryRank > 0 {
		a.queryDown, a.queryNorm = t.matrix(y.tensor("attn_q_a.weight"), s.queryRank, m.Hidden), t.Vector(y.tensor("attn_q_a_norm.weight"), s.queryRank)
		a.queryUp = t.matrix(y.tensor("attn_q_b.weight"), queries, s.queryRank)
	} else {
		a.queryUp = t.matrix(y.tensor("attn_q.weight"), queries, m.Hidden)
	}
	a.down, a.norm = t.matrix(y.tensor("attn_kv_a_mqa.weight"), m.HeadDim, m.Hidden), t.Vector(y.tensor("attn_kv_a_norm.weight"), s.rank)
	t.Place(nil) // workers multiply by themselves
	a.keys = loadPerHead(t, y.tensor("attn_k_b.weight"), m.Heads, s.rank, s.plain)
	a.values = loadPerHead(t, y.tensor("attn_v_b.weight"), m.Heads, s.value, s.rank)
	t.Place(t.backend)
	a.o = t.matrix(y.tensor("attn_output.weight"), m.Hidden, m.Heads*s.value)
	return a
}

// rowWidth returns the width of the queries.
func (a *latentAttention) rowWidth() int { return a.heads * a.dim }

// project makes the queries of h, and stores the latents.
func (a *latentAttention) project(s *rowShard) {
	l := &s.latent
	a.down.run(s, l.latents, s.h)
	if !a.queryDown.none() {
		a.queryDown.multiply(s, l.low)
		s.ops.norm(l.low, l.low, s.rows, a.queryNorm, s.cfg.NormEps)
		a.queryUp.read(s, l.low)
	}
	a.queryUp.multiply(s, l.heads)
	storeLatents(s, a)
	head := a.plain + a.rotated
	s.perHead.run(s, &a.keys, headRows{s.qkv, a.heads * a.dim, a.dim, a.rank}, headRows{l.heads, a.heads * head, head, a.plain})
}

// attend turns the queries into y.
func (a *latentAttention) attend(s *rowShard) {
	width := a.heads * a.dim
	s.att[a.place.kind].Run(s.a, s.qkv[:s.rows*width], &s.plans[a.place.kind], s.rowPos, s.kv, a.place.layer, &a.mask)
	s.perHead.run(s, &a.values, headRows{s.latent.heads, a.heads * a.value, a.value, a.value}, headRows{s.a, width, a.dim, a.rank})
	a.o.run(s, s.y, s.latent.heads)
}

// storeLatents finishes what rotates of queries, and the latents, which it writes into
// their layer of the cache.
func storeLatents(s *rowShard, a *latentAttention) {
	o := &s.ops
	o.shard, o.layer = s, a
	o.each(s.rows, a.heads*a.dim, func(o *rowOps, i int) {
		s, a, p, at := o.shard, o.layer.(*latentAttention), &o.shard.rowPos[i], &o.shard.angles[0]
		cos, sin := rowOf(at.cos, i, at.pairs), rowOf(at.sin, i, at.pairs)
		key := rowOf(s.latent.latents, i, a.dim)
		vector.RMSNorm(key[:a.rank], key[:a.rank], a.norm, s.cfg.NormEps)
		vector.RopePairs(key[a.rank:], a.rotated, cos, sin)
		value := rowOf(s.latent.values, i, a.dim)
		copy(value[:a.rank], key)
		clear(value[a.rank:])
		s.kv.Store(a.place.layer, p.Seq, p.Pos, key, value)
		from, to, head := s.latent.heads[i*a.heads*(a.plain+a.rotated):], rowOf(s.qkv, i, a.heads*a.dim), a.plain+a.rotated
		for h := range a.heads {
			rotated := to[h*a.dim+a.rank : (h+1)*a.dim]
			copy(rotated, from[h*head+a.plain:])
			vector.RopePairs(rotated, a.rotated, cos, sin)
		}
	})
}

// latentRows is the memory of a shard for it.
type latentRows struct {
	low             []float32 // [rows][queryRank]
	heads           []float32 // [rows][Heads] × queries, then values
	latents, values []float32 // [rows][rank+rotated]
}

// reserve makes room for n rows.
func (r *latentRows) reserve(n int, m *spec) {
	if s := &m.latent; s.rank > 0 {
		r.low, r.heads = make([]float32, n*s.queryRank), make([]float32, n*m.Heads*max(s.plain+s.rotated, s.value))
		r.latents, r.values = make([]float32, n*m.HeadDim), make([]float32, n*m.HeadDim)
	}
}
