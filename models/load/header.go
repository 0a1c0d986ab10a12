package load

import "github.com/lutra-lm/lutra/models/gguf"

// Header reads the hyper-parameters of an architecture: keys of the metadata that begin with its
// name. A value of another type, or out of bounds, is a failure of the Report.
type Header struct {
	*Report
	File *gguf.File
	Arch string // general.architecture
}

// The bounds of hyper-parameters: far beyond any real model, and small enough
// that products of three do not overflow.
const (
	MaxLayers  = 1 << 12
	MaxDim     = 1 << 20
	MaxContext = 1 << 30
)

// Required makes Int fail on a missing key.
const Required = -1

// Key returns the full name of hyper-parameter name.
func (h *Header) Key(name string) string { return h.Arch + "." + name }

// Value returns the hyper-parameter as it stands in the file, nil where it is missing.
func (h *Header) Value(name string) any { return h.File.Metadata[h.Key(name)] }

// Has tells whether the file has the hyper-parameter.
func (h *Header) Has(name string) bool {
	_, ok := h.File.Metadata[h.Key(name)]
	return ok
}

// HasTensor tells whether the file has a tensor of that name.
func (h *Header) HasTensor(name string) bool { return h.File.Tensor(name) != nil }

// Int reads an integer in [lo, hi], or returns otherwise when the key is missing:
// a value of that range, or Required. It is lo after a failure, so never negative.
func (h *Header) Int(name string, lo, hi, otherwise int) int {
	key := h.Key(name)
	if !h.Has(name) {
		if otherwise < 0 {
			h.Fail("%s is missing", key)
			return lo
		}
		return otherwise
	}
	n, ok := h.File.Metadata.Int(key)
	if !ok {
		h.Fail("%s is %v, want one integer", key, h.Value(name))
		return lo
	}
	if n < lo || n > hi {
		h.Fail("%s is %d, want %d to %d", key, n, lo, hi)
		return lo
	}
	return n
}

// Float reads a finite number, or returns otherwise when the key is missing.
func (h *Header) Float(name string, otherwise float64) float64 {
	if !h.Has(name) {
		return otherwise
	}
	x, ok := h.File.Metadata.Float(h.Key(name))
	if !ok || x != x || x-x != 0 {
		h.Fail("%s is %v, want a finite number", h.Key(name), h.Value(name))
		return otherwise
	}
	return x
}

// NotNegative reads a number that must not be negative, 0 when it is missing.
func (h *Header) NotNegative(name string) float64 {
	x := h.Float(name, 0)
	if x < 0 {
		h.Fail("%s is %v, want a positive number", h.Key(name), x)
	}
	return x
}

// Factor reads a positive number, or returns otherwise when the key is missing.
func (h *Header) Factor(name string, otherwise float64) float32 {
	x := h.Float(name, otherwise)
	if x <= 0 || float32(x) == 0 || float32(1/x) == 0 {
		h.Fail("%s is %v, want a positive number", h.Key(name), x)
		return 1
	}
	return float32(x)
}

// Text reads a string, or returns otherwise when the key is missing.
func (h *Header) Text(name, otherwise string) string {
	if !h.Has(name) {
		return otherwise
	}
	s, ok := h.File.Metadata.String(h.Key(name))
	if !ok {
		h.Fail("%s is %v, want a string", h.Key(name), h.Value(name))
	}
	return s
}

// Flag reads a truth value, or returns otherwise when the key is missing.
func (h *Header) Flag(name string, otherwise bool) bool { return h.flag(h.Key(name), otherwise) }

// flag does as Flag, of a key with its full name.
func (h *Header) flag(key string, otherwise bool) bool {
	value, there := h.File.Metadata[key]
	if !there {
		return otherwise
	}
	flag, ok := value.(bool)
	if !ok {
		h.Fail("%s is %v, want true or false", key, value)
	}
	return flag
}

// Own reads a truth value by a key that is not the architecture's, false when it is missing.
func (h *Header) Own(key string) bool { return h.flag(key, false) }
