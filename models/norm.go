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

// attentionNorm loads the norm ahead of the attention of layer i. ModernBERT's first
// layer has none: its embeddings are normed already.
func (l *loader) attentionNorm(i int) rowNorm {
	name := layerNames(i)("attn_norm")
	if l.arch.preNormEncoder() && i == 0 && l.file.Tensor(name+".weight") == nil {
		return rowNorm{}
	}
	return l.rowNorm(name)
}

// rowNorm loads a norm of the residual stream.
func (l *loader) rowNorm(name string) (n rowNorm) {
	if l.arch.norms.layerNorms() {
		return l.layerNorm(name)
	}
	tensor := name + ".weight"
	if l.file.Tensor(tensor) == nil && l.file.Tensor(name) != nil {
		tensor = name // as llama.cpp's converter names one of Falcon-H1's
	}
	n.weight = l.Vector(tensor, l.cfg.Hidden)
	if l.arch.norms.kind == rmsNormBias {
		n.bias = l.OptionalVector(name+".bias", l.cfg.Hidden)
		if l.asAuthors() {
			n.bias, n.centred = l.Vector(name+".bias", l.cfg.Hidden), true
		}
	}
	return n
}

// layerNorm loads a LayerNorm. ModernBERT's have no bias.
func (l *loader) layerNorm(name string) rowNorm {
	n := rowNorm{weight: l.Vector(name+".weight", l.cfg.Hidden), centred: true}
	if l.arch.norms.kind == layerNormBare {
		n.bias = make([]float32, l.cfg.Hidden)
	} else {
		n.bias = l.Vector(name+".bias", l.cfg.Hidden)
	}
	return n
}
