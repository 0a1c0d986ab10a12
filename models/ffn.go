package models

import (
	"slices"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/load"
)

// feedForward is a layer's gated feed-forward, from normed rows h to what it
// adds to the residual stream:
//
//	y = (act(h·Wgate) · h·Wup)·Wdown
//
// or, where there is no gate, y = act(h·Wup + b)·Wdown + b.
// Norms and biases may be nil.
type feedForward struct {
	width    int
	up       product      // gate and up, or up alone
	ungated  bool         // there is no gate
	normed   *normedStack // in place of up, where gate and up do not read h as it is
	unit     GatedUnit
	upBias   []float32
	subNorm  []float32 // of what down reads
	down     product
	downBias []float32
	postNorm []float32 // of y
}

// readWidths reads how wide feed-forwards are. Where all layers are mixtures, files may give
// the width of an expert alone; of one part a layer, the layers that have none have 0.
func readWidths(h *load.Header, m *spec) {
	if m.arch.attention.none {
		statesAlone(h, m)
		return
	}
	const name = "feed_forward_length"
	list, listed := perLayer(h, m, name)
	switch x := m.arch.ffn.mixture; {
	case x != nil && !x.optional && !m.arch.onePart && !h.Has(name):
		m.FFN = h.Int("expert_feed_forward_length", 1, load.MaxDim, load.Required)
	case listed && m.arch.ffn.widths || m.arch.onePart:
		least := 1
		if m.arch.onePart {
			least = 0
		}
		if len(list) != m.Layers || slices.Min(list) < least || slices.Max(list) > load.MaxDim {
			h.Fail("%s is %v, want one number for each of %d layers, %d to %d", h.Key(name), list, m.Layers, least, load.MaxDim)
			return
		}
		m.FFN = slices.Max(list)
	default:
		m.FFN, list = h.Int(name, 1, load.MaxDim, load.Required), nil
	}
	for i := range m.layers {
		y := &m.layers[i]
		if y.width = m.FFN; list != nil {
			y.width = list[i]
		}
		if y.alone = m.arch.onePart && y.width > 0; y.alone {
			m.StatelessLayers++
		}
	}
}

// readUnit reads which gated unit feed-forwards have: GEGLU unless the file says otherwise.
func readUnit(h *load.Header, m *spec) {
	if m.unit = m.arch.ffn.activation; m.unit != 0 {
		return
	}
	switch name := h.Text("hidden_activation", "gelu"); name {
	case "gelu":
		m.unit = UnitErfGELU
	case "silu":
		m.unit = UnitSiLU
	default:
		h.Fail("%s is %q, want gelu or silu", h.Key("hidden_activation"), name)
	}
}

// loadFeedForward loads the feed-forward of a layer.
func loadFeedForward(t *tensors, m *spec, y *layerSpec) *feedForward {
	v, n := &m.arch.ffn, y.width
	f := &feedForward{unit: m.unit, ungated: v.ungated, width: n}
	up, gate, down := y.tensor("ffn_up.weight"), y.tensor("ffn_gate.weight"), y.tensor("ffn_down.weight")
	f.normed = loadNormedStack(t, m, y, []string{"ffn_gate", "ffn_up"}, n, n)
	switch {
	case f.normed != nil:
		f.ungated = false
		f.subNorm = t.Vector(y.tensor("ffn_down_norm_in.weight"), n)
	case v.ungated:
		f.up, f.upBias = t.rotatedMatrix(up, n, m.Hidden), loadBias(t, m, y.tensor("ffn_up.bias"), n)
	case v.gateUp == fused || v.gateUp == either && !t.Has(gate):
		f.up = t.rotatedProduct(m.Hidden, t.Rows(up, 0, n, m.Hidden, 2*n), t.Rows(up, n, 2*n, m.Hidden, 2*n))
	default:
		f.up = t.rotatedProduct(m.Hidden, t.Whole(gate, n, m.Hidden), t.Whole(up, n, m.Hidden))
	}
	if m.arch.norms.sub {
		f.subNorm = t.Vector(y.tensor("ffn_sub_norm.weight"), n)
	}
	f.down, f.downBias = t.rotatedMatrix(down, m.Hidden, n), loadBias(t, m, y.tensor("ffn_down.bias"), m.Hidden)
	if m.arch.norms.post {
		f.postNorm = t.Vector(y.tensor("post_ffw_norm.weight"), m.Hidden)
	}
	return f
}

// loadBias loads a bias of a feed-forward, if there are any.
func loadBias(t *tensors, m *spec, name string, n int) []float32 {
	switch v := &m.arch.ffn; {
	case v.biases:
		return t.Vector(name, n)
	case v.ungated:
		return t.OptionalVector(name, n)
	}
	return nil
}

// run sets y.
func (f *feedForward) run(s *rowShard) {
	made := s.gateUp
	if f.normed != nil {
		f.normed.run(made, s)
	} else {
		f.up.run(s, made, s.h)
	}
	stride := 2 * f.width
	if f.ungated {
		stride = f.width
		s.ops.addBias(made, s.rows, f.upBias)
	}
	s.ops.gate(f.unit, s.gate, made, s.rows, f.width, stride)
	s.ops.normInto(s.gate, s.rows, f.subNorm, s.cfg.NormEps)
	f.down.run(s, s.y, s.gate)
	s.ops.addBias(s.y, s.rows, f.downBias)
	s.ops.normInto(s.y, s.rows, f.postNorm, s.cfg.postEps)
}

// GatedUnit combines a feed-forward's gate and up: act(gate) · up (Shazeer, "GLU Variants Improve Transformer",
// §2).
type GatedUnit uint8

// The units, by act.
const (
	UnitSiLU        GatedUnit = iota + 1
	UnitGELU                  // its tanh form
	UnitErfGELU               // exact
	UnitReLU2                 // max(g, 0)²
	UnitClampedSiLU           // of gate and up within bounds
	UnitClamped               // gpt-oss'
)

var gatedUnits = [...]func(dst, gate, up []float32){
	UnitSiLU: vector.SwiGLU, UnitGELU: vector.GeGLU, UnitErfGELU: vector.ErfGLU, UnitReLU2: vector.ReLU2GLU,
	UnitClampedSiLU: vector.ClampedSwiGLU, UnitClamped: vector.ClampedGLU,
}

// row sets dst of one row to act(gate)·up of gate and up, side by side, or to act of gate alone.
func (u GatedUnit) row(dst, made []float32) {
	n := len(dst)
	if len(made) > n {
		gatedUnits[u](dst, made[:n], made[n:])
		return
	}
	for lo := 0; lo < n; lo += vector.MostOnes {
		hi := min(n, lo+vector.MostOnes)
		gatedUnits[u](dst[lo:hi], made[lo:hi], vector.Ones(hi-lo))
	}
}
