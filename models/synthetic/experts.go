package synthetic

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/models/gguf"
)

// Experts is the size of a layer's mixture: how many experts it has, how many of
// them a token takes, and how wide each is.
type Experts struct{ Count, Used, FFN int }

// mixes reports whether the layers are mixtures.
func (s *Shape) mixes() bool { return s.Arch == Qwen3MoE || s.Arch == GPTOSS }

// experts adds the mixture of layer i. Its router is random too, so that every expert
// is chosen about as often as any other.
func (s *Shape) experts(b *builder, i int, t gguf.Type) {
	e := s.Experts
	b.tensor(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i), gguf.F32, 1/math.Sqrt(float64(s.Hidden)), s.Hidden, e.Count)
	stack := func(name string, rows, cols int) {
		b.tensor(fmt.Sprintf("blk.%d.%s_exps.weight", i, name), t, 1/math.Sqrt(float64(cols)), cols, rows, e.Count)
	}
	stack("ffn_gate", e.FFN, s.Hidden)
	stack("ffn_up", e.FFN, s.Hidden)
	stack("ffn_down", s.Hidden, e.FFN)
	if s.Arch != GPTOSS {
		return
	}
	b.numbers(fmt.Sprintf("blk.%d.ffn_gate_inp.bias", i), e.Count, 0)
	for _, of := range []struct {
		name string
		rows int
	}{{"gate", e.FFN}, {"up", e.FFN}, {"down", s.Hidden}} {
		b.tensor(fmt.Sprintf("blk.%d.ffn_%s_exps.bias", i, of.name), gguf.F32, 1/math.Sqrt(float64(s.Hidden)), of.rows, e.Count)
	}
}
