package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/load"
)

// layerInputs is the embeddings that each layer has of its own ("Gemma 3n" and "Gemma 4":
// per-layer embeddings), of tokens and of what embeds them:
//
//	inputs[layer] = (norm(x·Wlayer/√Hidden) + √width·table[token][layer]) / √2
type layerInputs struct {
	width   int          // of a layer's
	table   *gguf.Tensor // [Vocab][Layers·width]
	project product      // [Layers·width][Hidden]
	norm    []float32    // [width], divided by √2
}

// readLayerInputs reads how wide they are, 0 where there are none.
func readLayerInputs(h *load.Header, m *spec) {
	if !m.arch.layerInputs {
		return
	}
	m.LayerInputs = h.Int("embedding_length_per_layer_input", 0, load.MaxDim, 0)
	if int64(m.LayerInputs)*int64(m.Layers) > load.MaxDim {
		h.Fail("%s is %d, of %d layers: too many", h.Key("embedding_length_per_layer_input"), m.LayerInputs, m.Layers)
	}
}

// loadLayerInputs loads them, nil if the model has none.
func loadLayerInputs(t *tensors, m *spec) *layerInputs {
	if m.LayerInputs == 0 {
		return nil
	}
	all := m.LayerInputs * m.Layers
	in := &layerInputs{
		width: m.LayerInputs, table: t.Tensor("per_layer_token_embd.weight", all, m.Vocab),
		project: t.plainMatrix("per_layer_model_proj.weight", all, m.Hidden), norm: t.Vector("per_layer_proj_norm.weight", m.LayerInputs),
	}
	vector.ScaleInto(in.norm, math.Sqrt2/2)
	return in
}

// run sets the inputs of the rows, whose embeddings are x.
func (in *layerInputs) run(s *rowShard) {
	all := in.width * s.cfg.Layers
	s.ops.embed(s.inputs, all, in.table, s.tokens, float32(math.Sqrt(float64(in.width)/2)))
	in.project.run(s, s.projected, s.x)
	addProjected(s, in)
}

// addProjected adds what is projected, normed, to the inputs.
func addProjected(s *rowShard, in *layerInputs) {
	o := &s.ops
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

// layerEnd follows a layer's feed-forward: it adds its input, gated by x, and scales.
//
//	x = scale·(x + norm((gelu(x·Wgate)·input)·Wup))
type layerEnd struct {
	layer    int
	gate, up product // none: there is no input
	norm     []float32
	scale    float32
}

// loadLayerEnd loads the end of a layer, nil if it has none.
func loadLayerEnd(t *tensors, m *spec, y *layerSpec) *layerEnd {
	if !m.arch.layerInputs {
		return nil
	}
	e := &layerEnd{layer: y.index, scale: 1}
	if v := t.OptionalVector(y.tensor("layer_output_scale.weight"), 1); v != nil {
		e.scale = v[0]
	}
	if m.LayerInputs > 0 {
		e.gate, e.up = t.plainMatrix(y.tensor("inp_gate.weight"), m.LayerInputs, m.Hidden), t.plainMatrix(y.tensor("proj.weight"), m.Hidden, m.LayerInputs)
		e.norm = t.Vector(y.tensor("post_norm.weight"), m.Hidden)
	}
	return e
}

// run changes x.
func (e *layerEnd) run(s *rowShard) {
	if !e.gate.none() {
		e.gate.run(s, s.gate, s.x)
		gateInput(s, e.layer, s.cfg.LayerInputs)
		e.up.run(s, s.y, s.gate)
		s.ops.normInto(s.y, s.rows, e.norm, s.cfg.NormEps)
		s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
	}
	s.ops.multiply(s.x, s.rows, s.cfg.Hidden, e.scale)
}

// gateInput sets the gates, [rows][width], to gelu(gate) times the input of a layer.
func gateInput(s *rowShard, layer, width int) {
	o := &s.ops
	o.shard, o.stride, o.width = s, layer*width, width
	o.each(s.rows, width, func(o *rowOps, i int) {
		s := o.shard
		gate := rowOf(s.gate, i, o.width)
		vector.GeGLU(gate, gate, rowOf(s.inputs, i, o.width*s.cfg.Layers)[o.stride:o.stride+o.width])
	})
}
