package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/weights"
)

// latentShape is what multi-head latent attention is made of; zero: a model has none.
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
	queryDown  kernels.Linear // Wqa; nil: queryUp reads h
	queryNorm  []float32
	queryUp    kernels.Linear // Wqb
	down       kernels.Linear // Wkv
	norm       []float32
	keys       []weights.Stacked // [Heads] Wkey, [rank][plain]
	values     []weights.Stacked // [Heads] Wvalue, [value][rank]
	o          kernels.Linear
	heads, dim int
	latentShape

	onQueryDown, onQueryUp, onDown, onO *target
	onKeys, onValues                    *target
}

// latentShape reads the hyper-parameters of latent attention, if the model has it.
func (l *loader) latentShape() (s latentShape) {
	c := &l.cfg
	if !l.arch.attention.latent || l.Err() != nil {
		return s
	}
	s.queryRank = l.count("attention.q_lora_rank", 0, maxDim, 0)
	s.rank = l.count("attention.kv_lora_rank", 1, maxDim, required)
	key := l.count("attention.key_length_mla", 2, maxDim, required)
	s.value = l.count("attention.value_length_mla", 1, maxDim, required)
	s.rotated = l.count("rope.dimension_count", 2, maxDim, required)
	s.plain = key - s.rotated
	switch {
	case l.Err() != nil:
	case s.plain < 1:
		l.Fail("%s is %d, of which %s is %d: nothing is left", l.key("attention.key_length_mla"), key, l.key("rope.dimension_count"), s.rotated)
	case s.rank+s.rotated != c.HeadDim || c.KVHeads != 1:
		l.Fail("%s: %d KV heads of %d elements, want one of %d and %d", l.key("attention.key_length"), c.KVHeads, c.HeadDim, s.rank, s.rotated)
	case int64(c.Heads)*int64(max(key, s.value)) > maxDim:
		l.Fail("%s: %d heads of %d and %d elements are too many", l.key("attention.head_count"), c.Heads, key, s.value)
	}
	if x := l.number("attention.temperature_scale", 0); x != 0 {
		l.Fail("%s is %v: scores that depend on positions are not supported", l.key("attention.temperature_scale"), x)
	}
	return s
}

// latentWidth is what scores are divided by the root of.
func latentWidth(c *Config) int { return max(1, c.latent.plain+c.latent.rotated) }

// latentGain returns what YaRN multiplies scores by ("DeepSeek-V2", §3.1.4), in place of
// queries and keys; ok is false if the file does not say.
func (l *loader) latentGain() (gain float64, ok bool) {
	const name = "rope.scaling.yarn_log_multiplier"
	if _, ok := l.file.Metadata[l.key(name)]; !ok || !l.arch.attention.latent {
		return 1, false
	}
	factor := max(1, l.number("rope.scaling.factor", 1))
	if gain = 1 + l.number(name, 0)*math.Log(factor); gain <= 0 || gain > maxDim {
		l.Fail("%s is %v: out of range", l.key(name), l.file.Metadata[l.key(name)])
		return 1, true
	}
	return gain * gain, true
}

