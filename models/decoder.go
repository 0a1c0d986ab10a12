package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/weights"
)

// decoder is the graph of Llama, Mistral, Qwen, BitNet and their like: RMSNorm,
// rotary embedding, grouped-query attention, gated feed-forward; variant says
// what differs between them. With a rank pooling type its head gives scores in
// place of logits: a reward model.
type decoder struct {
	cfg    Config
	rope   rope
	glu    gatedUnit
	scale  float32      // of embeddings
	cap    float32      // of logits; 0: none
	embed  *gguf.Tensor // [Vocab][Hidden]
	layers []layer
	norm   []float32 // [Hidden]
	head   head
	work   *step
	file   *gguf.File // that embed is in
	memory *cpu.Arena // of the matrices

	warnings []string // of what the file has odd
}

// layer holds one block's weights. Biases and sub-norms may be nil.
type layer struct {
	attnNorm, ffnNorm []float32
	qkv               weights.Stacked
	o                 kernels.Linear
	qHeads, kHeads    heads
	vBias, oBias      []float32
	gateUp            weights.Stacked
	down              kernels.Linear
	// Norms of what o and down read, and of what they add.
	attnSubNorm, ffnSubNorm   []float32
	attnPostNorm, ffnPostNorm []float32
	mask                      attention.Mask
}

// heads is what becomes of a layer's queries or keys after their product.
type heads struct {
	bias []float32 // nil: none
	norm []float32 // [HeadDim] RMSNorm of each head; nil: none
	rope ropeOrder
}

func newDecoder(l *loader) *decoder {
	v := &l.variant
	l.shape()
	if n := l.count("expert_count", 0, maxDim, 0); n > 0 {
		l.Fail("%s is %d: mixtures of experts are not supported for this architecture", l.key("expert_count"), n)
	}
	m := &decoder{rope: l.rope(), glu: v.glu, embed: l.embedding(), scale: 1, file: l.file, memory: l.Memory()}
	mask := l.attentionMask()
	c := &l.cfg
	q, kvWidth := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for i := 0; i < c.Layers && l.Err() == nil; i++ {
		name := blockNames(i)
		order := v.rope
		if v.still > 0 && (i+1)%v.still == 0 {
			order = ropeNone
		}
		y := layer{
			mask:     mask,
			attnNorm: l.Vector(name("attn_norm.weight"), c.Hidden),
			qHeads:   heads{bias: l.OptionalVector(name("attn_q.bias"), q), rope: order},
			kHeads:   heads{bias: l.OptionalVector(name("attn_k.bias"), kvWidth), rope: order},
			vBias:    l.OptionalVector(name("attn_v.bias"), kvWidth),
			o:        l.Matrix(name("attn_output.weight"), c.Hidden, q),
			oBias:    l.OptionalVector(name("attn_output.bias"), c.Hidden),
			ffnNorm:  l.Vector(name("ffn_norm.weight"), c.Hidden),
			down:     l.Matrix(name("ffn_down.weight"), c.Hidden, c.FFN),
		}
		if v.fused {
			qkv, up := name("attn_qkv.weight"), name("ffn_up.weight")
			y.qkv = l.Stack(l.Part(qkv, q+2*kvWidth, 0, q, c.Hidden), l.Part(qkv, q+2*kvWidth, q, q+kvWidth, c.Hidden), l.Part(qkv, q+2*kvWidth, q+kvWidth, q+2*kvWidth, c.Hidden))
			y.gateUp = l.Stack(l.Part(up, 2*c.FFN, 0, c.FFN, c.Hidden), l.Part(up, 2*c.FFN, c.FFN, 2*c.FFN, c.Hidden))
		} else {
			y.qkv = l.Stack(l.Packed(name("attn_q.weight"), q, c.Hidden), l.Packed(name("attn_k.weight"), kvWidth, c.Hidden), l.Packed(name("attn_v.weight"), kvWidth, c.Hidden))
			y.gateUp = l.Stack(l.Packed(name("ffn_gate.weight"), c.FFN, c.Hidden), l.Packed(name("ffn_up.weight"), c.FFN, c.Hidden))
		}
		if v.headNorm {
			y.qHeads.norm = l.Vector(name("attn_q_norm.weight"), c.HeadDim)
			y.kHeads.norm = l.Vector(name("attn_k_norm.weight"), c.HeadDim)
		}
		if v.subNorm {
			y.attnSubNorm = l.Vector(name("attn_sub_norm.weight"), q)
			y.ffnSubNorm = l.Vector(name("ffn_sub_norm.weight"), c.FFN)
		}
		if v.postNorm {
			y.attnPostNorm = l.Vector(name("post_attention_norm.weight"), c.Hidden)
			y.ffnPostNorm = l.Vector(name("post_ffw_norm.weight"), c.Hidden)
		}
		if v.windowed == 0 || (i+1)%v.windowed == 0 {
			y.mask.Window = 0
		}
		m.layers = append(m.layers, y)
	}
	m.norm = l.Vector("output_norm.weight", c.Hidden)
	m.head = l.head()
	if v.embedScale {
		m.scale = float32(math.Sqrt(float64(c.Hidden)))
	}
	if v.capped && c.Outputs == c.Vocab {
		m.cap = float32(l.positive("final_logit_softcapping"))
	}
	if l.Err() != nil {
		return nil
	}
	m.cfg = l.config()
	m.work = newStep(l.opt.Pool, m.cfg, l.Local())
	return m
}

