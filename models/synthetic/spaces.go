package synthetic

import (
	"fmt"
	"math"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
)

// Spaces is the size of the state spaces of NemotronH and Mamba2, and what each layer is: M a state space, * attention,
// - a feed-forward, E a mixture. A model of fewer layers has the first.
type Spaces struct {
	Pattern                     string
	Heads, HeadDim, Groups, Len int
}

// onePart tells whether a layer has one part alone.
func (s *Shape) onePart() bool {
	return s.Arch == NemotronH || s.Arch == NemotronHMoE || s.Arch == Mamba2
}

func (s *Shape) validateSpaces() error {
	p := s.Spaces
	if s.onePart() && (len(p.Pattern) < s.Layers || strings.Trim(p.Pattern, "M*-E") != "" || min(p.Heads, p.HeadDim, p.Groups, p.Len) < 1 ||
		max(p.Heads, p.HeadDim, p.Groups, p.Len) > 1<<12 || p.Heads%p.Groups != 0) {
		return fmt.Errorf("%w: shape %+v: %d heads of %d in %d groups for layers %q", ErrOptions, *s, p.Heads, p.HeadDim, p.Groups, p.Pattern)
	}
	return nil
}

// perLayer returns the KV heads and the width of the feed-forward of each layer.
func (s *Shape) perLayer() (heads, widths []int32) {
	heads, widths = make([]int32, s.Layers), make([]int32, s.Layers)
	for i := range heads {
		switch s.Spaces.Pattern[i] {
		case '*':
			heads[i] = int32(s.KVHeads)
		case '-':
			widths[i] = int32(s.FFN)
		case 'E':
			widths[i] = int32(s.Experts.FFN)
		}
	}
	return heads, widths
}

// part adds what layer i is.
func (s *Shape) part(b *builder, i int, block func(name string, rows, cols int), t, down gguf.Type) {
	switch s.Spaces.Pattern[i] {
	case '*':
		s.attention(b, i, block)
	case '-':
		block("ffn_up", s.FFN, s.Hidden)
		block("ffn_down", s.Hidden, s.FFN)
	case 'E':
		s.experts(b, i, t, down)
	default:
		s.stateSpace(b, i, block)
	}
}

// stateSpace adds the state space of layer i.
func (s *Shape) stateSpace(b *builder, i int, block func(name string, rows, cols int)) {
	p := s.Spaces
	inner := p.Heads * p.HeadDim
	channels := inner + 2*p.Groups*p.Len
	name := func(of string) string { return fmt.Sprintf("blk.%d.%s", i, of) }
	block("ssm_in", inner+channels+p.Heads, s.Hidden)
	b.matrix(name("ssm_conv1d.weight"), gguf.F32, channels, taps, 1/math.Sqrt(taps))
	b.numbers(name("ssm_conv1d.bias"), channels, 0)
	b.array(name("ssm_a"), -0.125, 1, p.Heads) // a memory of about ten tokens
	b.array(name("ssm_d"), 1, 1, p.Heads)
	b.numbers(name("ssm_dt.bias"), p.Heads, 0)
	b.array(name("ssm_norm.weight"), 1, inner/p.Groups, p.Groups)
	block("ssm_out", s.Hidden, inner)
}
