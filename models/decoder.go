package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// decoder is the graph of Llama, Mistral, Qwen, BitNet and their like; architecture
// says what differs between them. Of every row:
//
//	x = embedding of the token
//	in each layer:
//		x += attention(norm(x))     or gatedDelta(norm(x))
//		x += feedForward(norm(x))   or mixture(norm(x))
//	logits = head(norm(x))
//
// With a rank pooling type its head gives scores in place of logits: a reward
// model. An executor runs it. What encoders change of it is in encoder.go.
type decoder struct {
	cfg    Config
	ropes  []rope       // the second, if any, is that of layers with windows
	embed  *gguf.Tensor // [Vocab][Hidden]
	scale  float32      // of embeddings
	turn   rotation     // that embeddings are stored with
	layers []layer
	norm   rowNorm
	enc    *encoder    // nil: a decoder
	ranks  *Classifier // that ranks by hidden states; nil: none
	head   head
	factor float32 // of what attention and feed-forward add
	exec   *executor
	store  *expertStore // nil: all experts, if there are any, are in memory
	file   *gguf.File   // that embed is in
	memory *cpu.Arena   // of the matrices

	warnings []string // of what is odd in the file
}

// layer is the weights of one layer, and what it computes.
type layer struct {
	norm    rowNorm
	mixer   mixer
	ffnNorm rowNorm
	ffn     rowFunction
}

// rowNorm is a norm of the residual stream: RMSNorm, or LayerNorm (Ba et al.
// 2016). The zero value changes nothing.
type rowNorm struct {
	weight  []float32 // [Hidden]
	bias    []float32 // [Hidden], or nil
	centred bool      // it is LayerNorm, and has a bias
}

// run sets h to the norm of x.
func (n *rowNorm) run(s *rowShard) {
	if n.weight == nil || n.centred {
		copy(s.h, s.x[:s.rows*s.cfg.Hidden])
		s.ops.layerNorm(s.h, s.rows, n, s.cfg.NormEps)
		return
	}
	s.ops.norm(s.h, s.x, s.rows, n.weight, s.cfg.NormEps)
	s.ops.addBias(s.h, s.rows, n.bias)
}

// addAndRun adds y to x and sets h to the norm of the sum.
func (n *rowNorm) addAndRun(s *rowShard) {
	if n.weight == nil || n.centred {
		s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
		n.run(s)
		return
	}
	s.ops.addNorm(s.h, s.x, s.y, s.rows, n.weight, s.cfg.NormEps)
	s.ops.addBias(s.h, s.rows, n.bias)
}

// rowFunction is what a layer does to each row by itself: feedForward or mixture.
type rowFunction interface {
	// run makes of the normed rows what is added to the residual stream, y.
	run(s *rowShard)
}

// mixer is what lets a row see the rows before it: selfAttention or gatedDelta.
type mixer interface {
	// rowWidth is the numbers of a row between project and attend.
	rowWidth() int
	// project makes of the normed rows what attend reads, and notes what later rows
	// will see of them.
	project(s *rowShard)
	// attend makes of that what is added to the residual stream, y.
	attend(s *rowShard)
}

// newDecoder builds the graph that l's file describes, or fails l. Nothing is made of
// the hyper-parameters before all of them have been read and found in bounds.
func newDecoder(l *loader) *decoder {
	a := &l.arch
	l.shape()
	experts := l.mixtureShape()
	l.checkCausal()
	l.hadamard = l.readHadamard()
	ropes, mask, recurrent := l.ropes(), l.attentionMask(), l.recurrentShape()
	if l.Err() != nil {
		return nil
	}
	m := &decoder{ropes: ropes, embed: l.embedding(), scale: 1, turn: l.embeddingRotation(), file: l.file, memory: l.Memory()}
	m.store = l.expertStore()
	width, attending := 0, 0
	for i := 0; i < l.cfg.Layers && l.Err() == nil; i++ {
		y := layer{}
		if !a.norms.after {
			y.norm, y.ffnNorm = l.attentionNorm(i), l.rowNorm(layerNames(i)(a.norms.ffnNorm()))
		}
		if a.attention.deltaNets && (i+1)%l.interval != 0 {
			y.mixer = l.gatedDelta(i, i-attending, recurrent)
		} else {
			y.mixer = l.attention(i, attending, mask)
			attending++
		}
		if l.cfg.Experts > 0 {
			y.ffn = l.mixture(i, experts, m.store)
		} else {
			y.ffn = l.feedForward(i)
		}
		m.layers = append(m.layers, y)
		width = max(width, y.mixer.rowWidth())
	}
	if a.bidirectional {
		m.enc = l.encoder()
	}
	if !a.norms.after {
		m.norm = l.rowNorm("output_norm")
	}
	m.head, m.ranks = l.head()
	m.factor = 1
	if a.multipliers {
		m.scale, m.factor, m.head.factor = l.multiplier("embedding_scale"), l.multiplier("residual_scale"), 1/l.multiplier("logit_scale")
	}
	if a.rootEmbedding {
		m.scale = float32(math.Sqrt(float64(l.cfg.Hidden)))
	}
	l.checkHadamard()
	if l.Err() != nil {
		return nil
	}
	m.cfg = l.config()
	m.exec = newExecutor(&l.opt, m.cfg, l.Local(), width, recurrent)
	return m
}

// Config is the model's shape.
func (m *decoder) Config() Config { return m.cfg }

// Forward runs one step; see Model. It fails from when the file, which the
// embedding is read from, was changed: gguf.ErrChanged.
func (m *decoder) Forward(b *Batch, cache *kv.Cache) error {
	if err := m.exec.forward(m, b, cache); err != nil {
		return err
	}
	if m.store != nil && m.store.err != nil {
		return m.store.err
	}
	return m.file.Unchanged()
}

// close gives back the weights.
func (m *decoder) close() error { return m.memory.Free() }

// embedTokens begins the residual stream: x = embedding.
func (m *decoder) embedTokens(s *rowShard) {
	s.ops.embed(s.x, m.cfg.Hidden, m.embed, s.tokens, m.scale)
	s.ops.turnBack(s.x, s.rows, m.cfg.Hidden, &m.turn)
	if m.enc != nil {
		m.enc.begin(s)
	}
}

// project makes a layer's queries, keys and values, and stores keys and values.
// All rows of a sequence must have done so before one attends.
func (m *decoder) project(s *rowShard, layer int) {
	y := &m.layers[layer]
	y.norm.run(s)
	y.mixer.project(s)
}

// attend is a layer's attention, which the feed-forward adds to x.
func (m *decoder) attend(s *rowShard, layer int) {
	m.layers[layer].mixer.attend(s)
}

// feedForward is what follows in the layer: x += attention, x += feedForward(norm(x)).
func (m *decoder) feedForward(s *rowShard, layer int) {
	y := &m.layers[layer]
	if m.enc.normsBehind() {
		m.enc.feedForward(s, layer, y.ffn)
		return
	}
	s.ops.multiply(s.y, s.rows, m.cfg.Hidden, m.factor)
	y.ffnNorm.addAndRun(s)
	y.ffn.run(s)
	s.ops.multiply(s.y, s.rows, m.cfg.Hidden, m.factor)
	s.ops.add(s.x, s.y, s.rows, m.cfg.Hidden)
}

// output makes the logits.
func (m *decoder) output(s *rowShard) {
	m.norm.run(s)
	m.head.run(s)
}
