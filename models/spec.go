package models

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/models/attention"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
	"github.com/lutra-lm/lutra/models/load"
	"github.com/lutra-lm/lutra/models/recurrent"
)

// spec describes a model as the header of its file does: the row of its architecture, its shape, and
// what each layer is. Each part of a layer has its hyper-parameters, and what reads them, in its own
// file. Nothing is made of a spec before all of it has been read and found in bounds.
type spec struct {
	Config
	arch   architecture
	layers []layerSpec

	mask     attention.Mask // of layers with a window; the others see all keys
	temper   temper         // of queries
	kvCounts []int          // KV heads of each layer, where the file says so and they may differ
	latent   latentShape
	states   recurrent.Shape
	mixture  mixtureSpec
	unit     GatedUnit // of feed-forwards
	widest   int       // of feed-forwards that layers have; 0: all are mixtures
	ropes    ropeSpec
	ownContext
	furtherLayers
	factors     factors
	rotations   *load.Rotations
	postEps     float32 // of norms of what attention and feed-forward add
	authors     bool    // see authorsKey
	poolingType Pooling // as the file numbers it
}

// furtherLayers come after the graph's in a file.
type furtherLayers struct {
	predictors int        // how many there are
	predictor  *layerSpec // the one that is read; nil: none
	skipped    []string   // beginnings of the names of tensors that are not read
}

// ownContext is how long the file says that sequences may be.
type ownContext struct {
	longest  int  // the file's own Context
	decisive bool // Context decides more than how long sequences are
}

// layerSpec describes a layer.
type layerSpec struct {
	index  int
	alone  bool    // it has a feed-forward or a mixture, and no mixer
	recurs bool    // it has a recurrent state in place of attention
	state  int     // its number among the layers with a recurrent state
	window bool    // it sees a window of keys alone
	place  kvPlace // of its keys and values
	mixes  bool    // it has a mixture
	width  int     // of its feed-forward
}

// tensor returns the full name of a tensor of the layer.
func (y *layerSpec) tensor(name string) string {
	return "blk." + strconv.Itoa(y.index) + "." + name
}

// specReaders read the header part by part, in the order in which one part needs another.
var specReaders = []func(h *load.Header, m *spec){
	readShape, readWidths, readHeads, readLatent, readNorms, readVocabulary, readMixture, readCausal, readRotations, readMask, readTemper,
	readStates, readOtherHeads, readPlaces, readRopes, readUnit, readLayerInputs, readFactors, readPooling,
}

// readSpec reads the header of a file, of whose context, unless it is 0, only that many tokens are wanted.
func readSpec(h *load.Header, a architecture, context int) *spec {
	m := &spec{arch: a, Config: Config{Arch: h.Arch, Context: context, Bidirectional: a.bidirectional}}
	for _, read := range specReaders {
		if read(h, m); h.Err() != nil {
			break
		}
	}
	if m.predictor != nil {
		m.Predictor = kv.Shape{Layers: 1, Heads: m.KVHeads, HeadDim: m.HeadDim}
	}
	return m
}

// newHeader returns the header of a file, with opt's metadata in place of its own, and the row of its architecture.
func newHeader(file *gguf.File, given gguf.Metadata) (*load.Header, architecture, error) {
	if len(given) > 0 {
		file.Metadata = maps.Clone(file.Metadata)
		maps.Copy(file.Metadata, given)
	}
	if err := nameType42(file); err != nil {
		return nil, architecture{}, err
	}
	name, ok := file.Metadata.String("general.architecture")
	if !ok {
		return nil, architecture{}, fmt.Errorf("%w: general.architecture is missing", ErrModel)
	}
	arch, ok := architectures[name]
	if !ok {
		return nil, arch, fmt.Errorf("%w: architecture %q is not supported (have %s)", ErrModel, name, strings.Join(architectureNames(), ", "))
	}
	h := &load.Header{Report: new(load.Report), File: file, Arch: name}
	return h, arch, extendContext(h, &arch)
}

// keyType42 names the storage type that has number 42 in a file, where nothing in the file tells.
const keyType42 = "lutra.type.42"

// nameType42 has tensors of STQ1_0's former number read in the order of its present one, if the user says so.
func nameType42(file *gguf.File) error {
	name, ok := file.Metadata[keyType42]
	if !ok {
		return nil
	}
	if name != gguf.STQ1_0.String() {
		return fmt.Errorf("%w: %s is %v, want %v", ErrModel, keyType42, name, gguf.STQ1_0)
	}
	for i := range file.Tensors {
		if file.Tensors[i].Type == gguf.STQ1_0_42 {
			file.Tensors[i].Type = gguf.STQ1_0
		}
	}
	return nil
}

// readShape reads the hyper-parameters that all architectures share.
func readShape(h *load.Header, m *spec) {
	asked := m.Context
	m.Name, _ = h.File.Metadata.String("general.name")
	m.Layers = withoutPredictors(h, m, h.Int("block_count", 1, load.MaxLayers, load.Required))
	m.Hidden = h.Int("embedding_length", 1, load.MaxDim, load.Required)
	m.layers = make([]layerSpec, m.Layers)
	for i := range m.layers {
		m.layers[i].index = i
	}
	m.Context = h.Int("context_length", 1, load.MaxContext, load.Required)
	if m.longest = m.Context; asked > m.Context {
		h.Fail("a context of %d tokens is longer than the model's own of %d", asked, m.Context)
	} else if asked > 0 {
		m.Context = asked
	}
}

