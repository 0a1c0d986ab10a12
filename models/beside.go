package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// beside is a feed-forward and a mixture of experts side by side, each with norms of its
// own (Gemma 4's 26B-A4B), from the residual stream x:
//
//	y = norm(norm(feedForward(norm(x))) + norm(mixture(norm(x))))
type beside struct {
	dense    *feedForward
	mixture  *mixture
	norm     []float32  // of what the mixture makes
	postNorm []float32  // of the sum
	kept     *[]float32 // memory that all layers share, for what dense makes
}

// beside loads that of layer i.
func (l *loader) beside(i int, dense *feedForward, m *mixture, kept *[]float32) *beside {
	name, hidden := layerNames(i), l.cfg.Hidden
	b := &beside{dense: dense, mixture: m, postNorm: dense.postNorm, kept: kept, norm: l.Vector(name("post_ffw_norm_2.weight"), hidden)}
	dense.postNorm = l.Vector(name("post_ffw_norm_1.weight"), hidden)
	m.norm, m.routerNorm = l.Vector(name("pre_ffw_norm_2.weight"), hidden), l.Vector(name("ffn_gate_inp.scale"), hidden)
	vector.ScaleInto(m.routerNorm, float32(1/math.Sqrt(float64(hidden))))
	if down := l.file.Tensor(name("ffn_down_exps.weight")); down == nil || down.Type != gguf.NVFP4 { // whose weights have them
		m.factors = l.OptionalVector(name("ffn_down_exps.scale"), l.cfg.Experts)
	}
	return b
}

// run sets y.
func (b *beside) run(s *rowShard) {
	n := s.rows * s.cfg.Hidden
	b.dense.run(s)
	*b.kept = cpu.Grow(*b.kept, n)
	copy(*b.kept, s.y[:n])
	b.mixture.run(s)
	s.ops.normInto(s.y, s.rows, b.norm, s.cfg.NormEps)
	s.ops.add(s.y, *b.kept, s.rows, s.cfg.Hidden)
	s.ops.normInto(s.y, s.rows, b.postNorm, s.cfg.NormEps)
}