// latentAttention loads that of layer i, whose latents are at place.
func (l *loader) latentAttention(i int, place kvPlace, mask attention.Mask) *latentAttention {
	c, name, s := &l.cfg, layerNames(i), l.cfg.latent
	a := &latentAttention{place: place, mask: mask, heads: c.Heads, dim: c.HeadDim, latentShape: s}
	queries := c.Heads * (s.plain + s.rotated)
	if s.queryRank > 0 {
		a.queryDown, a.queryNorm = l.Matrix(name("attn_q_a.weight"), s.queryRank, c.Hidden), l.Vector(name("attn_q_a_norm.weight"), s.queryRank)
		a.queryUp = l.Matrix(name("attn_q_b.weight"), queries, s.queryRank)
		a.onQueryDown = l.target(c.Hidden, &rotation{}, whole(name("attn_q_a.weight"), s.queryRank))
		a.onQueryUp = l.target(s.queryRank, &rotation{}, whole(name("attn_q_b.weight"), queries))
	} else {
		a.queryUp = l.Matrix(name("attn_q.weight"), queries, c.Hidden)
		a.onQueryUp = l.target(c.Hidden, &rotation{}, whole(name("attn_q.weight"), queries))
	}
	a.down, a.norm = l.Matrix(name("attn_kv_a_mqa.weight"), c.HeadDim, c.Hidden), l.Vector(name("attn_kv_a_norm.weight"), s.rank)
	a.onDown = l.target(c.Hidden, &rotation{}, whole(name("attn_kv_a_mqa.weight"), c.HeadDim))
	a.onKeys = l.headsTarget(name("attn_k_b.weight"), c.Heads, s.rank, s.plain)
	a.onValues = l.headsTarget(name("attn_v_b.weight"), c.Heads, s.value, s.rank)
	l.Place(nil) // workers multiply by themselves
	for h := 0; h < c.Heads && l.Err() == nil; h++ {
		a.keys = append(a.keys, l.Stack(l.Rows(name("attn_k_b.weight"), h*s.rank, (h+1)*s.rank, s.plain, s.rank, c.Heads)))
		a.values = append(a.values, l.Stack(l.Rows(name("attn_v_b.weight"), h*s.value, (h+1)*s.value, s.rank, s.value, c.Heads)))
	}
	l.Place(l.opt.Backend)
	a.o = l.Matrix(name("attn_output.weight"), c.Hidden, c.Heads*s.value)
	a.onO = l.target(c.Heads*s.value, &rotation{}, whole(name("attn_output.weight"), c.Hidden))
	return a
}

// rowWidth returns the width of the queries.
func (a *latentAttention) rowWidth() int { return a.heads * a.dim }

// project makes the queries of h, and stores the latents.
func (a *latentAttention) project(s *rowShard) {
	l := &s.latent
	s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	a.down.Mul(l.latents, &s.acts)
	s.adapt(l.latents, a.onDown)
	if a.queryDown != nil {
		a.queryDown.Mul(l.low, &s.acts)
		s.adapt(l.low, a.onQueryDown)
		s.ops.norm(l.low, l.low, s.rows, a.queryNorm, s.cfg.NormEps)
		s.acts.Set(l.low, s.rows, a.queryRank)
	}
	a.queryUp.Mul(l.heads, &s.acts)
	s.adapt(l.heads, a.onQueryUp)
	s.ops.storeLatents(s, a)
	head := a.plain + a.rotated
	s.perHead.run(s, a.keys, a.onKeys, headRows{s.qkv, a.heads * a.dim, a.dim, a.rank}, headRows{l.heads, a.heads * head, head, a.plain})
}

// attend turns the queries into y.
func (a *latentAttention) attend(s *rowShard) {
	width := a.heads * a.dim
	s.att[a.place.kind].Run(s.a, s.qkv[:s.rows*width], &s.plans[a.place.kind], s.rowPos, s.kv, a.place.layer, &a.mask)
	s.perHead.run(s, a.values, a.onValues, headRows{s.latent.heads, a.heads * a.value, a.value, a.value}, headRows{s.a, width, a.dim, a.rank})
	s.acts.Set(s.latent.heads, s.rows, a.heads*a.value)
	a.o.Mul(s.y, &s.acts)
	s.adapt(s.y, a.onO)
}

// storeLatents finishes what rotates of queries, and the latents, which it writes into
// their layer of the cache.
func (o *rowOps) storeLatents(s *rowShard, a *latentAttention) {
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

// latentRows is what a shard needs for it.
type latentRows struct {
	low             []float32 // [rows][queryRank]
	heads           []float32 // [rows][Heads] × queries, then values
	latents, values []float32 // [rows][rank+rotated]
}

// reserve makes room for n rows.
func (r *latentRows) reserve(n int, c *Config) {
	if s := &c.latent; s.rank > 0 {
		r.low, r.heads = make([]float32, n*s.queryRank), make([]float32, n*c.Heads*max(s.plain+s.rotated, s.value))
		r.latents, r.values = make([]float32, n*c.HeadDim), make([]float32, n*c.HeadDim)
	}
}
