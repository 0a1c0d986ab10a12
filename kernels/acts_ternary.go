package kernels

// ternaryActs holds rows quantised to int8 in [-127, 127] with one absmax
// scale a token: q = round-half-even(x*127/absmax), x ≈ q*scale.
type ternaryActs struct{ ready bool }

func (t *ternaryActs) reset() { t.ready = false }
