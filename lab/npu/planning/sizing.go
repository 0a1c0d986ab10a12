package planning

import (
	"fmt"

	"github.com/lutra-lm/lutra/hexagon/experts"
)

// Sizing says how the capacities of experts are found.
type Sizing struct {
	// Uniform is the capacity of all experts, rounded up to the device's units; 0: tiers.
	Uniform int
	// Headroom is by how much tiers and expected rows are multiplied: with 1, chunks
	// that give an expert more than on average overflow.
	Headroom float64
}

// Sizings returns those that Plan weighs: the paper's tiers, with and without headroom, and
// its fixed capacities (NPUMoE §5.1).
func Sizings() []Sizing {
	return []Sizing{{Headroom: 1}, {Headroom: 1.5}, {Headroom: 2}, {Uniform: 32}, {Uniform: 64}, {Uniform: 128}}
}

// String returns the sizing in words.
func (s Sizing) String() string {
	switch {
	case s.Uniform > 0:
		return fmt.Sprintf("uniform %d", s.Uniform)
	case s.Headroom == 1:
		return "tiers"
	}
	return fmt.Sprintf("tiers × %g", s.Headroom)
}

// mostHeadroom bounds what capacities are multiplied by.
const mostHeadroom = 64

// Check reports what is no sizing.
func (s Sizing) Check() error {
	if s.Uniform < 0 || s.Uniform > experts.MostChunk || s.Uniform == 0 && !(s.Headroom >= 1 && s.Headroom <= mostHeadroom) {
		return fmt.Errorf("a capacity of %d or a headroom of %v", s.Uniform, s.Headroom)
	}
	return nil
}

// layer sets base, busiest and tiers of a layer, and returns the capacity of each expert
// in the layer's order. shares are of the tokens, by expert.
func (s Sizing) layer(l *experts.Layer, o *Options, order []int, shares []float64) []int {
	headroom := s.Headroom
	if s.Uniform > 0 {
		headroom = 1
	}
	l.Base, l.Busiest, l.Tiers = Tiers(o.Chunk, o.Shape.Chosen, o.Shape.Experts, l.Imbalance*headroom, o.Device.Rows)
	if s.Uniform > 0 {
		l.Tiers = []int{min(up(s.Uniform, o.Device.Rows), up(o.Chunk, o.Device.Rows))}
	}
	capacities := make([]int, len(order))
	for i, e := range order {
		capacities[i] = tierOf(l.Tiers, headroom*shares[e]*float64(o.Chunk))
	}
	return capacities
}
