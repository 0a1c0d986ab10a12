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

// ErrModel says that a file is a well-formed GGUF but no model this package
// can run. What is wrapped around it names the key or tensor.
var ErrModel = errors.New("models: cannot run this model")

// architectures builds a model for each general.architecture that is supported.
var architectures = map[string]func(*loader) Model{
	"llama": newLlama,
}

// Architectures lists the supported values of general.architecture.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }

// LoadOptions says what a model runs on and as what.
type LoadOptions struct {
	Pool    *kernels.Pool   // threads of the model graph; required
	Backend kernels.Backend // where matrices go first; nil: the CPU
	Packing string          // run-time packing of the ternary matrices: "I1", "I2"; "": the file's own
	Exact   bool            // widen all weights to float32 and keep float32 activations: slow, for reference
}

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
	t := l.tensor(name, false, cols, rows)
	if t == nil {
		return nil
	}
	w, err := packMatrix(t, l.opt)
	if err != nil {
		l.fail("tensor %s: %w", name, err)
		return nil
	}
	lin, err := l.opt.Backend.Load(w)
	if errors.Is(err, kernels.ErrUnsupported) {
		lin, err = l.cpu.Load(w)
	}
	if err != nil {
		l.fail("tensor %s: %w", name, err)
		return nil
	}
	l.cfg.Params += int64(rows) * int64(cols)
	l.cfg.Bytes += int64(len(w.Data)) + 4*int64(len(w.Scale))
	if strings.HasPrefix(name, "blk.") {
		l.packs[w.Packing.String()] = true
	}
	return lin
}

// shape reads the hyper-parameters that all architectures share into l.cfg.
func (l *loader) shape() {
	c, m := &l.cfg, l.file.Metadata
	c.Arch = l.arch
	c.Name, _ = m.String("general.name")
	c.Layers = l.count("block_count", 1, maxLayers, required)
	c.Hidden = l.count("embedding_length", 1, maxDim, required)
	c.FFN = l.count("feed_forward_length", 1, maxDim, required)
	c.Heads = l.count("attention.head_count", 1, maxDim, required)
	c.KVHeads = l.count("attention.head_count_kv", 1, maxDim, c.Heads)
	c.Context = l.count("context_length", 1, 1<<30, required)
	if l.err != nil {
		return
	}
	if c.Heads%c.KVHeads != 0 {
		l.fail("%s: %d heads do not share %d KV heads evenly", l.key("attention.head_count_kv"), c.Heads, c.KVHeads)
		return
	}
	c.HeadDim = l.count("attention.key_length", 1, maxDim, c.Hidden/c.Heads)
	if v := l.count("attention.value_length", 1, maxDim, c.HeadDim); v != c.HeadDim {
		l.fail("%s is %d: values of another length than keys (%d) are not supported", l.key("attention.value_length"), v, c.HeadDim)
	}
	if c.HeadDim < 2 || c.HeadDim%2 != 0 {
		l.fail("%s: heads of %d elements; want an even number", l.key("attention.key_length"), c.HeadDim)
	}
	if int64(c.Heads)*int64(c.HeadDim) > maxDim {
		l.fail("%s: %d heads of %d elements are too many", l.key("attention.head_count"), c.Heads, c.HeadDim)
	}
	eps := l.number("attention.layer_norm_rms_epsilon", -1)
	if eps < 0 || eps > 1 {
		l.fail("%s is missing or out of range", l.key("attention.layer_norm_rms_epsilon"))
	}
	c.NormEps = float32(eps)
	emb := l.file.Tensor("token_embd.weight")
	if emb == nil {
		l.fail("tensor token_embd.weight is missing")
		return
	}
	c.Vocab = emb.Rows()
	if n := l.file.Metadata.Len("tokenizer.ggml.tokens"); n != 0 && n != c.Vocab {
		l.fail("tokenizer.ggml.tokens has %d tokens and token_embd.weight %d rows", n, c.Vocab)
	}
	c.Outputs = c.Vocab
}

