package models

import "github.com/lutra-lm/lutra/kernels/vector"

// Probe says what a step reads of the residual stream after some layers, of each row that has logits. It reads
// numbers that are linear in it, each a dot product a layer, or the stream itself.
type Probe struct {
	Layers   []int       // that are read, from 0 on, each once
	Channels int         // numbers that are read of a row; 0: the stream itself, [Layers][Hidden]
	Weights  [][]float32 // [Layers] of [Channels][Hidden]
}

// Width returns how many numbers a row's reading has, of a model of that shape.
func (p *Probe) Width(c *Config) int {
	switch {
	case p == nil:
		return 0
	case p.Channels == 0:
		return len(p.Layers) * c.Hidden
	}
	return p.Channels
}

// probing reads a shard's rows.
type probing struct {
	before []float32 // [rows][Hidden] of the tokens before, which a predictor reads
	made   []float32 // [rows][Hidden] to be set, after the last norm; nil: they are not wanted

	by       *Probe    // nil: nothing is read
	at       int       // of its layers, the next
	readings []float32 // [rows with logits][by.Width], later shards' included
}

// probe reads the residual stream behind a layer. Rows are read one by one, and layers in their
// order, so that readings depend on nothing else in the step.
func (s *rowShard) probe(layer int) {
	p := s.probing.by
	if p == nil || s.probing.at == len(p.Layers) || p.Layers[s.probing.at] != layer {
		return
	}
	at, width, n := s.probing.at, p.Width(&s.cfg.Config), 0
	s.probing.at++
	for row := range s.rows {
		if !s.wanted[row] {
			continue
		}
		x, out := rowOf(s.x, row, s.cfg.Hidden), rowOf(s.probing.readings, n, width)
		n++
		if p.Channels == 0 {
			copy(rowOf(out, at, s.cfg.Hidden), x)
			continue
		}
		for i := range out {
			out[i] += vector.Dot(rowOf(p.Weights[at], i, s.cfg.Hidden), x)
		}
	}
}
