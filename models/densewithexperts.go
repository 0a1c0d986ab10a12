package models

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// denseWithExperts is a feed-forward and a mixture of experts side by side, each with norms of its
// own (Gemma 4's 26B-A4B), from the residual stream x:
//
//	y = norm(norm(feedForward(norm(x))) + norm(mixture(norm(x))))
type denseWithExperts struct {
	dense    *feedForward
	mixture  *mixture
	norm     []float32  // of what the mixture makes
	postNorm []float32  // of the sum
	kept     *[]float32 // memory that all layers share, for what dense makes
}

// loadBeside loads the two of a layer.
func loadBeside(t *tensors, m *spec, y *layerSpec, all *mixtures) *denseWithExperts {
	dense, x := loadFeedForward(t, m, y), loadMixture(t, m, y, all)
	b := &denseWithExperts{dense: dense, mixture: x, postNorm: dense.postNorm, kept: &all.kept, norm: t.Vector(y.tensor("post_ffw_norm_2.weight"), m.Hidden)}
	dense.postNorm = t.Vector(y.tensor("post_ffw_norm_1.weight"), m.Hidden)
	x.norm, x.routerNorm = t.Vector(y.tensor("pre_ffw_norm_2.weight"), m.Hidden), t.Vector(y.tensor("ffn_gate_inp.scale"), m.Hidden)
	vector.ScaleInto(x.routerNorm, float32(1/math.Sqrt(float64(m.Hidden))))
	if down := t.File().Tensor(y.tensor("ffn_down_exps.weight")); down == nil || down.Type != gguf.NVFP4 { // whose weights have them
		x.factors = t.OptionalVector(y.tensor("ffn_down_exps.scale"), m.Experts)
	}
	return b
}

// run sets y.
func (b *denseWithExperts) run(s *rowShard) {
	n := s.rows * s.cfg.Hidden
	b.dense.run(s)
	*b.kept = cpu.Grow(*b.kept, n)
	copy(*b.kept, s.y[:n])
	b.mixture.run(s)
	s.ops.normInto(s.y, s.rows, b.norm, s.cfg.NormEps)
	s.ops.add(s.y, *b.kept, s.rows, s.cfg.Hidden)
	s.ops.normInto(s.y, s.rows, b.postNorm, s.cfg.NormEps)
}
