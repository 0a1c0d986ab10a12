package models

import (
	"slices"

	"github.com/lutra-lm/lutra/models/load"
)

// kvPlace is where a layer that attends has its keys and values.
type kvPlace struct {
	layer int  // of the KV cache
	kind  int  // 1: it is among the others of kv.Shape
	reads bool // they belong to a layer before it
}

// readHeads reads how many heads layers with attention have, and how wide they are.
func readHeads(h *load.Header, m *spec) {
	if m.arch.attention.none {
		return
	}
	m.Heads = h.Int("attention.head_count", 1, load.MaxDim, load.Required)
	m.KVHeads = readKVHeads(h, m)
	if h.Err() != nil {
		return
	}
	if m.Heads%m.KVHeads != 0 {
		h.Fail("%s: %d heads do not share %d KV heads evenly", h.Key("attention.head_count_kv"), m.Heads, m.KVHeads)
		return
	}
	m.HeadDim = h.Int("attention.key_length", 1, load.MaxDim, m.Hidden/m.Heads)
	if m.HeadDim < 2 || m.HeadDim%2 != 0 {
		h.Fail("%s: heads of %d elements; want an even number", h.Key("attention.key_length"), m.HeadDim)
	}
	if int64(m.Heads)*int64(m.HeadDim) > load.MaxDim {
		h.Fail("%s: %d heads of %d elements are too many", h.Key("attention.head_count"), m.Heads, m.HeadDim)
	}
	if v := h.Int("attention.value_length", 1, load.MaxDim, m.HeadDim); v != m.HeadDim && !m.arch.attention.latent {
		h.Fail("%s is %d: values of another length than keys (%d) are not supported", h.Key("attention.value_length"), v, m.HeadDim)
	}
}

// readKVHeads returns how many KV heads the layers with attention have. Where recurrent states
// take the place of some, the file has one number a layer, which says of which.
func readKVHeads(h *load.Header, m *spec) int {
	const name = "attention.head_count_kv"
	list, ok := perLayer(h, m, name)
	byLayer := m.arch.states.kind == shortConvs || m.arch.states.kind == stateSpaces
	if !ok || !byLayer && !m.arch.attention.otherHeads {
		return h.Int(name, 1, load.MaxDim, m.Heads)
	} else if m.arch.attention.otherHeads && len(list) == m.Layers { // see readOtherHeads
		m.kvCounts = list
		return max(1, list[len(list)-1])
	}
	n := slices.Max(append(list[:len(list):len(list)], 0))
	if len(list) != m.Layers || n < 1 || n > load.MaxDim || slices.ContainsFunc(list, func(c int) bool { return c != 0 && c != n }) {
		h.Fail("%s is %v, want one number for each of %d layers, 0 or the same", h.Key(name), list, m.Layers)
		return 1
	}
	for i, c := range list {
		y := &m.layers[i]
		y.recurs = c == 0 && !y.alone
		if c > 0 && y.alone {
			h.Fail("%s and %s: layer %d has both", h.Key(name), h.Key("feed_forward_length"), i)
		}
	}
	return n
}

// readOtherHeads reads the heads of layers with windows, if they differ in number or width from the others'
// (Gemma 4), and which layers have keys and values of their own.
func readOtherHeads(h *load.Header, m *spec) {
	if !m.arch.attention.otherHeads {
		return
	}
	m.SharedLayers = h.Int("attention.shared_kv_layers", 0, m.Layers-1, 0)
	dim := h.Int("attention.key_length_swa", 2, m.HeadDim, m.HeadDim)
	if n := h.Int("attention.value_length_swa", 1, load.MaxDim, dim); n != dim || dim%2 != 0 {
		h.Fail("%s is %d and %s %d: want an even number, and values as long as keys", h.Key("attention.key_length_swa"), dim, h.Key("attention.value_length_swa"), n)
	}
	heads := [2]int{m.KVHeads, m.KVHeads}
	for i, n := range m.kvCounts {
		kind := m.kind(&m.layers[i])
		if i == slices.IndexFunc(m.layers, func(y layerSpec) bool { return y.window == (kind == 1) }) {
			heads[kind] = n
		}
		if n != heads[kind] || n < 1 || n > m.Heads || m.Heads%n != 0 {
			h.Fail("%s is %v: want one number for all layers with a window, one for the others, and that %d heads share", h.Key("attention.head_count_kv"), m.kvCounts, m.Heads)
			return
		}
	}
	m.KVHeads = heads[0]
	for i := range m.Layers - m.SharedLayers {
		m.Others.Layers += m.kind(&m.layers[i])
	}
	if m.Others.Layers == m.Layers-m.SharedLayers {
		h.Fail("%s: a layer that sees all keys must have some of its own", h.Key("attention.sliding_window_pattern"))
	}
	if m.Others.Layers > 0 {
		m.Others.Heads, m.Others.HeadDim = heads[1], dim
	}
}

// kind returns which of the cache's kinds of layers y is: 1 with a window, where
// layers with windows have heads of their own.
func (m *spec) kind(y *layerSpec) int {
	if m.arch.attention.otherHeads && y.window {
		return 1
	}
	return 0
}

// headsOf returns the KV heads of the layers of a kind, and the elements of each.
func (c *Config) headsOf(kind int) (kvHeads, dim int) {
	if kind == 1 {
		return c.Others.Heads, c.Others.HeadDim
	}
	return c.KVHeads, c.HeadDim
}

// readPlaces gives each layer that attends its place in the cache. The last layers may read
// what the last one of their kind before them wrote.
func readPlaces(h *load.Header, m *spec) {
	next, last := [2]int{0, m.KV().Layers}, [2]int{-1, -1}
	for i := range m.layers {
		y := &m.layers[i]
		if y.recurs || y.alone {
			continue
		}
		p := kvPlace{kind: m.kind(y), reads: i >= m.Layers-m.SharedLayers}
		if p.reads {
			if p.layer = last[p.kind]; p.layer < 0 {
				h.Fail("%s is %d: no layer before layer %d has keys and values for it", h.Key("attention.shared_kv_layers"), m.SharedLayers, i)
			}
		} else {
			p.layer = next[p.kind]
			next[p.kind]++
			last[p.kind] = p.layer
		}
		y.place = p
	}
}
