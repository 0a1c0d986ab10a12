package models

import (
	"maps"
	"slices"
	"strings"
)

// Files of matrices that were rotated ahead of their quantisation say so in
// prism.hadamard.*, as PrismML's llama.cpp defines it: what a matrix of weight_names
// reads is x' = H(s·x), where H is the normalised Walsh-Hadamard transform of blocks
// of the input and s, one vector a width, are signs. Rows of an embedding of
// inverse_weight_names are turned back: x = s·H(x'). With gdn_v_grouped ssm_out reads
// value heads grouped by key head. Version 2 is of files whose embedding is the output
// matrix too. Whatever else a file says is refused.

const hadamardKey = "prism.hadamard."

// hadamardKeys are those of versions 1 and 2.
var hadamardKeys = []string{
	"version", "transform", "axis", "block_size", "sign_mode", "sign_widths", "sign_values", "weight_names", "inverse_weight_names",
	"gdn_v_grouped", "tied_output",
}

// readHadamard reads prism.hadamard.*.
func (l *loader) readHadamard() (h hadamard) {
	m, found := l.file.Metadata, false
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if name, ok := strings.CutPrefix(key, hadamardKey); ok {
			if found = true; !slices.Contains(hadamardKeys, name) {
				l.Fail("%s is not supported", key)
			}
		}
	}
	if !found || l.Err() != nil {
		return h
	}
	want := func(name, value string) {
		if got, _ := m.String(hadamardKey + name); got != value {
			l.Fail("%s is %.40q, want %q", hadamardKey+name, got, value)
		}
	}
	tied := l.hadamardFlag("tied_output")
	if v, _ := m.Int(hadamardKey + "version"); v != 1 && v != 2 || tied != (v == 2) {
		l.Fail("%s is %v with %s %t, want 1, or 2 where that is true", hadamardKey+"version", m[hadamardKey+"version"], hadamardKey+"tied_output", tied)
	}
	if tied && l.file.Tensor("output.weight") != nil {
		l.Fail("%s is true, and there is a tensor output.weight", hadamardKey+"tied_output")
	}
	want("transform", "normalized-sylvester-walsh-hadamard")
	want("axis", "input-last-dimension")
	block, _ := m.Int(hadamardKey + "block_size")
	if block < 2 || block > 1<<16 || block&(block-1) != 0 {
		l.Fail("%s is %v, want a power of two up to 65536", hadamardKey+"block_size", m[hadamardKey+"block_size"])
	}
	h.grouped = l.hadamardFlag("gdn_v_grouped")
	h.forward, h.inverse = l.hadamardNames("weight_names"), l.hadamardNames("inverse_weight_names")
	switch mode, _ := m.String(hadamardKey + "sign_mode"); mode {
	case "identity":
	case "explicit":
		h.signs = l.hadamardSigns()
	default:
		l.Fail("%s is %.40q, want explicit or identity", hadamardKey+"sign_mode", mode)
	}
	h.block = block
	return h
}

// hadamardFlag reads a key that may be missing.
func (l *loader) hadamardFlag(name string) bool {
	v, there := l.file.Metadata[hadamardKey+name]
	flag, ok := v.(bool)
	if there && !ok {
		l.Fail("%s is %v, want true or false", hadamardKey+name, v)
	}
	return flag
}

// hadamardNames reads a list of tensors.
func (l *loader) hadamardNames(key string) map[string]bool {
	names := map[string]bool{}
	list, _ := l.file.Metadata.Strings(hadamardKey + key)
	for _, name := range list {
		if slices.ContainsFunc(l.skipped, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		if l.file.Tensor(name) == nil {
			l.Fail("%s names %.60q, which is missing", hadamardKey+key, name)
		}
		names[name] = false
	}
	return names
}

// hadamardSigns reads the signs of each width.
func (l *loader) hadamardSigns() map[int][]float32 {
	m, signs := l.file.Metadata, map[int][]float32{}
	widths, _ := m.Ints(hadamardKey + "sign_widths")
	values, _ := m.Floats(hadamardKey + "sign_values")
	for _, v := range values {
		if v != 1 && v != -1 {
			l.Fail("%s holds %v, want 1 and -1", hadamardKey+"sign_values", v)
			return nil
		}
	}
	for _, w := range widths {
		if w < 1 || w > len(values) || signs[w] != nil {
			l.Fail("%s: %d numbers do not make sign vectors of the widths %v", hadamardKey+"sign_values", m.Len(hadamardKey+"sign_values"), widths)
			return nil
		}
		signs[w], values = values[:w], values[w:]
	}
	if len(values) > 0 {
		l.Fail("%s holds %d numbers more than %s says", hadamardKey+"sign_values", len(values), hadamardKey+"sign_widths")
	}
	return signs
}

// rotation returns the rotation of what matrices names read, rows of the same width:
// all of them or none.
func (l *loader) rotation(width int, names ...string) (r rotation) {
	h, rotated := &l.hadamard, 0
	for _, name := range names {
		if _, ok := h.forward[name]; ok {
			h.forward[name] = true
			rotated++
		}
	}
	switch {
	case rotated == 0:
		return r
	case rotated < len(names):
		l.Fail("%sweight_names has some of %v and not others, which read the same", hadamardKey, names)
		return r
	}
	return l.rotationOf(width, names[0])
}

// rotationOf makes the rotation of rows of a width, which tensor name reads.
func (l *loader) rotationOf(width int, name string) (r rotation) {
	h := &l.hadamard
	if width%h.block != 0 {
		l.Fail("tensor %s: %d columns are no whole blocks of %s %d", name, width, hadamardKey+"block_size", h.block)
		return r
	}
	if r.signs = h.signs[width]; r.signs == nil && h.signs != nil {
		l.Fail("%ssign_widths has no signs for the %d columns of %s", hadamardKey, width, name)
		return r
	}
	r.block = h.block
	return r
}

// embeddingRotation returns what turns back the rows of the embedding.
func (l *loader) embeddingRotation() (r rotation) {
	const name = "token_embd.weight"
	if _, ok := l.hadamard.inverse[name]; !ok {
		return r
	}
	l.hadamard.inverse[name] = true
	return l.rotationOf(l.cfg.Hidden, name)
}

// checkHadamard fails on a rotated tensor that the graph does not rotate for.
func (l *loader) checkHadamard() {
	l.checkRotated("weight_names", l.hadamard.forward)
	l.checkRotated("inverse_weight_names", l.hadamard.inverse)
}

// checkRotated fails on a tensor of names, listed under key, that was not asked for.
func (l *loader) checkRotated(key string, names map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			l.Fail("%s names %s, which is not supported there", hadamardKey+key, name)
		}
	}
}
