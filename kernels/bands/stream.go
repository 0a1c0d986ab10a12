package bands

import "github.com/lutra-lm/lutra/kernels/acts"

// StreamKernel is a Kernel with tiles for a single token.
type StreamKernel interface {
	Kernel
	// StreamBands is the number of bands of a tile; zero: there are no such tiles.
	StreamBands() int
	// Streams reports whether products of n tokens stream. Several go through the
	// usual tiles, which ask for what comes next themselves.
	Streams(n int) bool
	// Stream adds to y[16·StreamBands] the products of the bands from s on with
	// the only row of x, and prefetches as many bytes from next on.
	Stream(scratch *Scratch, y []float32, s int, x *acts.Rows, next uintptr)
}

// initStream makes tiles the units of the matrix's stream, if there are any.
func (l *Linear) initStream() {
	k, ok := l.kern.(StreamKernel)
	if !ok || k.StreamBands() == 0 {
		return
	}
	l.one = k
	per := k.StreamBands()
	l.stream.Init(l.w.Data, per*k.BandBytes(), (Count(l.w.Rows)+per-1)/per)
}

// Multiply does one tile of weights.
func (m *Task) Multiply(worker, tile int, next uintptr) {
	per := m.l.one.StreamBands()
	s := tile * per
	if m.x.N() == 1 && s+per <= m.l.w.Rows/Rows {
		y := m.y[s*Rows : (s+per)*Rows]
		m.start(&m.l.run.scratch[worker], y, 0, s, per, 0, 1)
		m.l.one.Stream(&m.l.run.scratch[worker], y, s, m.x, next)
		return
	}
	m.manyTokens(&m.l.run.scratch[worker], s, min(per, Count(m.l.w.Rows)-s), 0)
}
