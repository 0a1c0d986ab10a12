package models

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
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

	warnings []string
	zero     map[string]bool // tensors read so far: whether they hold zeros alone

	memory      *cpu.Arena // of the matrices
	raw         []byte     // what tensors are read into
	read, total int64      // bytes of tensors so far, and of all
}

func (l *loader) fail(format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("%w: "+format, append([]any{ErrModel}, args...)...)
	}
}

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
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

// warnOfZeros names the tensors that hold nothing.
func (l *loader) warnOfZeros() {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(l.zero)) {
		if l.zero[name] {
			names = append(names, name)
		}
	}
	switch n := len(names); {
	case n == 1:
		l.warn("tensor %s holds zeros alone: what it multiplies is lost to the answers", names[0])
	case n > 1:
		l.warn("tensor %s and %d others hold zeros alone: what they multiply is lost to the answers", names[0], n-1)
	}
}

// config is the finished description of the model.
func (l *loader) config() Config {
	l.cfg.Packings = strings.Join(slices.Sorted(maps.Keys(l.packs)), "+")
	return l.cfg
}
