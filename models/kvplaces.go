package models

import (
	"slices"

	"github.com/lutra-lm/lutra/models/kv"
)

// kvPlace is where a layer that attends has its keys and values.
type kvPlace struct {
	layer int  // of the KV cache
	kind  int  // 1: it is among the others of kv.Shape
	reads bool // they are those of a layer before it
}

// otherHeads reads the heads of layers with windows, where those are of another number or
// width than the others' (Gemma 4), and which layers have keys and values of their own.
func (l *loader) otherHeads() {
	c, v := &l.cfg, &l.arch.attention
	if l.Err() != nil || !v.otherHeads {
		return
	}
	c.SharedLayers = l.count("attention.shared_kv_layers", 0, c.Layers-1, 0)
	dim := l.count("attention.key_length_swa", 2, c.HeadDim, c.HeadDim)
	if n := l.count("attention.value_length_swa", 1, maxDim, dim); n != dim || dim%2 != 0 {
		l.Fail("%s is %d and %s %d: want an even number, and values as long as keys", l.key("attention.key_length_swa"), dim, l.key("attention.value_length_swa"), n)
	}
	heads := [2]int{c.KVHeads, c.KVHeads}
	for i, n := range l.kvCounts {
		kind := l.kind(i)
		if i == slices.Index(l.windows, kind == 1) {
			heads[kind] = n
		}
		if n != heads[kind] || n < 1 || n > c.Heads || c.Heads%n != 0 {
			l.Fail("%s is %v: want one number for all layers with a window, one for the others, and that %d heads share", l.key("attention.head_count_kv"), l.kvCounts, c.Heads)
			return
		}
	}
	c.KVHeads = heads[0]
	for i := range c.Layers - c.SharedLayers {
		c.Others.Layers += l.kind(i)
	}
	if c.Others.Layers == c.Layers-c.SharedLayers {
		l.Fail("%s: a layer that sees all keys must have some of its own", l.key("attention.sliding_window_pattern"))
	}
	if c.Others.Layers > 0 {
		c.Others.Heads, c.Others.HeadDim = heads[1], dim
	}
}

// kind returns which of the cache's kinds of layers layer i is: 1 with a window, where
// those have heads of their own.
func (l *loader) kind(i int) int {
	if l.arch.attention.otherHeads && l.windowed(i) {
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

// kvPlaces gives each layer that attends its place in the cache. The last layers may read
// what the last one of their kind before them wrote.
func (l *loader) kvPlaces() []kvPlace {
	c := &l.cfg
	places, next, last := make([]kvPlace, c.Layers), [2]int{0, c.KV().Layers}, [2]int{-1, -1}
	for i := range places {
		if l.recurs != nil && l.recurs[i] || l.rowsAlone(i) {
			continue
		}
		p := kvPlace{kind: l.kind(i), reads: i >= c.Layers-c.SharedLayers}
		if p.reads {
			if p.layer = last[p.kind]; p.layer < 0 {
				l.Fail("%s is %d: no layer before layer %d has keys and values for it", l.key("attention.shared_kv_layers"), c.SharedLayers, i)
			}
		} else {
			p.layer = next[p.kind]
			next[p.kind]++
			last[p.kind] = p.layer
		}
		places[i] = p
	}
	return places
}

// KV returns what a KV cache for the model must have room for.
func (c Config) KV() kv.Shape {
	return kv.Shape{Layers: c.Layers - c.RecurrentLayers - c.StatelessLayers - c.SharedLayers - c.Others.Layers, Heads: c.KVHeads, HeadDim: c.HeadDim, State: c.State, Others: c.Others}
}
