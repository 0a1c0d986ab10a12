package models

import "github.com/lutra-lm/lutra/kernels"

// latentExperts is the way into the space that experts read and make, narrower than the stream, and
// out of it ("Nemotron 3", §2.2): y = shared(h) + (Σ weight·expert(h·Wdown))·Wup.
type latentExperts struct {
	down, up     kernels.Linear
	onDown, onUp *target
}

// latentExperts loads the two matrices of a layer.
func (l *loader) latentExperts(name func(string) string) *latentExperts {
	hidden, reads := l.cfg.Hidden, l.cfg.reads
	down, up := name("ffn_latent_down.weight"), name("ffn_latent_up.weight")
	return &latentExperts{
		down: l.Matrix(down, reads, hidden), up: l.Matrix(up, hidden, reads),
		onDown: l.target(hidden, &rotation{}, whole(down, reads)), onUp: l.target(reads, &rotation{}, whole(up, hidden)),
	}
}

// intoLatent has the experts read the latent space, if there is one.
func (x *expertPass) intoLatent() {
	m, s := x.m, x.s
	if m.latent == nil {
		return
	}
	m.latent.down.Mul(x.latent, &s.acts)
	s.adapt(x.latent, m.latent.onDown)
	s.acts.Set(x.latent, s.rows, m.reads)
}

// outOfLatent adds to y what the experts have made there.
func (x *expertPass) outOfLatent() {
	m, s := x.m, x.s
	if m.latent == nil {
		return
	}
	s.acts.Set(x.latent, s.rows, m.reads)
	to := x.back
	if m.sharedWidth == 0 {
		to = s.y
	}
	m.latent.up.Mul(to, &s.acts)
	s.adapt(to, m.latent.onUp)
	if m.sharedWidth > 0 {
		s.ops.add(s.y, to, s.rows, s.cfg.Hidden)
	}
}
