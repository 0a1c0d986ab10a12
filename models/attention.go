package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/weights"
)

// selfAttention is a layer's grouped-query attention, from normed rows h to what
// it adds to the residual stream, y:
//
//	q, k, v = h·Wq, h·Wk, h·Wv     with biases, head norms, rotation
//	y = attention(q, keys, values)·Wo
//
// Biases, and norms but the first, may be nil.
type selfAttention struct {
	norm           []float32 // [Hidden]
	qkv            weights.Stacked
	qHeads, kHeads heads
	vBias          []float32
	mask           attention.Mask
	subNorm        []float32 // of what o reads
	o              kernels.Linear
	oBias          []float32
	postNorm       []float32 // of y
}

// heads is what becomes of a layer's queries or keys after their product.
type heads struct {
	bias []float32 // nil: none
	norm []float32 // [HeadDim] RMSNorm of each head; nil: none
	rope ropeOrder
}

// attention loads that of layer i.
func (l *loader) attention(i int, mask attention.Mask) (a selfAttention) {
	c, v, name := &l.cfg, &l.variant, layerNames(i)
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	if v.globalInterval == 0 || (i+1)%v.globalInterval == 0 {
		mask.Window = 0
	}
	order := v.rope
	if v.noRopeInterval > 0 && (i+1)%v.noRopeInterval == 0 {
		order = ropeNone
	}
	a.mask = mask
	a.norm = l.Vector(name("attn_norm.weight"), c.Hidden)
	if v.fused {
		qkv := name("attn_qkv.weight")
		a.qkv = l.Stack(l.Part(qkv, q+2*kv, 0, q, c.Hidden), l.Part(qkv, q+2*kv, q, q+kv, c.Hidden), l.Part(qkv, q+2*kv, q+kv, q+2*kv, c.Hidden))
	} else {
		a.qkv = l.Stack(l.Packed(name("attn_q.weight"), q, c.Hidden), l.Packed(name("attn_k.weight"), kv, c.Hidden), l.Packed(name("attn_v.weight"), kv, c.Hidden))
	}
	a.qHeads = heads{bias: l.OptionalVector(name("attn_q.bias"), q), rope: order}
	a.kHeads = heads{bias: l.OptionalVector(name("attn_k.bias"), kv), rope: order}
	a.vBias = l.OptionalVector(name("attn_v.bias"), kv)
	if v.headNorm {
		a.qHeads.norm = l.Vector(name("attn_q_norm.weight"), c.HeadDim)
		a.kHeads.norm = l.Vector(name("attn_k_norm.weight"), c.HeadDim)
	}
	if v.subNorm {
		a.subNorm = l.Vector(name("attn_sub_norm.weight"), q)
	}
	a.o = l.Matrix(name("attn_output.weight"), c.Hidden, q)
	a.oBias = l.OptionalVector(name("attn_output.bias"), c.Hidden)
	if v.postNorm {
		a.postNorm = l.Vector(name("post_attention_norm.weight"), c.Hidden)
	}
	return a
}

// project makes the queries, keys and values of h, and stores the keys and values.
func (a *selfAttention) project(s *rowShard, layer int) {
	s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	a.qkv.Mul(s.qkv, &s.acts, &s.part)
	s.ops.storeKV(s, layer, a)
}

// attend turns the queries into y.
func (a *selfAttention) attend(s *rowShard, layer int) {
	s.att.Run(s.a, s.qkv, &s.plan, s.rowPos, s.kv, layer, &a.mask)
	s.ops.normInto(s.a, s.rows, a.subNorm, s.cfg.NormEps)
	s.acts.Set(s.a, s.rows, s.cfg.Heads*s.cfg.HeadDim)
	a.o.Mul(s.y, &s.acts)
	s.ops.addBias(s.y, s.rows, a.oBias)
	s.ops.normInto(s.y, s.rows, a.postNorm, s.cfg.NormEps)
}
