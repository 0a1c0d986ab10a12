package models

import (
	"cmp"
	"slices"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/load"
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
	spec     *spec
	ropes    []rope        // the second, if any, is for layers with windows
	embed    *gguf.Tensor  // [Vocab][Hidden]
	rotate   load.Rotation // that embeddings are stored with
	embedded []float32     // ones, of the RMSNorm of embeddings; nil: none
	layers   []decoderLayer
	last     int          // of the layers, that makes keys and values or a state
	inputs   *layerInputs // nil: layers have none
	norm     rowNorm
	prediction
	enc      *encoder    // nil: a decoder
	ranks    *Classifier // that ranks by hidden states; nil: none
	pooled   Projection  // of a hidden state that is a vector
	head     head
	store    *expertStore   // nil: all experts, if there are any, are in memory
	file     *gguf.File     // that embed is in
	memory   *cpu.Arena     // of the matrices
	targets  []*adapterSite // products that adapters may add to
	dense    *DenseLayers   // what the backend may compute of it; nil: nothing
	warnings []string       // of what is odd in the file
}

// newDecoder builds the graph of a model, or fails t.
func newDecoder(t *tensors, spec *spec, opt *LoadOptions) *decoder {
	if t.rotations = spec.rotations; t.Err() != nil {
		return nil
	}
	for i := range spec.skipped {
		t.IgnoreAll(spec.skipped[i])
	}
	m := &decoder{spec: spec, ropes: loadRopes(t, spec), file: t.File(), memory: t.Memory()}
	m.loadEmbedding(t)
	all := &mixtures{pass: newExpertPass(opt.Pool, t.Local()), matrices: newExpertMatrices(t, spec), routed: opt.Routed}
	tellMixtures(t, spec)
	all.store = newExpertStore(all.matrices, spec, opt)
	m.store = all.store
	m.inputs = loadLayerInputs(t, spec)
	for i := 0; i < spec.Layers && t.Err() == nil; i++ {
		y := &spec.layers[i]
		m.layers = append(m.layers, loadLayer(t, spec, y, all))
		if !y.alone && !y.place.reads {
			m.last = i
		}
	}
	if spec.arch.bidirectional {
		m.enc = loadEncoder(t, spec)
	}
	if !spec.arch.norms.after {
		m.norm = loadNorm(t, spec, cmp.Or(spec.arch.norms.last, "output_norm"))
	}
	m.head, m.ranks, m.pooled = loadHead(t, spec)
	m.head.factor = spec.factors.logits
	m.ahead = loadPredictor(t, m, opt)
	if t.rotations.Finish(); t.Err() != nil {
		return nil
	}
	spec.Params, spec.Bytes, spec.Packings, spec.Sent = t.Params, t.Bytes, t.Packings(), t.Sent
	m.targets = t.targets
	m.findDrifts()
	return m
}

// loadEmbedding finds the table that tokens are looked up in. It stays in the file,
// where its rows are read when they are wanted.
func (m *decoder) loadEmbedding(t *tensors) {
	m.embed = t.Tensor(embeddingTensor, m.spec.Hidden, m.spec.Vocab)
	if m.rotate = t.rotations.OfEmbedding(m.spec.Hidden, embeddingTensor); m.spec.arch.norms.embedding {
		m.embedded = slices.Repeat([]float32{1}, m.spec.Hidden)
	}
}

// tellMixtures tells the accelerator of the model's mixtures, before anything of them is loaded.
func tellMixtures(t *tensors, m *spec) {
	if t.accelerator == nil || m.Experts == 0 || m.mixture.ungated || t.Err() != nil {
		return
	}
	if err := t.accelerator.Mixtures(MixtureShape{m.Name, m.Layers, m.DenseLayers, m.mixture.experts, m.mixture.chosen, m.Hidden, m.mixture.width}); err != nil {
		t.Fail("%w", err)
	}
}

