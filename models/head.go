package models

import (
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/load"
)

// head turns the last normed hidden state into logits: Linear, or for some
// reward models Linear, ReLU, Linear.
type head struct {
	dense     product   // [Hidden][Hidden]; none: out reads h
	denseBias []float32 // [Hidden], or nil
	out       product   // [Outputs][Hidden]; none: hidden states are the output
	bias      []float32 // [Outputs], or nil
	factor    float32   // of the logits; 0: one
	cap       float32   // logits are drawn into (-cap, cap); 0: they are not
}

// run sets the logits of h, or without an output matrix copies h itself.
func (h *head) run(s *rowShard) {
	if h.out.none() {
		copy(s.logits, s.h[:s.rows*s.cfg.Hidden])
		return
	}
	read := s.h
	if !h.dense.none() {
		read = s.y
		h.dense.run(s, read, s.h)
		s.ops.addBias(read, s.rows, h.denseBias)
		s.ops.relu(read, s.rows, s.cfg.Hidden)
	}
	h.out.run(s, s.logits, read)
	s.ops.addBias(s.logits, s.rows, h.bias)
	h.finish(s, s.rows)
}

// finish does to the logits of n rows what follows their product.
func (h *head) finish(s *rowShard, n int) {
	if h.factor != 0 {
		s.ops.multiply(s.logits, n, s.cfg.Outputs, h.factor)
	}
	if h.cap > 0 {
		s.ops.softCap(s.logits[:n*s.cfg.Outputs], h.cap)
	}
}

// readPooling reads how hidden states become what the model gives.
func readPooling(h *load.Header, m *spec) {
	m.poolingType = Pooling(h.Int("pooling_type", 0, int(poolingRank), 0))
}

// loadHead loads the head of a model and sets the form of its results: the reward head of a rank model, or an
// output matrix. A model that embeds texts has none but its projection pooled, and a model that ranks by its
// hidden states has ranks.
func loadHead(t *tensors, m *spec) (h head, ranks *Classifier, pooled Projection) {
	p, encoder := m.poolingType, m.arch.bidirectional
	switch {
	case encoder && p == PoolingNone:
		t.Fail("%s.pooling_type is 0: of this architecture want 1, 2, 3 or 4", m.Arch)
		return h, nil, nil
	case encoder && p == poolingRank:
		ranks = loadClassifier(t, m)
		if p = PoolingFirst; m.arch.preNormEncoder() { // as llama.cpp has it
			p = PoolingMean
		}
	case p == poolingRank:
		return loadRewardHead(t, m), nil, nil
	case p == PoolingNone:
		if ranks = loadYesNo(t, m); ranks == nil {
			return loadOutputHead(t, m), nil, nil
		}
		p = PoolingLast
	default:
		pooled = loadProjection(t, m)
	}
	if p == PoolingFirst && !encoder {
		t.Fail("%s.pooling_type is %d: the first token of this architecture sees no other", m.Arch, p)
	}
	m.Pooling, m.Outputs = p, m.Hidden
	t.Ignore(outputTensor)
	return h, ranks, pooled
}

// loadOutputHead loads the output matrix, or the embedding once more.
func loadOutputHead(t *tensors, m *spec) head {
	h := head{cap: m.factors.cap}
	if t.Has(outputTensor) {
		h.out = t.rotatedMatrix(outputTensor, m.Vocab, m.Hidden)
		if m.arch.norms.kind == rmsNormBias || m.arch.norms.kind == layerNorm {
			h.bias = t.OptionalVector("output.bias", m.Vocab)
		}
		return h
	}
	h.out = t.plainMatrix(embeddingTensor, m.Vocab, m.Hidden)
	// Logits are the same for x·e and H(s·x)·H(s·e).
	if h.out.rotated = t.rotations.OfEmbedding(m.Hidden, embeddingTensor); h.out.rotated.Block == 0 {
		h.out.on = t.adapterSite(m.Hidden, load.Rows{Tensor: outputTensor, N: m.Vocab, Of: m.Vocab})
	}
	return h
}

// loadRewardHead has llama.cpp's names of tensors. What llama.cpp puts between the
// two matrices depends on the architecture; here the file must say so.
func loadRewardHead(t *tensors, m *spec) (h head) {
	out := t.File().Tensor("cls.output.weight")
	if out == nil {
		t.Fail("tensor cls.output.weight is missing")
		return h
	}
	m.Outputs = out.Rows()
	t.Ignore(outputTensor) // of the generator that the reward model was made from
	if t.Has("cls.weight") {
		if act, _ := t.File().Metadata.String(keyActivation); act != "relu" {
			t.Fail("%s is %q: between cls.weight and cls.output.weight only relu is supported", keyActivation, act)
			return h
		}
		h.dense = t.plainMatrix("cls.weight", m.Hidden, m.Hidden)
		h.denseBias = t.OptionalVector("cls.bias", m.Hidden)
	}
	h.out = t.plainMatrix(out.Name, out.Rows(), m.Hidden)
	h.bias = t.OptionalVector("cls.output.bias", out.Rows())
	return h
}

// The metadata of reward models for which GGUF has no words.
const (
	keyActivation = "lutra.verifier.activation" // between the head's two matrices: "relu"
	keyFormat     = "lutra.verifier.format"     // what the model reads and where its scores stand
	keySeparator  = "lutra.verifier.separator"  // text that ends a solution step
)

// Verifier has a file's settings of its reward model. Empty fields are not set.
type Verifier struct {
	Format    string
	Separator string
}

func readVerifier(m gguf.Metadata) (v Verifier) {
	v.Format, _ = m.String(keyFormat)
	v.Separator, _ = m.String(keySeparator)
	return v
}
