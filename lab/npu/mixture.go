package npu

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/hexagon/experts"
	"github.com/lutra-lm/lutra/lab/npu/soc"
	"github.com/lutra-lm/lutra/models/gguf"
)

// Mixture has the parts of a model that a plan of its experts needs.
type Mixture struct {
	Shape experts.Shape
	Dense soc.Model      // what is not an expert's
	Parts [][]soc.Matrix // [layers] gate, up and down of one expert
}

// ShapeMixture returns the mixture of the shape of that name; false: its layers are none, or
// there is no such shape.
func ShapeMixture(name string) (*Mixture, bool) {
	list := shapes()
	i := slices.IndexFunc(list, func(s shape) bool { return s.name == name && s.experts.Count > 0 })
	if i < 0 {
		return nil, false
	}
	s := list[i]
	m := &Mixture{Shape: experts.Shape{Model: name, Layers: s.layers, Experts: s.experts.Count, Chosen: s.experts.Used, Hidden: s.hidden, Width: s.experts.FFN}, Dense: s.model()}
	for range s.layers {
		m.Parts = append(m.Parts, []soc.Matrix{
			s.matrix("ffn_gate", s.experts.FFN, s.hidden, 1), s.matrix("ffn_up", s.experts.FFN, s.hidden, 1), s.matrix("ffn_down", s.hidden, s.experts.FFN, 1),
		})
	}
	return m, true
}

// FileMixture returns the mixture of a GGUF file. It fails on a model without experts.
func FileMixture(name string, f *gguf.File) (*Mixture, error) {
	dense, err := FromFile(name, f)
	if err != nil {
		return nil, err
	}
	if dense.Experts == 0 {
		return nil, fmt.Errorf("%s has no mixtures of experts", name)
	}
	arch, _ := f.Metadata.String("general.architecture")
	chosen, _ := f.Metadata.Int(arch + ".expert_used_count")
	layers, _ := f.Metadata.Int(arch + ".block_count") // some of which may have no attention
	m := &Mixture{Dense: dense, Shape: experts.Shape{Model: name, Layers: layers, Experts: dense.Experts, Chosen: chosen}}
	for i := 0; i < layers; i++ {
		var parts []soc.Matrix
		for _, part := range []string{"gate", "up", "down"} {
			t := cmp.Or(f.Tensor(fmt.Sprintf("blk.%d.ffn_%s_exps.weight", i, part)), f.Tensor(fmt.Sprintf("blk.%d.ffn_%s.0.weight", i, part)))
			if t == nil || len(t.Dims) < 2 {
				return nil, fmt.Errorf("%s: layer %d has no ffn_%s of experts", name, i, part)
			}
			s, held := stored(t.Type)
			x := s.matrix("ffn_"+part, t.Dims[1], t.Dims[0], 1)
			x.Host = !held
			parts = append(parts, x)
		}
		m.Shape.Hidden, m.Shape.Width = parts[0].K, parts[0].M
		m.Parts = append(m.Parts, parts)
	}
	if err := m.Shape.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// Store has all weights of the layers stored in bits bits, as Change does.
func (m *Mixture) Store(bits int) error {
	if bits == 0 {
		return nil
	}
	x := soc.Model{Matrices: slices.Concat(m.Parts...)}
	if err := (Change{Bits: bits}).Apply(&x); err != nil {
		return err
	}
	for i := range m.Parts {
		m.Parts[i], x.Matrices = x.Matrices[:3], x.Matrices[3:]
	}
	return (Change{Bits: bits}).Apply(&m.Dense)
}

// ExpertBytes returns what one expert of each layer takes on a device; 0: it does not hold it
// as it is stored.
func (m *Mixture) ExpertBytes(d experts.Device) (list []int64) {
	for _, parts := range m.Parts {
		n, held := int64(0), true
		for _, x := range parts {
			held = held && !x.Host
			if d.WeightBits > 0 {
				n += int64(x.M) * int64(x.K) * int64(d.WeightBits) / 8
			} else {
				n += int64(x.Bytes())
			}
		}
		if d.WeightBits == 0 && !held {
			n = 0
		}
		list = append(list, n)
	}
	return list
}

// DenseBytes returns what the rest of the model takes there, with keys and values of
// context tokens.
func (m *Mixture) DenseBytes(context int) int64 {
	return int64(m.Dense.Bytes()) + int64(m.Dense.KVBytes())*int64(context)
}
