package synthetic

import (
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models/gguf"
)

// Experts is the size of a layer's mixture: how many experts it has, how many of
// them a token takes, and how wide each is.
type Experts struct {
	Count, Used, FFN int
	Shared           int // width of the one that all tokens take, of Qwen2MoE and Qwen35MoE
	Dense            int // layers that have feed-forwards instead, the first, of LFM2MoE
}

// mixes reports whether layers are mixtures.
func (s *Shape) mixes() bool {
	return slices.Contains([]Arch{Qwen2MoE, Qwen3MoE, Qwen35MoE, GPTOSS, LFM2MoE, NemotronHMoE}, s.Arch)
}

// experts adds the mixture of layer i. Its router is random too, so that every expert
// is chosen about as often as any other.
func (s *Shape) experts(b *builder, i int, t, down gguf.Type) {
	e := s.Experts
	b.tensor(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i), gguf.F32, 1/math.Sqrt(float64(s.Hidden)), s.Hidden, e.Count)
	stack := func(name string, t gguf.Type, rows, cols int) {
		b.tensor(fmt.Sprintf("blk.%d.%s_exps.weight", i, name), t, 1/math.Sqrt(float64(cols)), cols, rows, e.Count)
	}
	if !s.onePart() {
		stack("ffn_gate", t, e.FFN, s.Hidden)
	}
	stack("ffn_up", t, e.FFN, s.Hidden)
	stack("ffn_down", down, s.Hidden, e.FFN)
	switch s.Arch {
	case Qwen2MoE, Qwen35MoE:
		for _, of := range []struct {
			name       string
			rows, cols int
		}{{"gate", e.Shared, s.Hidden}, {"up", e.Shared, s.Hidden}, {"down", s.Hidden, e.Shared}} {
			b.matrix(fmt.Sprintf("blk.%d.ffn_%s_shexp.weight", i, of.name), t, of.rows, of.cols, 1/math.Sqrt(float64(of.cols)))
		}
		b.tensor(fmt.Sprintf("blk.%d.ffn_gate_inp_shexp.weight", i), gguf.F32, 1/math.Sqrt(float64(s.Hidden)), s.Hidden)
	case NemotronHMoE:
		b.numbers(fmt.Sprintf("blk.%d.exp_probs_b.bias", i), e.Count, 0)
		b.matrix(fmt.Sprintf("blk.%d.ffn_up_shexp.weight", i), t, e.Shared, s.Hidden, 1/math.Sqrt(float64(s.Hidden)))
		b.matrix(fmt.Sprintf("blk.%d.ffn_down_shexp.weight", i), t, s.Hidden, e.Shared, 1/math.Sqrt(float64(e.Shared)))
	case LFM2MoE:
		b.numbers(fmt.Sprintf("blk.%d.exp_probs_b.bias", i), e.Count, 0)
	}
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