// loadLayer loads a layer.
func loadLayer(t *tensors, m *spec, y *layerSpec, all *mixtures) (l decoderLayer) {
	v := &m.arch.norms
	switch {
	case v.after || v.bare:
	case y.alone:
		l.ffnNorm = loadAttentionNorm(t, m, y)
	default:
		l.norm = loadAttentionNorm(t, m, y)
		if !v.parallel && !m.arch.onePart {
			l.ffnNorm = loadNorm(t, m, y.tensor(v.ffnNorm()))
		}
	}
	if !y.alone {
		l.mixer = loadMixer(t, m, y)
	}
	if y.alone || !m.arch.onePart {
		l.ffn = loadRowFunction(t, m, y, all)
	}
	l.end = loadLayerEnd(t, m, y)
	return l
}

// loadMixer loads the mixer of a layer.
func loadMixer(t *tensors, m *spec, y *layerSpec) mixer {
	switch {
	case m.arch.attention.latent:
		return loadLatentAttention(t, m, y)
	case y.recurs:
		return stateKinds[m.arch.states.kind].load(t, m, y)
	}
	return loadAttention(t, m, y)
}

// loadRowFunction loads the feed-forward, the mixture or both of a layer.
func loadRowFunction(t *tensors, m *spec, y *layerSpec, all *mixtures) rowFunction {
	if y.mixes && !m.mixture.beside {
		return loadMixture(t, m, y, all)
	}
	m.widest = max(m.widest, y.width)
	if y.mixes {
		return loadBeside(t, m, y, all)
	}
	return loadFeedForward(t, m, y)
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

// stage takes the rows of s from the keys and values of layer i-1 to layer i's. It may read the keys and values
// that stages before it wrote, of any row. A backend may compute whole layers in place of the stages that begin
// in them.
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
		m.normLast(s)
		m.head.run(s)
		return
	}
	y := &m.layers[i]
	if y.mixer == nil {
		return
	}
	y.norm.run(s)
	y.mixer.project(s) // all rows of a sequence must have done so before one attends
	if i == m.last && s.probing.made == nil {
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
	s.ops.embed(s.x, m.spec.Hidden, m.embed, s.tokens, m.spec.factors.embedding)
	s.ops.unrotate(s.x, s.rows, m.spec.Hidden, &m.rotate)
	s.ops.normInto(s.x, s.rows, m.embedded, m.spec.NormEps)
	if m.enc != nil {
		m.enc.begin(s)
	}
	if m.inputs != nil {
		m.inputs.run(s)
	}
	if m.predicts != nil {
		m.predicts.begin(s)
	}
}

// finishLayer does what follows in a layer once its rows have been projected: x += attention,
// x += feedForward(norm(x)).
func (m *decoder) finishLayer(s *rowShard, layer int) {
	y := &m.layers[layer]
	if y.mixer != nil {
		y.mixer.attend(s)
	}
	if m.enc.normsAfter() {
		m.enc.feedForward(s, layer, y.ffn)
		return
	}
	switch {
	case y.mixer == nil:
		y.ffnNorm.run(s)
	case y.ffn == nil:
	case m.spec.arch.norms.parallel:
		s.ops.multiply(s.y, s.rows, m.spec.Hidden, m.spec.factors.residual)
		y.norm.run(s)
		s.ops.add(s.x, s.y, s.rows, m.spec.Hidden)
	default:
		s.ops.multiply(s.y, s.rows, m.spec.Hidden, m.spec.factors.residual)
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
	s.ops.multiply(s.y, s.rows, m.spec.Hidden, m.spec.factors.residual)
	s.ops.add(s.x, s.y, s.rows, m.spec.Hidden)
}

// decoderLayer is the weights of one layer, and what it computes.
type decoderLayer struct {
	norm    rowNorm
	mixer   mixer // nil: rows do not see those before them
	ffnNorm rowNorm
	ffn     rowFunction // nil: there is none
	end     *layerEnd   // nil: none
}

// rowFunction computes each row of a layer by itself: feedForward, mixture or denseWithExperts.
type rowFunction interface {
	// run makes of the normed rows what is added to the residual stream, y.
	run(s *rowShard)
}

// mixer lets a row see the rows before it: selfAttention, latentAttention, gatedDelta, stateSpace, shortConv or
// attentionWithStates.
type mixer interface {
	// rowWidth is the numbers of a row between project and attend.
	rowWidth() int
	// project makes of the normed rows what attend reads, and notes what later rows
	// will see of them.
	project(s *rowShard)
	// attend makes of that what is added to the residual stream, y.
	attend(s *rowShard)
}
