package kernels

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// The packings other than the ternary ones store a matrix as bands of
// bandRows rows side by side, so that a vector lane is a row and no
// product needs a horizontal sum. Rows beyond the matrix are zero.
const bandRows = 16

// tileTokens tokens pass over tileBands bands, and over writeBands before their
// sums are written to the result: its rows can be megabytes apart, so that a
// short piece of each costs as much as a longer one.
const (
	tileTokens = 256
	tileBands  = 2
	writeBands = 8
)

// A worker takes partBands bands at a time, or more of a large matrix, so that
// the start of a stream of weights, when nothing is on its way yet, is rare.
const (
	partBands      = 4
	mostPartBands  = 32
	partsPerWorker = 8
)

// bands is the number of bands of m.
func (m *Matrix) bands() int { return (m.Rows + bandRows - 1) / bandRows }

// bandBytes is the size of a band of m.
func (m *Matrix) bandBytes() int {
	if m.Packing.grouped() {
		return groupedFormats[m.Packing].bandBytes(m.Cols)
	}
	return bandRows * m.Cols * m.Packing.denseBytes()
}

// bandKernel multiplies bands of one matrix.
type bandKernel interface {
	// prepare makes ready what the products read besides x itself.
	prepare(p *pool.Pool, x *Acts)
	// kBlock is the number of columns after which a sum is added to y. It is
	// part of the result's bits and so fixed for a packing.
	kBlock() int
	// add adds to y[tok][16·band] the products of columns [kLo, kHi) of
	// bands [s, s+n) and tokens [t, tEnd) of x. y starts at token t and the
	// first row of band s, and has ld values a token.
	add(scratch *bandScratch, y []float32, ld, s, n int, x *Acts, t, tEnd, kLo, kHi int)
}

// bandScratch is the memory of one worker, shared by all matrices.
type bandScratch struct {
	tile  []float32 // sums [tileTokens][writeBands·bandRows]
	panel []byte    // panelGroups groups unfolded for many tokens
}

// panelGroups is the number of groups unfolded at a time: with the
// activations of a tile of tokens they fit in 32 KiB of L1.
const panelGroups = 16

// maxPanelGroup is the size of the largest group of a panel.
const maxPanelGroup = 1152

func newBandScratch(workers int) []bandScratch {
	s := make([]bandScratch, workers)
	for i := range s {
		s[i] = bandScratch{cpu.Aligned[float32](tileTokens * writeBands * bandRows), cpu.Aligned[byte](panelGroups * maxPanelGroup)}
	}
	return s
}

// bandLinear is a band-packed matrix on the CPU.
type bandLinear struct {
	w      *Matrix
	cpu    *CPU
	kern   bandKernel
	part   int          // bands of a part, a multiple of partBands
	one    streamKernel // kern, where it has tiles for one token
	stream stream       // of one
}

// bandMul is the Task of one Mul.
type bandMul struct {
	*bandLinear
	y []float32
	x *Acts
}

func newBandLinear(c *CPU, w *Matrix) (Linear, error) {
	if want := w.bands() * w.bandBytes(); len(w.Data) != want {
		return nil, fmt.Errorf("%w: %d bytes of %v for %dx%d, want %d", ErrShape, len(w.Data), w.Packing, w.Rows, w.Cols, want)
	}
	l := &bandLinear{w: w, cpu: c}
	l.part = min(max(w.bands()/(c.pool.Threads()*partsPerWorker)/partBands*partBands, partBands), mostPartBands)
	if w.Packing.grouped() {
		l.kern = newGroupedKernel(w)
	} else {
		l.kern = newDenseKernel(w)
	}
	l.initStream()
	return l, nil
}

