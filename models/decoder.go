package models

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// decoder is the graph of Llama, Mistral, Qwen, BitNet and their like; architecture
// says what differs between them. Of every row:
//
//	x = embedding of the token
//	in each layer:
//		x += attention(norm(x))     or gatedDelta(norm(x), stateSpace(norm(x)), shortConv(norm(x))
//		x += feedForward(norm(x))   or mixture(norm(x))
//
// or one of the two, where layers have one part alone, and
//
//	logits = head(norm(x))
//
// With a rank pooling type its head gives scores in place of logits: a reward
// model. An executor runs it. What encoders change of it is in encoder.go.
type decoder struct {
	cfg      Config
	ropes    []rope       // the second, if any, is that of layers with windows
	embed    *gguf.Tensor // [Vocab][Hidden]
	scale    float32      // of embeddings
	rotate   rotation     // that embeddings are stored with
	embedded []float32    // ones, of the RMSNorm of embeddings; nil: none
	layers   []decoderLayer
	last     int          // of the layers, that makes keys and values or a state
	inputs   *layerInputs // nil: layers have none
	norm     rowNorm
	enc      *encoder    // nil: a decoder
	ranks    *Classifier // that ranks by hidden states; nil: none
	pooled   Projection  // of a hidden state that is a vector
	head     head
	parallel bool         // feed-forwards read what attention reads
	factor   float32      // of what attention and feed-forward add
	store    *expertStore // nil: all experts, if there are any, are in memory
	file     *gguf.File   // that embed is in
	memory   *cpu.Arena   // of the matrices
	targets  []*target    // products that adapters may add to
	dense    *DenseLayers // what the backend may compute of it; nil: nothing

	recurrent recurrent.Shape // of the layers that have a recurrent state
	warnings  []string        // of what is odd in the file
}

// newDecoder builds the graph that l's file describes, or fails l. Nothing is made of
// the hyper-parameters before all of them have been read and found in bounds.
func newDecoder(l *loader) *decoder {
	a := &l.arch
	experts, mask, recurrent, places := l.hyperParameters()
	ropes := l.ropes()
	if l.Err() != nil {
		return nil
	}
	m := &decoder{ropes: ropes, embed: l.embedding(), scale: 1, rotate: l.embeddingRotation(), file: l.file, memory: l.Memory(), recurrent: recurrent, parallel: a.norms.parallel}
	m.store = l.expertStore()
	if m.inputs = l.layerInputs(); a.norms.embedding {
		m.embedded = slices.Repeat([]float32{1}, l.cfg.Hidden)
	}
	pass, kept, recurring := newExpertPass(l.opt.Pool, l.Local()), new([]float32), 0
	for i := 0; i < l.cfg.Layers && l.Err() == nil; i++ {
		y := decoderLayer{}
		alone := l.rowsAlone(i)
		if !a.norms.after && !a.norms.bare {
			first, second := l.attentionNorm(i), rowNorm{}
			switch {
			case alone:
				first, second = second, first
			case !a.norms.parallel && !a.onePart:
				second = l.rowNorm(layerNames(i)(a.norms.ffnNorm()))
			}
			y.norm, y.ffnNorm = first, second
		}
		if !alone {
			if y.mixer = l.mixer(i, recurring, places[i], mask, recurrent); l.recurs != nil && l.recurs[i] {
				recurring++
			}
			if !places[i].reads {
				m.last = i
			}
		}
		if alone || !a.onePart {
			y.ffn = l.rowFunction(i, experts, m.store, pass, kept)
		}
		y.end = l.layerEnd(i, m.inputs)
		m.layers = append(m.layers, y)
	}
	if a.bidirectional {
		m.enc = l.encoder()
	}
	if !a.norms.after {
		m.norm = l.rowNorm(cmp.Or(a.norms.last, "output_norm"))
	}
	m.head, m.ranks, m.pooled = l.head()
	m.factor = 1
	l.multipliers(m)
	if a.rootEmbedding {
		m.scale = float32(math.Sqrt(float64(l.cfg.Hidden)))
	}
	l.checkHadamard()
	if l.Err() != nil {
		return nil
	}
	m.cfg, m.targets = l.config(), l.targets
	l.denseLayers(m)
	return m
}

// mixer loads that of layer i, number recurring among those with a state if it has one.
func (l *loader) mixer(i, recurring int, place kvPlace, mask attention.Mask, shape recurrent.Shape) mixer {
	switch v := &l.arch.attention; {
	case v.latent:
		return l.latentAttention(i, place, mask)
	case l.recurs == nil || !l.recurs[i]:
		return l.attention(i, place, mask, shape)
	case v.deltaNets:
		return l.gatedDelta(i, recurring, shape)
	case v.stateSpaces:
		return l.stateSpaceAlone(i, recurring, shape)
	}
	return l.shortConv(i, recurring, shape)
}