// readNorms reads by how much norms keep from dividing by zero.
func readNorms(h *load.Header, m *spec) {
	name := "attention.layer_norm_rms_epsilon"
	if m.arch.norms.layerNorms() || m.arch.onePart && !h.Has(name) { // files of one part a layer have either
		name = "attention.layer_norm_epsilon"
	}
	eps := h.Float(name, -1)
	if eps < 0 || eps > 1 {
		h.Fail("%s is missing or out of range", h.Key(name))
	}
	if m.NormEps = float32(eps); m.NormEps == 0 {
		h.Warn("%s is %v: a row of zeros, should one occur, becomes NaN and fails its request", h.Key(name), eps)
	}
	m.postEps = cmp.Or(m.arch.norms.postEps, m.NormEps)
	m.authors = m.arch.norms.kind == rmsNormBias && h.Own(authorsKey)
}

// readVocabulary reads how many tokens there are.
func readVocabulary(h *load.Header, m *spec) {
	table := h.File.Tensor(embeddingTensor)
	if table == nil {
		h.Fail("tensor token_embd.weight is missing")
		return
	}
	m.Vocab = table.Rows()
	if n := h.File.Metadata.Len("tokenizer.ggml.tokens"); n != 0 && n != m.Vocab {
		h.Fail("tokenizer.ggml.tokens has %d tokens and token_embd.weight %d rows", n, m.Vocab)
	}
	m.Outputs = m.Vocab
}

// perLayer reads a hyper-parameter that has a number for each layer. It leaves out the layers that predict
// further ahead; ok is false if the file has no such list.
func perLayer(h *load.Header, m *spec, name string) (list []int, ok bool) {
	list, ok = h.File.Metadata.Ints(h.Key(name))
	if len(list) == m.Layers+m.predictors {
		list = list[:m.Layers]
	}
	return list, ok
}

// maxPredictors bounds the layers that predict tokens further ahead, for each of which all
// names of tensors are looked at. Models have one to three.
const maxPredictors = 64

// withoutPredictors tells how many of n layers the graph has: the last ones of a file may predict tokens further ahead.
// The first of them is read, if it is known. It guesses the tokens that the others would, from its own hidden states.
func withoutPredictors(h *load.Header, m *spec, n int) int {
	m.predictors = h.Int("nextn_predict_layers", 0, min(maxPredictors, max(0, n-1)), 0)
	first := n - m.predictors
	m.predictor = findPredictor(h.HasTensor, m, first)
	for i := first; i < n; i++ {
		if y := (layerSpec{index: i}); i > first || m.predictor == nil {
			m.skipped = append(m.skipped, y.tensor(""))
		}
	}
	return first
}

// skips tells whether a tensor of that name is not read.
func (m *spec) skips(name string) bool {
	return slices.ContainsFunc(m.skipped, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// readCausal refuses models whose tokens see those after them.
func readCausal(h *load.Header, m *spec) {
	if m.arch.bidirectional {
		return
	}
	if causal, ok := h.File.Metadata.Bool(h.Key("attention.causal")); ok && !causal {
		h.Fail("%s is false: attention to later tokens is not supported for this architecture", h.Key("attention.causal"))
	}
}

// authorsKey has a file of phimoe computed as its authors do: with sparsemixer, and
// LayerNorm in place of RMSNorm with a bias. Files are made for llama.cpp, which does
// neither.
const authorsKey = "lutra.phimoe.authors"

func readRotations(h *load.Header, m *spec) { m.rotations = load.ReadRotations(h, m.skipped) }

// factors multiply rows.
type factors struct {
	embedding float32 // what embeddings are multiplied by
	residual  float32 // what attention and feed-forward add is multiplied by
	logits    float32 // what logits are multiplied by; 0: by nothing
	cap       float32 // logits are drawn into (-cap, cap); 0: they are not
}

// readFactors reads them.
func readFactors(h *load.Header, m *spec) {
	f, a := &m.factors, &m.arch
	embedding, residual, logits := 1.0, 1.0, 1.0
	switch a.multipliers {
	case noMultipliers:
		f.embedding, f.residual = 1, 1
		if a.logitScale {
			f.logits = h.Factor("logit_scale", 1)
		}
	case multipliersOfMiniCPM:
		embedding, residual, logits = 12, 1.4/math.Sqrt(float64(m.Layers)), float64(m.Hidden)/256
		fallthrough
	default:
		f.embedding, f.residual = h.Factor("embedding_scale", embedding), h.Factor("residual_scale", residual)
		f.logits = 1 / h.Factor("logit_scale", logits)
	}
	if a.rootEmbedding {
		f.embedding = float32(math.Sqrt(float64(m.Hidden)))
	}
	if a.attention.softCap {
		f.cap = float32(h.NotNegative("final_logit_softcapping"))
	}
}
