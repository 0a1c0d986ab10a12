package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// Measured is what a model is, and what it would take, as far as its file shows.
type Measured struct {
	Config            // Params and Bytes are those of all weights
	ExpertBytes int64 // of Bytes, those of mixtures' experts
}

// Measure describes the model that a file holds without loading it, its bytes within a few
// percent. It reads the metadata and a few rows of each tensor. opt needs no Pool. Errors are
// those of hyper-parameters that LoadFile refuses too; tensors that are missing are not looked
// for.
func Measure(f *gguf.File, opt LoadOptions) (m Measured, err error) {
	l, err := newLoader(f, opt)
	if err != nil {
		return m, err
	}
	l.hyperParameters()
	p := Pooling(l.count("pooling_type", 0, int(poolingRank), 0))
	if err := l.Err(); err != nil {
		return m, fmt.Errorf("%w: %w", ErrModel, err)
	}
	tied := p == PoolingNone && f.Tensor("output.weight") == nil // the embedding is the head's matrix too
	m.Config, m.Bidirectional = l.cfg, l.arch.bidirectional
	if p == poolingRank { // a reward model, but for encoders
		if p, m.Outputs = PoolingNone, 1; m.Bidirectional {
			p = PoolingMean
		}
	}
	if m.Pooling = p; p != PoolingNone {
		m.Outputs = m.Hidden
	}
	use := weights.Options{Packing: opt.Packing, Exact: opt.Exact}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if l.skips(t.Name) {
			continue
		}
		m.Params += int64(t.Len())
		if staysInFile[t.Name] && !(tied && t.Name == embeddingTensor) {
			continue
		}
		n, err := weights.Estimate(t, use)
		if err != nil {
			return m, fmt.Errorf("%w: %w", ErrModel, err)
		}
		if m.Bytes += n; HoldsExperts(t.Name) {
			m.ExpertBytes += n
		}
	}
	return m, nil
}

// embeddingTensor is the table that tokens are looked up in.
const embeddingTensor = "token_embd.weight"

// staysInFile are the tensors of which rows are read when they are wanted.
var staysInFile = map[string]bool{embeddingTensor: true, "position_embd.weight": true}

// skips tells whether a tensor of that name is not read.
func (l *loader) skips(name string) bool {
	return slices.ContainsFunc(l.skipped, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
