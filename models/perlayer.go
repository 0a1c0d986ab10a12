package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// layerInputs is the embeddings that each layer has of its own ("Gemma 3n" and "Gemma 4":
// per-layer embeddings), of tokens and of what embeds them:
//
//	inputs[layer] = (norm(x·Wlayer/√Hidden) + √width·table[token][layer]) / √2
type layerInputs struct {
	width   int            // of a layer's
	table   *gguf.Tensor   // [Vocab][Layers·width]
	project kernels.Linear // [Layers·width][Hidden]
	norm    []float32      // [width], divided by √2
}

// layerInputs loads them, nil if the model has none.
func (l *loader) layerInputs() *layerInputs {
	c := &l.cfg
	if !l.arch.layerInputs || l.Err() != nil {
		return nil
	}
	if c.LayerInputs = l.count("embedding_length_per_layer_input", 0, maxDim, 0); c.LayerInputs == 0 {
		return nil
	}
	if all := int64(c.LayerInputs) * int64(c.Layers); all > maxDim {
		l.Fail("%s is %d, of %d layers: too many", l.key("embedding_length_per_layer_input"), c.LayerInputs, c.Layers)
		return nil
	}
	all := c.LayerInputs * c.Layers
	in := &layerInputs{
		width: c.LayerInputs, table: l.Tensor("per_layer_token_embd.weight", all, c.Vocab),
		project: l.Matrix("per_layer_model_proj.weight", all, c.Hidden), norm: l.Vector("per_layer_proj_norm.weight", c.LayerInputs),
	}
	vector.ScaleInto(in.norm, math.Sqrt2/2)
	return in
}

// run sets the inputs of the rows, whose embeddings are x.
func (in *layerInputs) run(s *rowShard) {
	all := in.width * s.cfg.Layers
	s.ops.embed(s.inputs, all, in.table, s.tokens, float32(math.Sqrt(float64(in.width)/2)))
	s.acts.Set(s.x, s.rows, s.cfg.Hidden)
	in.project.Mul(s.projected, &s.acts)
	s.ops.addProjected(s, in)
}

// addProjected adds what is projected, normed, to the inputs.
func (o *rowOps) addProjected(s *rowShard, in *layerInputs) {
	o.shard, o.layer, o.width, o.eps = s, in, in.width*s.cfg.Layers, s.cfg.NormEps
	o.scale = float32(1 / math.Sqrt(float64(s.cfg.Hidden)))
	o.each(s.rows, o.width, func(o *rowOps, i int) {
		in := o.layer.(*layerInputs)
		row := rowOf(o.shard.projected, i, o.width)
		vector.ScaleInto(row, o.scale)
		for at := 0; at < len(row); at += in.width {
			part := row[at : at+in.width]
			vector.RMSNorm(part, part, in.norm, o.eps)
		}
		vector.AddInto(rowOf(o.shard.inputs, i, o.width), row)
	})
}

// layerEnd is what a layer does behind its feed-forward: it adds its input, gated by
// x, and scales.
//
//	x = scale·(x + norm((gelu(x·Wgate)·input)·Wup))
type layerEnd struct {
	layer    int
	gate, up kernels.Linear // nil: there is no input
	norm     []float32
	scale    float32
}

// layerEnd loads that of layer i, nil if it has none.
func (l *loader) layerEnd(i int, in *layerInputs) *layerEnd {
	if !l.arch.layerInputs {
		return nil
	}
	name := layerNames(i)
	e := &layerEnd{layer: i, scale: 1}
	if v := l.OptionalVector(name("layer_output_scale.weight"), 1); v != nil {
		e.scale = v[0]
	}
	if in != nil {
		e.gate, e.up = l.Matrix(name("inp_gate.weight"), in.width, l.cfg.Hidden), l.Matrix(name("proj.weight"), l.cfg.Hidden, in.width)
		e.norm = l.Vector(name("post_norm.weight"), l.cfg.Hidden)
	}
	return e
}

// run changes x.
func (e *layerEnd) run(s *rowShard) {
	if e.gate != nil {
		width := s.cfg.LayerInputs
		s.acts.Set(s.x, s.rows, s.cfg.Hidden)
		e.gate.Mul(s.gate, &s.acts)
		s.ops.gateInput(s, e.layer, width)
		s.acts.Set(s.gate, s.rows, width)
		e.up.Mul(s.y, &s.acts)
		s.ops.normInto(s.y, s.rows, e.norm, s.cfg.NormEps)
		s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	}
	s.ops.multiply(s.x, s.rows, s.cfg.Hidden, e.scale)
}

// gateInput sets the gates, [rows][width], to gelu(gate) times the input of a layer.
func (o *rowOps) gateInput(s *rowShard, layer, width int) {
	o.shard, o.stride, o.width = s, layer*width, width
	o.each(s.rows, width, func(o *rowOps, i int) {
		s := o.shard
		gate := rowOf(s.gate, i, o.width)
		vector.GeGLU(gate, gate, rowOf(s.inputs, i, o.width*s.cfg.Layers)[o.stride:o.stride+o.width])
	})
}
