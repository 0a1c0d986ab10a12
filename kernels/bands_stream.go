package kernels

// StreamKernel is a Kernel with tiles for a single token.
type StreamKernel interface {
	Kernel
	// StreamBands is the number of bands of a tile; zero: there are no such tiles.
	StreamBands() int
	// Stream adds to y[16·StreamBands] the products of the bands from s on with
	// the only row of x, and prefetches as many bytes from next on.
	Stream(y []float32, s int, x *Rows, next uintptr)
}

// initStream makes tiles the units of the matrix's stream, if there are any.
func (l *bandLinear) initStream() {
	k, ok := l.kern.(StreamKernel)
	if !ok || k.StreamBands() == 0 {
		return
	}
	l.one = k
	per := k.StreamBands()
	l.stream.Init(l.w.Data, per*k.BandBytes(), (BandsOf(l.w.Rows)+per-1)/per)
}

// streamTokens is the number of tokens up to which memory is the limit. Several
// go through the usual tiles, which ask for the next band themselves.
const streamTokens = 4

// Multiply does one tile of weights.
func (m *bandTask) Multiply(worker, tile int, next uintptr) {
	per := m.one.StreamBands()
	s := tile * per
	if m.x.N() == 1 && s+per <= m.w.Rows/bandRows {
		y := m.y[s*bandRows : (s+per)*bandRows]
		clear(y)
		m.one.Stream(y, s, m.x, next)
		return
	}
	m.manyTokens(&m.run.scratch[worker], s, min(per, BandsOf(m.w.Rows)-s))
}
