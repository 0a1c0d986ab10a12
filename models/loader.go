package models

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/gguf"
)

// loader collects a model's hyper-parameters and weights. The first failure
// sticks and later calls return zero values, so that builders read as lists.
type loader struct {
	file  *gguf.File
	opt   LoadOptions
	cpu   kernels.Backend
	arch  string
	err   error
	cfg   Config
	packs map[string]bool
	used  map[string]bool // tensors that the builder asked for
	// variant is what the architecture changes.
	variant variant
}

func (l *loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: "+format, append([]any{ErrModel}, args...)...)
	}
}

// key is a hyper-parameter's full name.
func (l *loader) key(name string) string { return l.arch + "." + name }

// The bounds of hyper-parameters: far beyond any real model, and small enough
// that products of three do not overflow.
const (
	maxLayers = 1 << 12
	maxDim    = 1 << 20
)

// count is an integer hyper-parameter in [lo, hi], or otherwise when the key is missing.
func (l *loader) count(name string, lo, hi, otherwise int) int {
	key := l.key(name)
	if _, ok := l.file.Metadata[key]; !ok {
		if otherwise < 0 {
			l.fail("%s is missing", key)
		}
		return otherwise
	}
	n, ok := l.file.Metadata.Int(key)
	if !ok {
		l.fail("%s is %v, want one integer", key, l.file.Metadata[key])
		return lo
	}
	if n < lo || n > hi {
		l.fail("%s is %d, want %d to %d", key, n, lo, hi)
		return lo
	}
	return n
}

// required makes count fail on a missing key.
const required = -1

// number is a finite hyper-parameter, or otherwise when the key is missing.
func (l *loader) number(name string, otherwise float64) float64 {
	key := l.key(name)
	if _, ok := l.file.Metadata[key]; !ok {
		return otherwise
	}
	x, ok := l.file.Metadata.Float(key)
	if !ok || x != x || x-x != 0 {
		l.fail("%s is %v, want a finite number", key, l.file.Metadata[key])
		return otherwise
	}
	return x
}

// text is a string hyper-parameter, or otherwise when the key is missing.
func (l *loader) text(name, otherwise string) string {
	key := l.key(name)
	if _, ok := l.file.Metadata[key]; !ok {
		return otherwise
	}
	s, ok := l.file.Metadata.String(key)
	if !ok {
		l.fail("%s is %v, want a string", key, l.file.Metadata[key])
	}
	return s
}

// tensor is the tensor of that name and shape (fastest dimension first), nil
// when it is optional and missing.
func (l *loader) tensor(name string, optional bool, dims ...int) *gguf.Tensor {
	if l.err != nil {
		return nil
	}
	l.used[name] = true
	t := l.file.Tensor(name)
	if t == nil {
		if !optional {
			l.fail("tensor %s is missing", name)
		}
		return nil
	}
	// Trailing ones do not change a shape.
	if got := trimOnes(t.Dims); !slices.Equal(got, trimOnes(dims)) {
		l.fail("tensor %s has shape %v, want %v", name, t.Dims, dims)
		return nil
	}
	if !t.Type.Supported() {
		l.fail("tensor %s has storage type %v, which is not supported", name, t.Type)
		return nil
	}
	return t
}

func trimOnes(dims []int) []int {
	for len(dims) > 1 && dims[len(dims)-1] == 1 {
		dims = dims[:len(dims)-1]
	}
	return dims
}

// vector is a one-dimensional tensor of n numbers.
func (l *loader) vector(name string, n int) []float32 { return l.floats(name, false, n) }

// optionalVector is nil when the tensor is missing.
func (l *loader) optionalVector(name string, n int) []float32 { return l.floats(name, true, n) }

func (l *loader) floats(name string, optional bool, n int) []float32 {
	t := l.tensor(name, optional, n)
	if t == nil {
		return nil
	}
	v := make([]float32, n)
	if err := t.Dequantize(v, 0); err != nil {
		l.fail("%w", err)
	}
	for i, x := range v {
		if x-x != 0 {
			l.fail("tensor %s: element %d is %v", name, i, x)
			break
		}
	}
	l.cfg.Params += int64(n)
	l.cfg.Bytes += 4 * int64(n)
	return v
}

// matrix is W[rows][cols], packed and loaded onto the backend, or the CPU
// where the backend does not run its packing.
func (l *loader) matrix(name string, rows, cols int) kernels.Linear {
	return l.load(l.packed(name, rows, cols))
}

// packed is a stored matrix in its run-time packing, or nil after a failure.
func (l *loader) packed(name string, rows, cols int) *kernels.Matrix {
	return l.part(name, rows, 0, rows, cols)
}

// part is packed for rows [lo, hi) of a stored matrix of rows.
func (l *loader) part(name string, rows, lo, hi, cols int) *kernels.Matrix {
	t := l.tensor(name, false, cols, rows)
	if t == nil {
		return nil
	}
	if hi-lo < rows {
		t, rows = t.Slice(lo, hi), hi-lo
	}
	w, err := packMatrix(t, l.factor(name), l.opt)
	if err != nil {
		l.fail("tensor %s: %w", name, err)
		return nil
	}
	l.file.Evict() // w owns its memory: the weights are not held twice
	l.cfg.Params += int64(rows) * int64(cols)
	l.cfg.Bytes += int64(len(w.Data)) + 4*int64(len(w.Scale))
	if strings.HasPrefix(name, "blk.") {
		l.packs[w.Packing.String()] = true
	}
	return w
}

// load makes w, unless it is nil, ready to multiply.
func (l *loader) load(w *kernels.Matrix) kernels.Linear {
	if w == nil {
		return nil
	}
	lin, err := l.opt.Backend.Load(w)
	if errors.Is(err, kernels.ErrUnsupported) {
		lin, err = l.cpu.Load(w)
	}
	if err != nil {
		l.fail("a matrix of %dx%d: %w", w.Rows, w.Cols, err)
		return nil
	}
	return lin
}

// factor is what all weights of a matrix are multiplied by: the tensor beside
// it where the architecture has such, or 1.
func (l *loader) factor(name string) float32 {
	if l.variant.scales {
		if v := l.optionalVector(strings.TrimSuffix(name, "weight")+"scale", 1); v != nil {
			return v[0]
		}
	}
	return 1
}

// embedding is the table that tokens are looked up in, read in its storage format.
func (l *loader) embedding() *gguf.Tensor {
	return l.tensor("token_embd.weight", false, l.cfg.Hidden, l.cfg.Vocab)
}

// blockNames gives the tensor names of block i.
func blockNames(i int) func(string) string {
	prefix := "blk." + strconv.Itoa(i) + "."
	return func(name string) string { return prefix + name }
}

// leftovers fails on a tensor that nobody asked for: a bias or scale passed
// over in silence would change every answer.
func (l *loader) leftovers() {
	for i := range l.file.Tensors {
		if name := l.file.Tensors[i].Name; !l.used[name] {
			l.fail("tensor %s has no meaning for architecture %s", name, l.arch)
		}
	}
}

// config is the finished description of the model.
func (l *loader) config() Config {
	l.cfg.Packings = strings.Join(slices.Sorted(maps.Keys(l.packs)), "+")
	return l.cfg
}
