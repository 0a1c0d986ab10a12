package kernels

// streamKernel is a bandKernel with tiles for a single token.
type streamKernel interface {
	bandKernel
	// streamBands is the number of bands of a tile; zero: there are no such tiles.
	streamBands() int
	// stream adds to y[16·streamBands] the products of the bands from s on with
	// the only row of x, and prefetches as many bytes from next on.
	stream(y []float32, s int, x *Acts, next uintptr)
}

// initStream makes tiles the units of the matrix's stream, if there are any.
func (l *bandLinear) initStream() {
	k, ok := l.kern.(streamKernel)
	if !ok || k.streamBands() == 0 {
		return
	}
	l.one = k
	per := k.streamBands()
	l.stream.init(l.w.Data, per*l.w.bandBytes(), (l.w.bands()+per-1)/per)
}

// streamTokens is the number of tokens up to which memory is the limit. Several
// go through the usual tiles, which ask for the next band themselves.
const streamTokens = 4

// multiply does one tile of weights.
func (m *bandMul) multiply(worker, tile int, next uintptr) {
	per := m.one.streamBands()
	s := tile * per
	if m.x.N() == 1 && s+per <= m.w.Rows/bandRows {
		y := m.y[s*bandRows : (s+per)*bandRows]
		clear(y)
		m.one.stream(y, s, m.x, next)
		return
	}
	m.manyTokens(&m.cpu.bands[worker], s, min(per, m.w.bands()-s))
}
