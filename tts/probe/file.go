package probe

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models/gguf"
)

// ErrFile says that a file holds no probe that can be used.
var ErrFile = errors.New("probe: not a usable probe")

// The keys and tensors of a probe's file.
const (
	architecture = "lutra-probe" // general.architecture
	prefix       = architecture + "."
	keyModel     = prefix + "model.name"
	keyArch      = prefix + "model.architecture"
	keyLayers    = prefix + "model.layers"
	keyHidden    = prefix + "model.hidden"
	keySHA256    = prefix + "model.sha256"
	keyRead      = prefix + "layers"
	keyTokens    = prefix + "token_features"
	keyProblems  = prefix + "problems"
	keyAnswers   = prefix + "answers"
	keyAUC       = prefix + "auc"

	partMean   = ".mean"
	partLast   = ".last"
	partTokens = ".tokens"
	partBias   = ".bias"
)

// lineNames begin the names of a line's tensors.
var lineNames = [2]string{"whole", "step"}

// Bounds of what a probe may read, each beyond any model.
const (
	mostLayers = 1 << 12
	mostHidden = 1 << 17
	mostValue  = 1e12 // of a weight
)

// Is tells whether a file holds a probe.
func Is(f *gguf.File) bool {
	arch, _ := f.Metadata.String("general.architecture")
	return arch == architecture
}

// Parse reads the probe that f holds.
func Parse(f *gguf.File) (*Probe, error) {
	r := reader{file: f}
	if !Is(f) {
		arch, _ := f.Metadata.String("general.architecture")
		r.fail("general.architecture is %q, not %q", arch, architecture)
		return nil, r.err
	}
	p := &Probe{Of: Of{
		Name: r.text(keyModel), Arch: r.text(keyArch),
		Layers: r.count(keyLayers, mostLayers), Hidden: r.count(keyHidden, mostHidden),
	}}
	p.Name, _ = f.Metadata.String("general.name")
	p.Of.SHA256, _ = f.Metadata.String(keySHA256)
	p.Record.Problems, _ = f.Metadata.Int(keyProblems)
	p.Record.Answers, _ = f.Metadata.Int(keyAnswers)
	auc, _ := f.Metadata.Float(keyAUC)
	p.Record.AUC = float32(auc)
	if names, _ := f.Metadata.Strings(keyTokens); !slices.Equal(names, TokenFeatures) {
		r.fail("%s is %.200q, want %q", keyTokens, names, TokenFeatures)
	}
	p.Layers, _ = f.Metadata.Ints(keyRead)
	r.layers(p.Layers, p.Of.Layers)
	n := len(p.Layers) * p.Of.Hidden
	for i, line := range p.lines() {
		name := lineNames[i]
		line.Mean, line.Last = r.vector(name+partMean, n), r.vector(name+partLast, n)
		line.Tokens = r.vector(name+partTokens, len(TokenFeatures))
		if bias := r.vector(name+partBias, 1); bias != nil {
			line.Bias = bias[0]
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	sum := sha256.New()
	if err := p.Write(sum); err != nil {
		return nil, err
	}
	p.digest = hex.EncodeToString(sum.Sum(nil))
	return p, nil
}

// reader reads a file until the first fault.
type reader struct {
	file *gguf.File
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %w", ErrFile, fmt.Errorf(format, args...))
	}
}

func (r *reader) text(key string) string {
	s, _ := r.file.Metadata.String(key)
	if s == "" || len(s) > 1<<10 {
		r.fail("%s is no text of 1 to %d bytes", key, 1<<10)
	}
	return s
}

func (r *reader) count(key string, most int) int {
	n, ok := r.file.Metadata.Int(key)
	if !ok || n < 1 || n > most {
		r.fail("%s is not between 1 and %d", key, most)
	}
	return n
}

// layers checks which layers are read, of so many.
func (r *reader) layers(read []int, of int) {
	if len(read) == 0 {
		r.fail("%s names no layers", keyRead)
	}
	for i, l := range read {
		if l < 0 || l >= of || i > 0 && l <= read[i-1] {
			r.fail("%s[%d] is %d: want ascending numbers below %d", keyRead, i, l, of)
			return
		}
	}
}

// vector reads a tensor of n numbers.
func (r *reader) vector(name string, n int) []float32 {
	if r.err != nil {
		return nil
	}
	t := r.file.Tensor(name)
	if t == nil {
		r.fail("tensor %s is missing", name)
		return nil
	}
	if t.Len() != n {
		r.fail("tensor %s has %d numbers, want %d", name, t.Len(), n)
		return nil
	}
	x := make([]float32, n)
	if err := t.Dequantize(x, 0); err != nil {
		r.fail("tensor %s: %w", name, err)
		return nil
	}
	for i, v := range x {
		if !(v >= -mostValue && v <= mostValue) { // NaN is a fault too
			r.fail("tensor %s: number %d is %v", name, i, v)
			return nil
		}
	}
	return x
}

// Write writes a probe as a GGUF file.
func (p *Probe) Write(w io.Writer) error {
	layers := make([]uint32, len(p.Layers))
	for i, l := range p.Layers {
		layers[i] = uint32(l)
	}
	meta := gguf.Metadata{
		"general.architecture": architecture, "general.type": "probe", "general.name": p.Name,
		keyModel: p.Of.Name, keyArch: p.Of.Arch, keyLayers: uint32(p.Of.Layers), keyHidden: uint32(p.Of.Hidden), keySHA256: p.Of.SHA256,
		keyRead: layers, keyTokens: TokenFeatures,
		keyProblems: uint32(p.Record.Problems), keyAnswers: uint32(p.Record.Answers), keyAUC: p.Record.AUC,
	}
	width := []int{p.Of.Hidden, len(p.Layers)}
	var tensors []gguf.Tensor
	for i, line := range p.lines() {
		name := lineNames[i]
		tensors = append(tensors, floats(name+partMean, width, line.Mean), floats(name+partLast, width, line.Last),
			floats(name+partTokens, []int{len(line.Tokens)}, line.Tokens), floats(name+partBias, []int{1}, []float32{line.Bias}))
	}
	return gguf.Write(w, meta, tensors)
}

func floats(name string, dims []int, x []float32) gguf.Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return gguf.Tensor{Name: name, Type: gguf.F32, Dims: dims, Data: data}
}
