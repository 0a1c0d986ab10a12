package models

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// loader collects a model's hyper-parameters and weights. As with weights, the
// first failure sticks. Each part of a layer has its loader beside it, in its own file: that
// is why there are many methods.
type loader struct {
	*weights.Loader
	file       *gguf.File
	opt        LoadOptions
	archName   string
	arch       architecture
	skipped    []string // beginnings of the names of tensors that are not read
	recurs     []bool   // which layers have a recurrent state in place of attention; nil: none
	hadamard   hadamard
	windows    []bool // which layers see a window of keys alone; nil: none
	kvCounts   []int  // KV heads of each layer, where the file says so and they may differ
	widths     []int  // of feed-forwards, where the file has one a layer, 0 where there is none; nil: Config.FFN
	predictors int    // layers of the file behind the graph's
	cfg        Config
	targets    []*target
	warnings   []string
}

// newLoader reads from file, which it gives the metadata of opt.
func newLoader(file *gguf.File, opt LoadOptions) (*loader, error) {
	if len(opt.Metadata) > 0 {
		file.Metadata = maps.Clone(file.Metadata)
		maps.Copy(file.Metadata, opt.Metadata)
	}
	if err := nameType42(file); err != nil {
		return nil, err
	}
	name, ok := file.Metadata.String("general.architecture")
	if !ok {
		return nil, fmt.Errorf("%w: general.architecture is missing", ErrModel)
	}
	arch, ok := architectures[name]
	if !ok {
		return nil, fmt.Errorf("%w: architecture %q is not supported (have %s)", ErrModel, name, strings.Join(architectureNames(), ", "))
	}
	return &loader{file: file, opt: opt, archName: name, arch: arch, Loader: weights.NewLoader(file, weights.Options{
		Pool: opt.Pool, Backend: opt.Backend, Spare: opt.Spare, Packing: opt.Packing, Exact: opt.Exact, Scales: arch.matrixFactors, Progress: opt.Progress, Interrupt: opt.Interrupt, Observe: opt.Observe,
	})}, nil
}

// keyType42 names what storage type 42 of a file is, where nothing in the file tells.
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

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// key returns the full name of hyper-parameter name.
func (l *loader) key(name string) string { return l.archName + "." + name }

// The bounds of hyper-parameters: far beyond any real model, and small enough
// that products of three do not overflow.
const (
	maxLayers = 1 << 12
	maxDim    = 1 << 20
)

// count reads an integer hyper-parameter in [lo, hi], or otherwise when the key is missing:
// a value of that range, or required. It is lo after a failure, so never negative.
func (l *loader) count(name string, lo, hi, otherwise int) int {
	key := l.key(name)
	if _, ok := l.file.Metadata[key]; !ok {
		if otherwise < 0 {
			l.Fail("%s is missing", key)
			return lo
		}
		return otherwise
	}
	n, ok := l.file.Metadata.Int(key)
	if !ok {
		l.Fail("%s is %v, want one integer", key, l.file.Metadata[key])
		return lo
	}
	if n < lo || n > hi {
		l.Fail("%s is %d, want %d to %d", key, n, lo, hi)
		return lo
	}
	return n
}

// required makes count fail on a missing key.
const required = -1

// present returns name where the file has that hyper-parameter, else nothing.
func (l *loader) present(name string) string {
	if _, ok := l.file.Metadata[l.key(name)]; !ok {
		return ""
	}
	return name
}

// number reads a finite hyper-parameter, or otherwise when the key is missing.
func (l *loader) number(name string, otherwise float64) float64 {
	key := l.key(name)
	if _, ok := l.file.Metadata[key]; !ok {
		return otherwise
	}
	x, ok := l.file.Metadata.Float(key)
	if !ok || x != x || x-x != 0 {
		l.Fail("%s is %v, want a finite number", key, l.file.Metadata[key])
		return otherwise
	}
	return x
}

// text reads a string hyper-parameter, or otherwise when the key is missing.
func (l *loader) text(name, otherwise string) string {
	key := l.key(name)
	if _, ok := l.file.Metadata[key]; !ok {
		return otherwise
	}
	s, ok := l.file.Metadata.String(key)
	if !ok {
		l.Fail("%s is %v, want a string", key, l.file.Metadata[key])
	}
	return s
}

// layerNames gives the tensor names of layer i.
func layerNames(i int) func(string) string {
	prefix := "blk." + strconv.Itoa(i) + "."
	return func(name string) string { return prefix + name }
}

// finish fails on a tensor that nobody asked for: a bias or scale passed over in
// silence would change every answer.
func (l *loader) finish() {
	for _, name := range l.Finish() {
		l.Fail("tensor %s has no meaning for architecture %s", name, l.archName)
	}
}

// warnOfZeros names the tensors that hold nothing.
func (l *loader) warnOfZeros() {
	names := l.Zeros()
	switch n := len(names); {
	case n == 1:
		l.warn("tensor %s holds zeros alone: what it multiplies is lost to the answers", names[0])
	case n > 1:
		l.warn("tensor %s and %d others hold zeros alone: what they multiply is lost to the answers", names[0], n-1)
	}
}

// config returns the finished description of the model.
func (l *loader) config() Config {
	l.cfg.Params, l.cfg.Bytes, l.cfg.Packings, l.cfg.Sent = l.Params, l.Bytes, l.Packings(), l.Sent()
	return l.cfg
}

// embedding finds the table that tokens are looked up in. It stays in the file,
// where its rows are read when they are wanted.
func (l *loader) embedding() *gguf.Tensor {
	return l.Tensor(embeddingTensor, l.cfg.Hidden, l.cfg.Vocab)
}
