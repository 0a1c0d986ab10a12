package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/gguf"
)

// llama is the decoder of Llama, Mistral, Falcon3 and their like: RMSNorm,
// rotary embedding of adjacent pairs, grouped-query attention, SwiGLU. With a
// rank pooling type its head gives scores in place of logits: a reward model.
type llama struct {
	cfg    Config
	rope   rope
	embed  *gguf.Tensor // [Vocab][Hidden]
	layers []llamaLayer
	norm   []float32      // [Hidden]
	head   kernels.Linear // [Outputs][Hidden]
	bias   []float32      // [Outputs], or nil
	work   *step
}

// llamaLayer holds one block's weights. Biases may be nil.
type llamaLayer struct {
	attnNorm, ffnNorm   []float32
	q, k, v, o          kernels.Linear
	qBias, kBias, vBias []float32
	oBias               []float32
	gate, up, down      kernels.Linear
}

func newLlama(l *loader) Model {
	l.shape()
	if n := l.count("expert_count", 0, maxDim, 0); n > 0 {
		l.fail("%s is %d: mixtures of experts are not supported for this architecture", l.key("expert_count"), n)
	}
	m := &llama{rope: l.rope(), embed: l.embedding()}
	c := &l.cfg
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for i := 0; i < c.Layers && l.err == nil; i++ {
		name := blockNames(i)
		m.layers = append(m.layers, llamaLayer{
			attnNorm: l.vector(name("attn_norm.weight"), c.Hidden),
			q:        l.matrix(name("attn_q.weight"), q, c.Hidden),
			k:        l.matrix(name("attn_k.weight"), kv, c.Hidden),
			v:        l.matrix(name("attn_v.weight"), kv, c.Hidden),
			qBias:    l.optionalVector(name("attn_q.bias"), q),
			kBias:    l.optionalVector(name("attn_k.bias"), kv),
			vBias:    l.optionalVector(name("attn_v.bias"), kv),
			o:        l.matrix(name("attn_output.weight"), c.Hidden, q),
			oBias:    l.optionalVector(name("attn_output.bias"), c.Hidden),
			ffnNorm:  l.vector(name("ffn_norm.weight"), c.Hidden),
			gate:     l.matrix(name("ffn_gate.weight"), c.FFN, c.Hidden),
			up:       l.matrix(name("ffn_up.weight"), c.FFN, c.Hidden),
			down:     l.matrix(name("ffn_down.weight"), c.Hidden, c.FFN),
		})
	}
	m.norm = l.vector("output_norm.weight", c.Hidden)
	m.head, m.bias = l.head()
	if l.err != nil {
		return nil
	}
	m.cfg = l.config()
	m.work = newStep(l.opt.Pool, m.cfg)
	return m
}

// Config is the model's shape.
func (m *llama) Config() Config { return m.cfg }

// Forward runs one step; see Model.
func (m *llama) Forward(b *Batch, kv *KVCache) error {
	s, c := m.work, &m.cfg
	if err := s.begin(b, kv, &m.rope); err != nil {
		return err
	}
	s.ops.embed(s.x, c.Hidden, m.embed, b.Tokens)
	s.ops.norm(s.h, s.x, s.rows, m.layers[0].attnNorm, c.NormEps)
	for i := range m.layers {
		l, next := &m.layers[i], m.norm
		if i+1 < c.Layers {
			next = m.layers[i+1].attnNorm
		}
		s.acts.Set(s.h, s.rows, c.Hidden)
		l.k.Mul(s.k, &s.acts)
		l.v.Mul(s.v, &s.acts)
		s.keep(kv, i, l.kBias, l.vBias)
		if i+1 == c.Layers && s.trim() {
			s.acts.Set(s.h, s.rows, c.Hidden)
		}
		if s.rows == 0 {
			return nil
		}
		l.q.Mul(s.q, &s.acts)
		s.attend(kv, i, l.qBias)
		s.acts.Set(s.a, s.rows, c.Heads*c.HeadDim)
		l.o.Mul(s.y, &s.acts)
		s.ops.addBias(s.y, s.rows, l.oBias)
		s.ops.addNorm(s.h, s.x, s.y, s.rows, l.ffnNorm, c.NormEps)

		s.acts.Set(s.h, s.rows, c.Hidden)
		l.gate.Mul(s.gate, &s.acts)
		l.up.Mul(s.up, &s.acts)
		s.ops.swiglu(s.gate, s.up, s.rows, c.FFN)
		s.acts.Set(s.gate, s.rows, c.FFN)
		l.down.Mul(s.y, &s.acts)
		s.ops.addNorm(s.h, s.x, s.y, s.rows, next, c.NormEps)
	}
	s.acts.Set(s.h, s.rows, c.Hidden)
	m.head.Mul(b.Logits, &s.acts)
	s.ops.addBias(b.Logits, s.rows, m.bias)
	return nil
}