// Mul sets y[n][Rows] to x[n][Cols] · Wᵀ.
func (l *bandLinear) Mul(y []float32, x *Acts) {
	if x.K() != l.w.Cols || len(y) < x.N()*l.w.Rows {
		panic(fmt.Sprintf("kernels: %dx%d matrix times %d rows of %d into %d values", l.w.Rows, l.w.Cols, x.N(), x.K(), len(y)))
	}
	start := l.cpu.pool.Meter().Start()
	l.kern.prepare(l.cpu.pool, x)
	x.band = bandMul{l, y, x}
	parts := (l.w.bands() + l.part - 1) / l.part
	if x.N() <= streamTokens && l.one != nil {
		x.stream.run(l.cpu, x, &l.stream, min(parts, x.threads(l.cpu.pool)), &x.band)
	} else {
		x.run(l.cpu.pool, &x.band, parts)
	}
	x.band = bandMul{}
	l.cpu.pool.Meter().StopProduct(l.w.Packing.kernel(), start, x.threads(l.cpu.pool), x.n, 0, l.w.weights(), int64(len(l.w.Data)))
}

// Do multiplies one part. A single token takes whole bands together, for more
// independent sums. Otherwise bands go two by two, for kernels that share
// activations between bands, so that a block of their weights stays in L1 while
// all tokens pass over it.
func (m *bandMul) Do(worker, part int) {
	scratch := &m.cpu.bands[worker]
	s, end := part*m.part, min((part+1)*m.part, m.w.bands())
	if m.x.N() == 1 {
		whole := max(s, min(end, m.w.Rows/bandRows))
		for ; s < whole; s += partBands {
			m.oneToken(scratch, s, min(partBands, whole-s))
		}
		s = whole
	}
	for ; s < end; s += writeBands {
		m.manyTokens(scratch, s, min(writeBands, end-s))
	}
}

func (m *bandMul) oneToken(scratch *bandScratch, s, n int) {
	kb, y := m.kern.kBlock(), m.y[s*bandRows:(s+n)*bandRows]
	clear(y)
	for k := 0; k < m.w.Cols; k += kb {
		m.kern.add(scratch, y, 0, s, n, m.x, 0, 1, k, min(k+kb, m.w.Cols))
	}
}

// manyTokens goes through a tile: rows of y can be so far apart that they compete
// for a few sets of the caches, and the last band may have fewer than bandRows.
func (m *bandMul) manyTokens(scratch *bandScratch, s, n int) {
	kb, row, ld := m.kern.kBlock(), s*bandRows, n*bandRows
	rows := min(ld, m.w.Rows-row)
	for t := 0; t < m.x.N(); t += tileTokens {
		tEnd := min(t+tileTokens, m.x.N())
		tile := scratch.tile[:(tEnd-t)*ld]
		clear(tile)
		for b := 0; b < n; b += tileBands {
			for k := 0; k < m.w.Cols; k += kb {
				m.kern.add(scratch, tile[b*bandRows:], ld, s+b, min(tileBands, n-b), m.x, t, tEnd, k, min(k+kb, m.w.Cols))
			}
		}
		for i := t; i < tEnd; i++ {
			copy(m.y[i*m.w.Rows+row:][:rows], tile[(i-t)*ld:])
		}
	}
}

// packBands calls pack for every band, on all cores: packing a large model
// is part of its start-up time.
func packBands(bands int, pack func(s int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), bands) {
		wg.Go(func() {
			for s := int(next.Add(1)) - 1; s < bands; s = int(next.Add(1)) - 1 {
				pack(s)
			}
		})
	}
	wg.Wait()
}

// checkShape tells whether a source of n bytes can hold rows × cols weights of
// blockBytes for each block of blockCols columns.
func checkShape(format string, rows, cols, blockCols, blockBytes, n int) error {
	const limit = 1 << 40
	if rows < 0 || cols < 1 || rows > limit/max(cols, 1) || cols%blockCols != 0 {
		return fmt.Errorf("%w: %s matrix of %d rows by %d columns", ErrShape, format, rows, cols)
	}
	if want := rows * (cols / blockCols) * blockBytes; n != want {
		return fmt.Errorf("%w: %s matrix of %dx%d takes %d bytes, not %d", ErrShape, format, rows, cols, want, n)
	}
	return nil
}
