package models

// latentExperts is the way into the space that experts read and make, narrower than the stream, and
// out of it ("Nemotron 3", §2.2): y = shared(h) + (Σ weight·expert(h·Wdown))·Wup.
type latentExperts struct{ down, up product }

// loadLatentExperts loads the two matrices of a layer.
func loadLatentExperts(t *tensors, m *spec, y *layerSpec) *latentExperts {
	return &latentExperts{
		down: t.matrix(y.tensor("ffn_latent_down.weight"), m.mixture.reads, m.Hidden),
		up:   t.matrix(y.tensor("ffn_latent_up.weight"), m.Hidden, m.mixture.reads),
	}
}

// intoLatent has the experts read the latent space, if there is one.
func (x *expertPass) intoLatent() {
	m, s := x.m, x.s
	if m.latent == nil {
		return
	}
	m.latent.down.multiply(s, x.latent)
	s.acts.Set(x.latent, s.rows, m.reads)
}

// outOfLatent adds to y what the experts have made there.
func (x *expertPass) outOfLatent() {
	m, s := x.m, x.s
	if m.latent == nil {
		return
	}
	to := x.back
	if m.shared.width == 0 {
		to = s.y
	}
	m.latent.up.run(s, to, x.latent)
	if m.shared.width > 0 {
		s.ops.add(s.y, to, s.rows, s.cfg.Hidden)
	}
}
