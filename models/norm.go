package models

// rowNorm is a norm of the residual stream: RMSNorm, or LayerNorm (Ba et al.
// 2016). The zero value changes nothing.
type rowNorm struct {
	weight  []float32 // [Hidden]
	bias    []float32 // [Hidden], or nil
	centred bool      // it is LayerNorm, and has a bias
}

// run sets h to the norm of x.
func (n *rowNorm) run(s *rowShard) {
	if n.weight == nil || n.centred {
		copy(s.h, s.x[:s.rows*s.cfg.Hidden])
		s.ops.layerNorm(s.h, s.rows, n.weight, n.bias, s.cfg.NormEps)
		return
	}
	s.ops.norm(s.h, s.x, s.rows, n.weight, s.cfg.NormEps)
	s.ops.addBias(s.h, s.rows, n.bias)
}

// addAndRun adds y to x and sets h to the norm of the sum.
func (n *rowNorm) addAndRun(s *rowShard) {
	if n.weight == nil || n.centred {
		s.ops.add(s.x, s.y, s.rows, s.cfg.Hidden)
		n.run(s)
		return
	}
	s.ops.addNorm(s.h, s.x, s.y, s.rows, n.weight, s.cfg.NormEps)
	s.ops.addBias(s.h, s.rows, n.bias)
}

// loadAttentionNorm loads the norm ahead of the attention of a layer. ModernBERT's first
// layer has none: its embeddings are normed already.
func loadAttentionNorm(t *tensors, m *spec, y *layerSpec) rowNorm {
	name := y.tensor("attn_norm")
	if m.arch.preNormEncoder() && y.index == 0 && !t.Has(name+".weight") {
		return rowNorm{}
	}
	return loadNorm(t, m, name)
}

// loadNorm loads a norm of the residual stream.
func loadNorm(t *tensors, m *spec, name string) (n rowNorm) {
	if m.arch.norms.layerNorms() {
		return loadLayerNorm(t, m, name)
	}
	tensor := name + ".weight"
	if !t.Has(tensor) && t.Has(name) {
		tensor = name // as llama.cpp's converter names one of Falcon-H1's
	}
	n.weight = t.Vector(tensor, m.Hidden)
	if m.authors {
		n.bias, n.centred = t.Vector(name+".bias", m.Hidden), true
	} else if m.arch.norms.kind == rmsNormBias {
		n.bias = t.OptionalVector(name+".bias", m.Hidden)
	}
	return n
}

// loadLayerNorm loads a LayerNorm. ModernBERT's have no bias.
func loadLayerNorm(t *tensors, m *spec, name string) rowNorm {
	n := rowNorm{weight: t.Vector(name+".weight", m.Hidden), centred: true}
	if m.arch.norms.kind == layerNormBare {
		n.bias = make([]float32, m.Hidden)
	} else {
		n.bias = t.Vector(name+".bias", m.Hidden)
	}
	return n
}