// Config is the model's shape.
func (m *decoder) Config() Config { return m.cfg }

// Forward runs one step; see Model. It fails from when the file, which the
// embedding is read from, was changed: gguf.ErrChanged.
func (m *decoder) Forward(b *Batch, cache *kv.Cache) error {
	if err := m.work.forward(m, b, cache, &m.rope); err != nil {
		return err
	}
	return m.file.Unchanged()
}

// close gives back the weights.
func (m *decoder) close() error { return m.memory.Free() }

// stages is one for the keys and values of each layer, and the end.
func (m *decoder) stages() int { return len(m.layers) + 1 }

// stage takes rows from the keys and values of layer i-1 to those of layer i.
func (m *decoder) stage(s *rowShard, i int) {
	if i == 0 {
		s.ops.embed(s.x, m.cfg.Hidden, m.embed, s.tokens, m.scale)
	} else {
		m.mix(s, i-1)
	}
	if i < len(m.layers) {
		m.project(s, i)
	} else {
		m.output(s)
	}
}

// project makes the layer's queries, keys and values. Of rows that want no
// logits the last layer needs no more.
func (m *decoder) project(s *rowShard, layer int) {
	l, c := &m.layers[layer], &m.cfg
	s.ops.norm(s.h, s.x, s.rows, l.attnNorm, c.NormEps)
	s.acts.Set(s.h, s.rows, c.Hidden)
	l.qkv.Mul(s.qkv, &s.acts, &s.part)
	s.ops.keep(s, layer, l)
	if layer+1 == c.Layers {
		s.trim()
	}
}

// mix adds the layer's attention and feed-forward to the residual stream.
func (m *decoder) mix(s *rowShard, layer int) {
	l, c := &m.layers[layer], &m.cfg
	s.attend(layer, &l.mask)
	s.ops.normInto(s.a, s.rows, l.attnSubNorm, c.NormEps)
	s.acts.Set(s.a, s.rows, c.Heads*c.HeadDim)
	l.o.Mul(s.y, &s.acts)
	s.ops.addBias(s.y, s.rows, l.oBias)
	s.ops.normInto(s.y, s.rows, l.attnPostNorm, c.NormEps)
	s.ops.addNorm(s.h, s.x, s.y, s.rows, l.ffnNorm, c.NormEps)

	s.acts.Set(s.h, s.rows, c.Hidden)
	l.gateUp.Mul(s.gateUp, &s.acts, &s.part)
	s.ops.gate(m.glu, s.gate, s.gateUp, s.rows, c.FFN)
	s.ops.normInto(s.gate, s.rows, l.ffnSubNorm, c.NormEps)
	s.acts.Set(s.gate, s.rows, c.FFN)
	l.down.Mul(s.y, &s.acts)
	s.ops.normInto(s.y, s.rows, l.ffnPostNorm, c.NormEps)
	s.ops.add(s.x, s.y, s.rows, c.Hidden)
}

// output makes the logits.
func (m *decoder) output(s *rowShard) {
	s.ops.norm(s.h, s.x, s.rows, m.norm, m.cfg.NormEps)
	s.acts.Set(s.h, s.rows, m.cfg.Hidden)
	if m.head.dense != nil {
		m.head.dense.Mul(s.y, &s.acts)
		s.ops.addBias(s.y, s.rows, m.head.denseBias)
		s.ops.relu(s.y, s.rows, m.cfg.Hidden)
		s.acts.Set(s.y, s.rows, m.cfg.Hidden)
	}
	m.head.out.Mul(s.logits, &s.acts)
	s.ops.addBias(s.logits, s.rows, m.head.bias)
	if m.cap > 0 {
		s.ops.softCap(s.logits[:s.rows*m.cfg.Outputs], m.cap)
	}
}
