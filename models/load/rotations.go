package load

import (
	"maps"
	"slices"
	"strings"
)

// Files of matrices that were rotated before their quantisation say so in prism.hadamard.*, as PrismML's
// llama.cpp defines it. A matrix of weight_names reads x' = H(s·x), where H is the normalised Walsh-Hadamard
// transform of blocks of the input and s, one vector a width, are signs. Rows of an embedding of
// inverse_weight_names are turned back: x = s·H(x'). With gdn_v_grouped ssm_out reads value heads grouped by key
// head. Version 2 is for files whose embedding is the output matrix too. Everything else is refused.

const rotationKey = "prism.hadamard."

// rotationKeys are the keys of versions 1 and 2.
var rotationKeys = []string{
	"version", "transform", "axis", "block_size", "sign_mode", "sign_widths", "sign_values", "weight_names", "inverse_weight_names",
	"gdn_v_grouped", "tied_output",
}

// Rotation is the transform of rows ahead of a product with a matrix that was rotated.
type Rotation struct {
	Block int       // of the transform; 0: there is none
	Signs []float32 // [width], or nil: all are one
}

// Rotations knows which matrices of a file were rotated, and notes which a graph rotates for.
type Rotations struct {
	Grouped bool // matrices that read value heads of delta nets have them grouped by key heads

	report  *Report
	block   int // 0: nothing is rotated
	signs   map[int][]float32
	forward map[string]bool // matrices; false: not asked for yet
	inverse map[string]bool // embeddings
}

// ReadRotations reads prism.hadamard.* of a file, of which tensors whose names begin with skipped are not read.
func ReadRotations(h *Header, skipped []string) *Rotations {
	r, m, found := &Rotations{report: h.Report}, h.File.Metadata, false
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if name, ok := strings.CutPrefix(key, rotationKey); ok {
			if found = true; !slices.Contains(rotationKeys, name) {
				h.Fail("%s is not supported", key)
			}
		}
	}
	if !found || h.Err() != nil {
		return r
	}
	want := func(name, value string) {
		if got, _ := m.String(rotationKey + name); got != value {
			h.Fail("%s is %.40q, want %q", rotationKey+name, got, value)
		}
	}
	tied := h.Own(rotationKey + "tied_output")
	if v, _ := m.Int(rotationKey + "version"); v != 1 && v != 2 || tied != (v == 2) {
		h.Fail("%s is %v with %s %t, want 1, or 2 where that is true", rotationKey+"version", m[rotationKey+"version"], rotationKey+"tied_output", tied)
	}
	if tied && h.HasTensor("output.weight") {
		h.Fail("%s is true, and there is a tensor output.weight", rotationKey+"tied_output")
	}
	want("transform", "normalized-sylvester-walsh-hadamard")
	want("axis", "input-last-dimension")
	block, _ := m.Int(rotationKey + "block_size")
	if block < 2 || block > 1<<16 || block&(block-1) != 0 {
		h.Fail("%s is %v, want a power of two up to 65536", rotationKey+"block_size", m[rotationKey+"block_size"])
	}
	r.Grouped = h.Own(rotationKey + "gdn_v_grouped")
	r.forward, r.inverse = rotatedNames(h, "weight_names", skipped), rotatedNames(h, "inverse_weight_names", skipped)
	switch mode, _ := m.String(rotationKey + "sign_mode"); mode {
	case "identity":
	case "explicit":
		r.signs = rotationSigns(h)
	default:
		h.Fail("%s is %.40q, want explicit or identity", rotationKey+"sign_mode", mode)
	}
	r.block = block
	return r
}

// rotatedNames reads a list of tensors.
func rotatedNames(h *Header, key string, skipped []string) map[string]bool {
	names := map[string]bool{}
	list, _ := h.File.Metadata.Strings(rotationKey + key)
	for _, name := range list {
		if slices.ContainsFunc(skipped, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		if !h.HasTensor(name) {
			h.Fail("%s names %.60q, which is missing", rotationKey+key, name)
		}
		names[name] = false
	}
	return names
}

// rotationSigns reads the signs of each width.
func rotationSigns(h *Header) map[int][]float32 {
	m, signs := h.File.Metadata, map[int][]float32{}
	widths, _ := m.Ints(rotationKey + "sign_widths")
	values, _ := m.Floats(rotationKey + "sign_values")
	for _, v := range values {
		if v != 1 && v != -1 {
			h.Fail("%s holds %v, want 1 and -1", rotationKey+"sign_values", v)
			return nil
		}
	}
	for _, w := range widths {
		if w < 1 || w > len(values) || signs[w] != nil {
			h.Fail("%s: %d numbers do not make sign vectors of the widths %v", rotationKey+"sign_values", m.Len(rotationKey+"sign_values"), widths)
			return nil
		}
		signs[w], values = values[:w], values[w:]
	}
	if len(values) > 0 {
		h.Fail("%s holds %d numbers more than %s says", rotationKey+"sign_values", len(values), rotationKey+"sign_widths")
	}
	return signs
}

// Any tells whether the file says of a matrix that it was rotated.
func (r *Rotations) Any() bool { return r.block > 0 }

// Of returns the rotation of what matrices names read, rows of the same width: all of them or none.
func (r *Rotations) Of(width int, names ...string) Rotation {
	rotated := 0
	for _, name := range names {
		if _, ok := r.forward[name]; ok {
			r.forward[name] = true
			rotated++
		}
	}
	switch {
	case rotated == 0:
		return Rotation{}
	case rotated < len(names):
		r.report.Fail("%sweight_names has some of %v and not others, which read the same", rotationKey, names)
		return Rotation{}
	}
	return r.of(width, names[0])
}

// OfEmbedding returns the rotation that turns back rows of embedding name.
func (r *Rotations) OfEmbedding(width int, name string) Rotation {
	if _, ok := r.inverse[name]; !ok {
		return Rotation{}
	}
	r.inverse[name] = true
	return r.of(width, name)
}

// of makes the rotation of rows of a width, which tensor name reads.
func (r *Rotations) of(width int, name string) Rotation {
	if width%r.block != 0 {
		r.report.Fail("tensor %s: %d columns are no whole blocks of %s %d", name, width, rotationKey+"block_size", r.block)
		return Rotation{}
	}
	signs := r.signs[width]
	if signs == nil && r.signs != nil {
		r.report.Fail("%ssign_widths has no signs for the %d columns of %s", rotationKey, width, name)
		return Rotation{}
	}
	return Rotation{Block: r.block, Signs: signs}
}

// Finish fails on a rotated tensor that the graph does not rotate for.
func (r *Rotations) Finish() {
	for _, list := range []struct {
		key   string
		asked map[string]bool
	}{{"weight_names", r.forward}, {"inverse_weight_names", r.inverse}} {
		for _, name := range slices.Sorted(maps.Keys(list.asked)) {
			if !list.asked[name] {
				r.report.Fail("%s names %s, which is not supported there", rotationKey+list.key, name)
			}
		}
	}
}
