package models

import (
	"fmt"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// Measured describes a model, and the memory that it would take, as far as its file shows.
type Measured struct {
	Config            // Params and Bytes count all weights
	ExpertBytes int64 // of Bytes, the part of mixtures' experts
}

// Measure describes the model that a file holds as Describe does, and estimates its bytes: a few
// percent off, more for models of some KB, whose matrices are padded. It reads a few rows of each
// tensor.
func Measure(f *gguf.File, opt LoadOptions) (m Measured, err error) {
	err = parallel.Try(func() (err error) {
		m, err = measure(f, opt)
		return err
	})
	return m, err
}

func measure(f *gguf.File, opt LoadOptions) (m Measured, err error) {
	model, err := describe(f, opt)
	if err != nil {
		return m, err
	}
	m.Config = model.Config
	tied := m.Generates() && f.Tensor(outputTensor) == nil // the embedding is the head's matrix too
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if model.skips(t.Name) || staysInFile[t.Name] && !(tied && t.Name == embeddingTensor) {
			continue
		}
		n, err := weights.Estimate(t, weights.Form{Packing: opt.Packing, Exact: opt.Exact})
		if err != nil {
			return m, fmt.Errorf("%w: %w", ErrModel, err)
		}
		if m.Bytes += n; HoldsExperts(t.Name) {
			m.ExpertBytes += n
		}
	}
	return m, nil
}

// Describe returns the configuration of the model that a file holds without loading it, its Bytes unknown. It
// reads the metadata alone. opt needs no Pool. It fails for hyper-parameters that LoadFile refuses too, but does
// not look for missing tensors.
func Describe(f *gguf.File, opt LoadOptions) (c Config, err error) {
	err = parallel.Try(func() error {
		m, err := describe(f, opt)
		if err == nil {
			c = m.Config
		}
		return err
	})
	return c, err
}

// describe reads the header of a file, and what the model gives as far as that says.
func describe(f *gguf.File, opt LoadOptions) (*spec, error) {
	h, arch, err := newHeader(f, opt.Metadata)
	if err != nil {
		return nil, err
	}
	m := readSpec(h, arch, opt.Context)
	if err := h.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if m.Pooling = m.poolingType; m.Pooling == poolingRank { // a reward model, but for encoders
		if m.Pooling, m.Outputs = PoolingNone, 1; m.Bidirectional {
			m.Pooling = PoolingMean
		}
	}
	if m.Pooling != PoolingNone {
		m.Outputs = m.Hidden
	}
	for i := range f.Tensors {
		if t := &f.Tensors[i]; !m.skips(t.Name) {
			m.Params += int64(t.Len())
		}
	}
	return m, nil
}

// The tensors of which rows are read when they are wanted.
const (
	embeddingTensor = "token_embd.weight"    // that tokens are looked up in
	positionTensor  = "position_embd.weight" // likewise their positions
)

var staysInFile = map[string]bool{embeddingTensor: true, positionTensor: true}