// rowFunction loads the feed-forward, the mixture or both of layer i.
func (l *loader) rowFunction(i int, p mixtureParams, store *expertStore, pass *expertPass, kept *[]float32) rowFunction {
	switch {
	case !l.mixes(i):
		return l.feedForward(i)
	case l.cfg.beside:
		return l.beside(i, l.feedForward(i), l.mixture(i, p, store, pass), kept)
	}
	return l.mixture(i, p, store, pass)
}

// hyperParameters reads those that make up l.cfg.
func (l *loader) hyperParameters() (experts mixtureParams, mask attention.Mask, shape recurrent.Shape, places []kvPlace) {
	l.shape()
	experts = l.mixtureParams()
	l.checkCausal()
	l.hadamard = l.readHadamard()
	mask, shape = l.attentionMask(), l.recurrentShape()
	l.otherHeads()
	return experts, mask, shape, l.kvPlaces()
}

// multipliers reads what m multiplies by.
func (l *loader) multipliers(m *decoder) {
	embedding, residual, logits := 1.0, 1.0, 1.0
	switch l.arch.multipliers {
	case noMultipliers:
		if l.arch.logitScale {
			m.head.factor = l.multiplier("logit_scale")
		}
		return
	case multipliersOfMiniCPM:
		embedding, residual, logits = 12, 1.4/math.Sqrt(float64(l.cfg.Layers)), float64(l.cfg.Hidden)/256
	}
	m.scale, m.factor = l.multiplierOr("embedding_scale", embedding), l.multiplierOr("residual_scale", residual)
	m.head.factor = 1 / l.multiplierOr("logit_scale", logits)
}

// rowWidth returns the numbers that a row has between project and attend, of the widest mixer.
func (m *decoder) rowWidth() (width int) {
	for i := range m.layers {
		if y := m.layers[i].mixer; y != nil {
			width = max(width, y.rowWidth())
		}
	}
	return width
}

// stages counts the stages: one for the keys and values of each layer, and the end.
func (m *decoder) stages() int { return len(m.layers) + 1 }

// stage takes the rows of s from the keys and values of layer i-1 to those of layer i. It
// may read the keys and values that stages before it wrote, of any row. A backend may compute
// whole layers in place of the stages that begin in them.
func (m *decoder) stage(s *rowShard, i int) {
	switch {
	case i == 0:
		m.embedTokens(s)
	case i > s.whole:
		m.finishLayer(s, i-1)
		s.probe(i - 1)
	}
	if i >= s.whole && i < len(m.layers) {
		s.whole = m.wholeLayers(s, i)
	}
	if i < s.whole {
		return
	}
	if i == len(m.layers) {
		m.norm.run(s)
		m.head.run(s)
		return
	}
	y := &m.layers[i]
	if y.mixer == nil {
		return
	}
	y.norm.run(s)
	y.mixer.project(s) // all rows of a sequence must have done so before one attends
	if i == m.last {
		s.trim(y.mixer.rowWidth(), i+1 < len(m.layers)) // of the other rows only keys and values are wanted
	}
}

// err says why no step can be computed any more, nil: they can.
func (m *decoder) err() error {
	if m.store != nil && m.store.err != nil {
		return m.store.err
	}
	return m.file.Unchanged()
}

// embedTokens begins the residual stream: x = embedding.
func (m *decoder) embedTokens(s *rowShard) {
	s.ops.embed(s.x, m.cfg.Hidden, m.embed, s.tokens, m.scale)
	s.ops.unrotate(s.x, s.rows, m.cfg.Hidden, &m.rotate)
	s.ops.normInto(s.x, s.rows, m.embedded, m.cfg.NormEps)
	if m.enc != nil {
		m.enc.begin(s)
	}
	if m.inputs != nil {
		m.inputs.run(s)
	}
}

// finishLayer does what follows in a layer once its rows have been projected: x += attention,
// x += feedForward(norm(x)).
func (m *decoder) finishLayer(s *rowShard, layer int) {
	y := &m.layers[layer]
	if y.mixer != nil {
		y.mixer.attend(s)
	}
	if m.enc.normsBehind() {
		m.enc.feedForward(s, layer, y.ffn)
		return
	}
	switch {
	case y.mixer == nil:
		y.ffnNorm.run(s)
	case y.ffn == nil:
	case m.parallel:
		s.ops.multiply(s.y, s.rows, m.cfg.Hidden, m.factor)
		y.norm.run(s)
		s.ops.add(s.x, s.y, s.rows, m.cfg.Hidden)
	default:
		s.ops.multiply(s.y, s.rows, m.cfg.Hidden, m.factor)
		y.ffnNorm.addAndRun(s)
	}
	if y.ffn != nil {
		y.ffn.run(s)
	}
	m.add(s)
	if y.end != nil {
		y.end.run(s)
	}
}

// add adds y to the residual stream.
func (m *decoder) add(s *rowShard) {
	s.ops.multiply(s.y, s.rows, m.cfg.Hidden, m.factor)
	s.ops.add(s.x, s.y, s.rows, m.cfg.Hidden)
}