// rope reads the rope.* hyper-parameters.
func (l *loader) rope() rope {
	if l.err != nil {
		return rope{}
	}
	p := ropeParams{
		dims:    l.count("rope.dimension_count", 2, l.cfg.HeadDim, l.cfg.HeadDim),
		base:    l.number("rope.freq_base", 10000),
		scaling: l.text("rope.scaling.type", ""),
		factor:  l.number("rope.scaling.factor", 0),
		attn:    l.number("rope.scaling.attn_factor", 1),
	}
	if p.factor == 0 { // the key of older files
		p.factor = l.number("rope.scale_linear", 1)
	}
	if p.scaling == "" { // files from before the key existed scale linearly
		p.scaling = ropeLinear
	}
	p.original = l.count("rope.scaling.original_context_length", 1, 1<<30, l.cfg.Context)
	p.betaFast = l.number("rope.scaling.yarn_beta_fast", 32)
	p.betaSlow = l.number("rope.scaling.yarn_beta_slow", 1)
	p.ext = l.number("rope.scaling.yarn_ext_factor", 1)
	if p.dims%2 != 0 {
		l.fail("%s is %d, want an even number", l.key("rope.dimension_count"), p.dims)
	}
	if p.base <= 1 || p.factor <= 0 || p.attn <= 0 || p.betaFast <= 0 || p.betaSlow <= 0 {
		l.fail("%s, factor %v, base %v: out of range", l.key("rope.scaling"), p.factor, p.base)
	}
	if p.scaling != ropeNone && p.scaling != ropeLinear && p.scaling != ropeYarn {
		l.fail("%s %q is not supported", l.key("rope.scaling.type"), p.scaling)
	}
	p.factors = l.optionalVector("rope_freqs.weight", p.dims/2)
	for i, f := range p.factors {
		if f <= 0 {
			l.fail("tensor rope_freqs.weight: element %d is %v", i, f)
		}
	}
	if l.err != nil {
		return rope{}
	}
	return newRope(p)
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

// poolingRank is the pooling_type of reward models.
const poolingRank = 4

// head is what turns the last hidden state into logits: the reward head of a
// rank model with its bias, an output matrix, or the embedding once more.
func (l *loader) head() (kernels.Linear, []float32) {
	if l.count("pooling_type", 0, maxDim, 0) == poolingRank {
		t := l.file.Tensor("cls.output.weight")
		if t == nil {
			l.fail("tensor cls.output.weight is missing")
			return nil, nil
		}
		l.cfg.Outputs = t.Rows()
		return l.matrix(t.Name, t.Rows(), l.cfg.Hidden), l.optionalVector("cls.output.bias", t.Rows())
	}
	if l.file.Tensor("output.weight") != nil {
		return l.matrix("output.weight", l.cfg.Vocab, l.cfg.Hidden), nil
	}
	return l.matrix("token_embd.weight", l.cfg.Vocab, l.cfg.Hidden), nil
}

// config is the finished description of the model.
func (l *loader) config() Config {
	l.cfg.Packings = strings.Join(slices.Sorted(maps.Keys(l.packs)), "+")
	return l.cfg
}

// loadModel builds the model that file holds. The file must stay open as long
// as the model is used: rows of the embedding are read from it.
func loadModel(file *gguf.File, opt LoadOptions) (Model, error) {
	arch, ok := file.Metadata.String("general.architecture")
	if !ok {
		return nil, fmt.Errorf("%w: general.architecture is missing", ErrModel)
	}
	build, ok := architectures[arch]
	if !ok {
		return nil, fmt.Errorf("%w: architecture %q is not supported (have %s)", ErrModel, arch, strings.Join(Architectures(), ", "))
	}
	l := &loader{file: file, opt: opt, arch: arch, packs: map[string]bool{}, cpu: kernels.NewCPU(opt.Pool)}
	if l.opt.Backend == nil {
		l.opt.Backend = l.cpu
	}
	m := build(l)
	if l.err != nil {
		return nil, l.err
	}
	return m, nil
}
