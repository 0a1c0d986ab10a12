package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// Measured is what a model is, and what it would take, as far as its file shows.
type Measured struct {
	Config            // Params and Bytes are those of all weights
	ExpertBytes int64 // of Bytes, those of mixtures' experts
}

// Measure describes the model that a file holds as Describe does, and estimates its bytes: a few
// percent off, more for models of some KB, whose matrices are padded. It reads a few rows of each
// tensor.
func Measure(f *gguf.File, opt LoadOptions) (m Measured, err error) {
	l, err := newLoader(f, opt)
	if err != nil {
		return m, err
	}
	err = parallel.Try(func() (err error) {
		m, err = l.measure(f, opt)
		return err
	})
	return m, err
}

func (l *loader) measure(f *gguf.File, opt LoadOptions) (m Measured, err error) {
	if m.Config, err = l.describe(); err != nil {
		return m, err
	}
	tied := m.Generates() && f.Tensor("output.weight") == nil // the embedding is the head's matrix too
	use := weights.Options{Packing: opt.Packing, Exact: opt.Exact}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if l.skips(t.Name) || staysInFile[t.Name] && !(tied && t.Name == embeddingTensor) {
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

// Describe returns the configuration of the model that a file holds without loading it, its Bytes
// unknown. It reads the metadata alone. opt needs no Pool. Errors are those of hyper-parameters
// that LoadFile refuses too; tensors that are missing are not looked for.
func Describe(f *gguf.File, opt LoadOptions) (c Config, err error) {
	l, err := newLoader(f, opt)
	if err != nil {
		return Config{}, err
	}
	err = parallel.Try(func() (err error) {
		c, err = l.describe()
		return err
	})
	return c, err
}

func (l *loader) describe() (Config, error) {
	l.hyperParameters()
	p := Pooling(l.count("pooling_type", 0, int(poolingRank), 0))
	if err := l.Err(); err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrModel, err)
	}
	c := l.cfg
	c.Bidirectional = l.arch.bidirectional
	if p == poolingRank { // a reward model, but for encoders
		if p, c.Outputs = PoolingNone, 1; c.Bidirectional {
			p = PoolingMean
		}
	}
	if c.Pooling = p; p != PoolingNone {
		c.Outputs = c.Hidden
	}
	for i := range l.file.Tensors {
		if t := &l.file.Tensors[i]; !l.skips(t.Name) {
			c.Params += int64(t.Len())
		}
	}
	return c, nil
}

// embeddingTensor is the table that tokens are looked up in.
const embeddingTensor = "token_embd.weight"

// staysInFile are the tensors of which rows are read when they are wanted.
var staysInFile = map[string]bool{embeddingTensor: true, "position_embd.weight": true}

// skips tells whether a tensor of that name is not read.
func (l *loader) skips(name string) bool {
	return slices.ContainsFunc(l.skipped, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
