package models

import (
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/models/weights"
)

// feedForward is a layer's gated feed-forward, from normed rows h to what it
// adds to the residual stream:
//
//	y = (act(h·Wgate) · h·Wup)·Wdown
//
// or, where there is no gate, y = act(h·Wup + b)·Wdown + b.
// Norms and biases may be nil.
type feedForward struct {
	width      int
	gateUp     weights.Stacked
	normed     *normedStack   // in place of gateUp, where gate and up do not read h as it is
	activation GatedUnit      // of gateUp, or of up
	subNorm    []float32      // of what down reads
	up         kernels.Linear // in place of gateUp, where there is no gate
	upBias     []float32
	down       kernels.Linear
	downBias   []float32
	postNorm   []float32 // of y

	rotate, last rotation // of what gateUp and down read
	onUp, onDown *target  // onUp: of gateUp, or of up alone
}

// feedForward loads that of layer i.
func (l *loader) feedForward(i int) *feedForward {
	c, v, name := &l.cfg, &l.arch.ffn, layerNames(i)
	f := &feedForward{activation: v.activation, width: c.FFN}
	if l.widths != nil {
		f.width = l.widths[i]
	}
	ffn := f.width
	c.widest = max(c.widest, ffn)
	if v.activation == 0 {
		f.activation = l.activation()
	}
	up, gate, down := name("ffn_up.weight"), name("ffn_gate.weight"), name("ffn_down.weight")
	f.last = l.rotation(ffn, down)
	f.normed = l.normedStack(i, []string{"ffn_gate", "ffn_up"}, ffn, ffn)
	if f.normed != nil {
		f.subNorm = l.Vector(name("ffn_down_norm_in.weight"), ffn)
	} else if v.ungated {
		f.rotate = l.rotation(c.Hidden, up)
		f.up, f.upBias = l.Matrix(up, ffn, c.Hidden), l.bias(name("ffn_up.bias"), ffn)
		f.onUp = l.target(c.Hidden, &f.rotate, whole(up, ffn))
	} else if v.gateUp == fused || v.gateUp == either && l.file.Tensor(gate) == nil {
		f.rotate = l.rotation(c.Hidden, up)
		f.gateUp = l.Stack(l.Part(up, 2*ffn, 0, ffn, c.Hidden), l.Part(up, 2*ffn, ffn, 2*ffn, c.Hidden))
	} else {
		f.rotate = l.rotation(c.Hidden, gate, up)
		f.gateUp = l.Stack(l.Whole(gate, ffn, c.Hidden), l.Whole(up, ffn, c.Hidden))
	}
	if f.normed == nil && f.up == nil {
		f.onUp = l.target(c.Hidden, &f.rotate, f.gateUp.Rows...)
	}
	if l.arch.norms.sub {
		f.subNorm = l.Vector(name("ffn_sub_norm.weight"), ffn)
	}
	f.down = l.Matrix(down, c.Hidden, ffn)
	f.onDown = l.target(ffn, &f.last, whole(down, c.Hidden))
	f.downBias = l.bias(name("ffn_down.bias"), c.Hidden)
	if l.arch.norms.post {
		f.postNorm = l.Vector(name("post_ffw_norm.weight"), c.Hidden)
	}
	return f
}

// bias reads one of a feed-forward, if there are any.
func (l *loader) bias(name string, n int) []float32 {
	switch v := &l.arch.ffn; {
	case v.biases:
		return l.Vector(name, n)
	case v.ungated:
		return l.OptionalVector(name, n)
	}
	return nil
}

// activation reads which gated unit a feed-forward has: GEGLU unless the file says otherwise.
func (l *loader) activation() GatedUnit {
	switch name := l.text("hidden_activation", "gelu"); name {
	case "gelu":
		return UnitErfGELU
	case "silu":
		return UnitSiLU
	default:
		l.Fail("%s is %q, want gelu or silu", l.key("hidden_activation"), name)
		return 0
	}
}

// run sets y.
func (f *feedForward) run(s *rowShard) {
	if f.normed == nil {
		s.ops.rotate(s.h, s.rows, s.cfg.Hidden, &f.rotate)
		s.acts.Set(s.h, s.rows, s.cfg.Hidden)
	}
	if f.up != nil {
		f.up.Mul(s.gate, &s.acts)
		s.adapt(s.gate, f.onUp)
		s.ops.addBias(s.gate, s.rows, f.upBias)
		s.ops.gate(f.activation, s.gate, s.gate, s.rows, f.width, f.width)
	} else {
		if f.normed != nil {
			f.normed.run(s.gateUp, s)
		} else {
			f.gateUp.Mul(s.gateUp, &s.acts, &s.part)
			s.adapt(s.gateUp, f.onUp)
		}
		s.ops.gate(f.activation, s.gate, s.gateUp, s.rows, f.width, 2*f.width)
	}
	s.ops.normInto(s.gate, s.rows, f.subNorm, s.cfg.NormEps)
	s.ops.rotate(s.gate, s.rows, f.width, &f.last)
	s.acts.Set(s.gate, s.rows, f.width)
	f.down.Mul(s.y, &s.acts)
	s.adapt(s.y, f.onDown)
	s.ops.addBias(s.y, s.rows, f.downBias)
	s.ops.normInto(s.y, s.rows, f.postNorm, s.cfg.postEps)
}
