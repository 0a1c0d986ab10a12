package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/gguf"
)

// head turns the last normed hidden state into logits: Linear, or for some
// reward models Linear, ReLU, Linear.
type head struct {
	dense     kernels.Linear // [Hidden][Hidden]; nil: none
	denseBias []float32      // [Hidden], or nil
	out       kernels.Linear // [Outputs][Hidden]; nil: hidden states are the output
	bias      []float32      // [Outputs], or nil
	rotate    rotation       // of what out reads
	onOut     *target        // of the vocabulary; nil: adapters do not add to it
	factor    float32        // of the logits; 0: one
	cap       float32        // logits are drawn into (-cap, cap); 0: they are not
}

// run sets the logits to those of h, or without an output matrix to h itself.
func (h *head) run(s *rowShard) {
	if h.out == nil {
		copy(s.logits, s.h[:s.rows*s.cfg.Hidden])
		return
	}
	s.ops.rotate(s.h, s.rows, s.cfg.Hidden, &h.rotate)
	s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	if h.dense != nil {
		h.dense.Mul(s.y, &s.acts)
		s.ops.addBias(s.y, s.rows, h.denseBias)
		s.ops.relu(s.y, s.rows, s.cfg.Hidden)
		s.acts.Set(s.y, s.rows, s.cfg.Hidden)
	}
	h.out.Mul(s.logits, &s.acts)
	s.adapt(s.logits, h.onOut)
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

// head loads the reward head of a rank model or an output matrix; none of a model that
// embeds texts, as pooled says, or that ranks by the hidden states as ranks says.
func (l *loader) head() (h head, ranks *Classifier, pooled Projection) {
	p, encoder := Pooling(l.count("pooling_type", 0, int(poolingRank), 0)), l.arch.bidirectional
	switch {
	case l.Err() != nil:
		return h, nil, nil
	case encoder && p == PoolingNone:
		l.Fail("%s is 0: of this architecture want 1, 2, 3 or 4", l.key("pooling_type"))
		return h, nil, nil
	case encoder && p == poolingRank:
		ranks = l.classifier()
		if p = PoolingFirst; l.arch.preNormEncoder() { // as llama.cpp has it
			p = PoolingMean
		}
	case p == poolingRank:
		return l.rewardHead(), nil, nil
	case p == PoolingNone:
		if ranks = l.yesNo(); ranks == nil {
			return l.outputHead(), nil, nil
		}
		p = PoolingLast
	default:
		pooled = l.projection()
	}
	l.embeds(p)
	return h, ranks, pooled
}

// outputHead loads the output matrix, or the embedding once more.
func (l *loader) outputHead() (h head) {
	if l.file.Tensor("output.weight") != nil {
		h.rotate = l.rotation(l.cfg.Hidden, "output.weight")
		h.out = l.Matrix("output.weight", l.cfg.Vocab, l.cfg.Hidden)
		if l.arch.norms.kind == rmsNormBias || l.arch.norms.kind == layerNorm {
			h.bias = l.OptionalVector("output.bias", l.cfg.Vocab)
		}
	} else {
		h.rotate = l.embeddingRotation() // logits are the same for x·e and H(s·x)·H(s·e)
		h.out = l.Matrix("token_embd.weight", l.cfg.Vocab, l.cfg.Hidden)
	}
	h.onOut = l.target(l.cfg.Hidden, &h.rotate, whole(outputTensor, l.cfg.Vocab))
	if l.arch.attention.softCap && l.cfg.Generates() {
		h.cap = float32(l.positive("final_logit_softcapping"))
	}
	return h
}

// rewardHead has llama.cpp's names of tensors. What llama.cpp puts between the
// two matrices depends on the architecture; here the file must say so.
func (l *loader) rewardHead() (h head) {
	t := l.file.Tensor("cls.output.weight")
	if t == nil {
		l.Fail("tensor cls.output.weight is missing")
		return h
	}
	l.cfg.Outputs = t.Rows()
	l.Ignore("output.weight") // of the generator that the reward model was made from
	if l.file.Tensor("cls.weight") != nil {
		if act, _ := l.file.Metadata.String(keyActivation); act != "relu" {
			l.Fail("%s is %q: between cls.weight and cls.output.weight only relu is supported", keyActivation, act)
			return h
		}
		h.dense = l.Matrix("cls.weight", l.cfg.Hidden, l.cfg.Hidden)
		h.denseBias = l.OptionalVector("cls.bias", l.cfg.Hidden)
	}
	h.out = l.Matrix(t.Name, t.Rows(), l.cfg.Hidden)
	h.bias = l.OptionalVector("cls.output.bias", t.Rows())
	return h
}

// The metadata of reward models for which GGUF has no words.
const (
	keyActivation = "lutra.verifier.activation" // between the head's two matrices: "relu"
	keyFormat     = "lutra.verifier.format"     // what the model reads and where its scores stand
	keySeparator  = "lutra.verifier.separator"  // text that ends a solution step
)

// Verifier is what a file says of how its reward model wants to be read. Empty
// fields: nothing.
type Verifier struct {
	Format    string
	Separator string
}

func readVerifier(m gguf.Metadata) (v Verifier) {
	v.Format, _ = m.String(keyFormat)
	v.Separator, _ = m.String(keySeparator)
	return v
}

// embeds makes the model give hidden states.
func (l *loader) embeds(p Pooling) {
	if p == PoolingFirst && !l.arch.bidirectional {
		l.Fail("%s is %d: the first token of this architecture sees no other", l.key("pooling_type"), p)
	}
	l.cfg.Pooling, l.cfg.Outputs = p, l.cfg.Hidden
	l.Ignore("output.weight")
}
