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
	out       kernels.Linear // [Outputs][Hidden]
	bias      []float32      // [Outputs], or nil
}

// poolingRank is the pooling_type of reward models.
const poolingRank = 4

// head is the reward head of a rank model, an output matrix, or the embedding
// once more.
func (l *loader) head() head {
	if l.count("pooling_type", 0, maxDim, 0) == poolingRank {
		return l.rewardHead()
	}
	if l.file.Tensor("output.weight") != nil {
		return head{out: l.Matrix("output.weight", l.cfg.Vocab, l.cfg.Hidden)}
	}
	return head{out: l.Matrix("token_embd.weight", l.cfg.Vocab, l.cfg.Hidden)}
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
