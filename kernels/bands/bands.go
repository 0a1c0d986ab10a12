// Package bands multiplies matrices that are stored as bands of 16 rows, which
// all packings but the ternary ones are.
package bands

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// Rows is the number of rows of a band. All packings but the ternary ones store a
// matrix as bands of rows side by side. So a vector element is a row, and no product
// needs a horizontal sum. Rows beyond the matrix are zero.
const Rows = 16

// A tile is MostTileTokens tokens or fewer by tileBands bands. Sums are written to the
// result after writeBands bands: its rows can be megabytes apart, so a short piece of a
// row costs as much as a longer one.
const (
	MostTileTokens = 256

	tileBands  = 2
	writeBands = 8
)

// A worker takes partBands bands at a time, or more of a large matrix: at the start of
// each part nothing has been prefetched yet.
const (
	partBands      = 4
	mostPartBands  = 32
	partsPerWorker = 8
)

// Count returns the number of bands that rows take.
func Count(rows int) int { return (rows + Rows - 1) / Rows }

// Kernel multiplies bands of one matrix.
type Kernel interface {
	// BandBytes is the size of a band.
	BandBytes() int
	// Prepare makes ready what the products read besides x itself.
	Prepare(p *pool.Pool, x *acts.Rows)
	// KBlock is the number of columns after which a sum is added to y. It is
	// part of the result's bits and so fixed for a packing.
	KBlock() int
	// TileTokens is the number of tokens, MostTileTokens at most, whose activations
	// are to stay in L2 while tile after tile of bands passes over them.
	TileTokens() int
	// Add adds to y[tok][16·band] the products of columns [kLo, kHi) of
	// bands [s, s+n) and tokens [t, tEnd) of x. y starts at token t and the
	// first row of band s, and has ld values a token.
	Add(scratch *Scratch, y []float32, ld, s, n int, x *acts.Rows, t, tEnd, kLo, kHi int)
}

// TableKernel is a Kernel that looks up the products of many tokens in tables.
type TableKernel interface {
	Kernel
	// TableTokens is the number of tokens of a tile; zero: there are no tables.
	TableTokens() int
	// Lookup sets y[TableTokens][16·n], ld values a token, to the products of
	// bands [s, s+n) with the tokens of a tile of x. It gives the bits of Add.
	Lookup(scratch *Scratch, y []float32, ld, s, n int, x *acts.Rows, tile int)
}

// Looked returns how many of n tokens, the first ones, k looks up: those that fill tiles.
func Looked(k TableKernel, n int) int {
	if per := k.TableTokens(); per > 0 {
		return n / per * per
	}
	return 0
}

// Scratch is the memory of one worker, shared by all matrices.
type Scratch struct {
	tile  []float32 // sums [MostTileTokens][writeBands·16]
	Panel []byte    // PanelGroups groups unfolded for many tokens
	// Tables holds the lookup tables of a unit of columns and a tile of tokens, Sums the
	// sums of as many tokens of a part.
	Tables []byte
	Sums   []float32
}

// PanelGroups is the number of groups unfolded at a time: with the
// activations of a tile of tokens they fit in 32 KiB of L1.
const PanelGroups = 16

// MaxPanelGroup is the size of the largest group of a panel.
const MaxPanelGroup = 1408

// TableBytes is the most that the tables of a unit of columns and a tile of tokens
// take: they are to stay in L1.
const TableBytes = 32 << 10

// tableTokens is the most tokens of a tile of tables.
const tableTokens = 32

// Runner multiplies band-packed matrices on one pool.
type Runner struct {
	pool    *pool.Pool
	order   *stream.Order
	scratch []Scratch // one a worker, which alone touches it
}

// NewRunner makes a runner, which notes in order what it reads.
func NewRunner(p *pool.Pool, order *stream.Order) *Runner {
	r := &Runner{pool: p, order: order, scratch: make([]Scratch, p.Threads())}
	for i := range r.scratch {
		r.scratch[i] = Scratch{cpu.Aligned[float32](MostTileTokens * writeBands * Rows), cpu.Aligned[byte](PanelGroups * MaxPanelGroup),
			cpu.Aligned[byte](TableBytes), cpu.Aligned[float32](mostPartBands * Rows * tableTokens)}
	}
	return r
}

// Linear is a band-packed matrix on the CPU.
type Linear struct {
	w      *matrix.Matrix
	run    *Runner
	kern   Kernel
	tables TableKernel  // kern, where it looks up many tokens
	part   int          // bands of a part, a multiple of partBands
	one    StreamKernel // kern, where it has tiles for one token
	begin  Kernel       // of w.Offsets, which sums begin with; nil: they begin with zero
	stream stream.Units // of one
}

// Task is a product under way.
type Task struct {
	l      *Linear
	y      []float32
	x      *acts.Rows
	stream stream.Task
}

// Load prepares w, which kern multiplies; offsets multiplies its offsets, if it has any. It reports ErrShape
// for a matrix whose parts do not fit together.
func (r *Runner) Load(w *matrix.Matrix, kern, offsets Kernel) (*Linear, error) {
	if err := checkSize(w, kern); err != nil {
		return nil, err
	}
	l := &Linear{w: w, run: r, kern: kern}
	if o := w.Offsets; o != nil {
		if o.Offsets != nil || o.Rows != w.Rows || o.Cols < 1 || w.Cols%o.Cols != 0 || w.Cols/o.Cols%acts.GroupCols != 0 && w.Cols/o.Cols != acts.GroupCols/2 {
			return nil, fmt.Errorf("%w: offsets of %dx%d of a matrix of %dx%d", matrix.ErrShape, o.Rows, o.Cols, w.Rows, w.Cols)
		}
		if err := checkSize(o, offsets); err != nil {
			return nil, err
		}
		l.begin = offsets
	}
	l.part = min(max(Count(w.Rows)/(r.pool.Threads()*partsPerWorker)/partBands*partBands, partBands), mostPartBands)
	if k, ok := kern.(TableKernel); ok && k.TableTokens() > 0 {
		if l.begin != nil {
			return nil, fmt.Errorf("%w: %v with offsets", matrix.ErrUnsupported, w.Packing)
		}
		l.tables = k
	}
	l.initStream()
	return l, nil
}

// checkSize reports ErrShape for a matrix that has not the bands that kern reads.
func checkSize(w *matrix.Matrix, kern Kernel) error {
	if want := Count(w.Rows) * kern.BandBytes(); len(w.Data) != want {
		return fmt.Errorf("%w: %d bytes of %v for %dx%d, want %d", matrix.ErrShape, len(w.Data), w.Packing, w.Rows, w.Cols, want)
	}
	return nil
}

// Mul sets y[n][Rows] to x[n][Cols] · Wᵀ. m is x's.
func (l *Linear) Mul(y []float32, x *acts.Rows, m *Task) {
	if x.K() != l.w.Cols || len(y) < x.N()*l.w.Rows {
		panic(fmt.Sprintf("kernels: %dx%d matrix times %d rows of %d into %d values", l.w.Rows, l.w.Cols, x.N(), x.K(), len(y)))
	}
	p := l.run.pool
	start := p.Meter().Start()
	l.kern.Prepare(p, x)
	m.l, m.y, m.x = l, y, x
	parts := (Count(l.w.Rows) + l.part - 1) / l.part
	if l.one != nil && l.one.Streams(x.N()) {
		m.stream.Run(p, l.run.order, x, &l.stream, min(parts, x.Threads(p)), m)
	} else {
		x.Run(p, m, parts)
	}
	m.l, m.y, m.x = nil, nil, nil
	p.Meter().StopProduct(l.w.Packing.Kind(), start, x.Threads(p), x.N(), 0, l.w.Weights(), int64(l.w.Bytes()))
}

// Do multiplies one part. A single token takes whole bands together, for more
// independent sums. Otherwise bands go two by two, for kernels that share
// activations between bands, so that a block of their weights stays in L1 while
// all tokens pass over it.
func (m *Task) Do(worker, part int) {
	scratch := &m.l.run.scratch[worker]
	s, end := part*m.l.part, min((part+1)*m.l.part, Count(m.l.w.Rows))
	if m.x.N() == 1 {
		whole := max(s, min(end, m.l.w.Rows/Rows))
		for ; s < whole; s += partBands {
			m.oneToken(scratch, s, min(partBands, whole-s))
		}
		s = whole
	}
	from := 0
	if m.l.tables != nil {
		whole := min(end, m.l.w.Rows/Rows)
		from = m.lookup(scratch, s, whole)
		if whole < end {
			m.manyTokens(scratch, whole, end-whole, 0)
			end = whole
		}
	}
	for ; s < end; s += writeBands {
		m.manyTokens(scratch, s, min(writeBands, end-s), from)
	}
}

// lookup multiplies bands [s, end), which are whole, with the tokens that fill
// tiles of tables, and says how many that are.
func (m *Task) lookup(scratch *Scratch, s, end int) int {
	per, rows, looked := m.l.tables.TableTokens(), m.l.w.Rows, Looked(m.l.tables, m.x.N())
	for t := 0; t < looked && s < end; t += per {
		m.l.tables.Lookup(scratch, m.y[t*rows+s*Rows:], rows, s, end-s, m.x, t/per)
	}
	return looked
}

func (m *Task) oneToken(scratch *Scratch, s, n int) {
	kb, y := m.l.kern.KBlock(), m.y[s*Rows:(s+n)*Rows]
	m.start(scratch, y, 0, s, n, 0, 1)
	for k := 0; k < m.l.w.Cols; k += kb {
		m.l.kern.Add(scratch, y, 0, s, n, m.x, 0, 1, k, min(k+kb, m.l.w.Cols))
	}
}

// start sets y[tok][16·n] to the initial sums of bands [s, s+n) and tokens [t, tEnd): the products of
// the offsets with the sums of their columns. These are sums of the int8 activations that the codes are
// multiplied with. So a rounding error of an activation counts by the weight, which is small, and not by
// the distance of the weight from the middle of its codes.
func (m *Task) start(scratch *Scratch, y []float32, ld, s, n, t, tEnd int) {
	clear(y)
	if m.l.begin == nil {
		return
	}
	kb, cols := m.l.begin.KBlock(), m.l.w.Offsets.Cols
	for k := 0; k < cols; k += kb {
		m.l.begin.Add(scratch, y, ld, s, n, m.x.Sums(), t, tEnd, k, min(k+kb, cols))
	}
}

// manyTokens computes the tokens from one on, tile by tile. Rows of y can be so far apart that they compete
// for a few sets of the caches, and the last band may have fewer than 16 rows.
func (m *Task) manyTokens(scratch *Scratch, s, n, from int) {
	kb, most, row, ld := m.l.kern.KBlock(), m.l.kern.TileTokens(), s*Rows, n*Rows
	rows := min(ld, m.l.w.Rows-row)
	for t := from; t < m.x.N(); t += most {
		tEnd := min(t+most, m.x.N())
		tile := scratch.tile[:(tEnd-t)*ld]
		m.start(scratch, tile, ld, s, n, t, tEnd)
		for b := 0; b < n; b += tileBands {
			for k := 0; k < m.l.w.Cols; k += kb {
				m.l.kern.Add(scratch, tile[b*Rows:], ld, s+b, min(tileBands, n-b), m.x, t, tEnd, k, min(k+kb, m.l.w.Cols))
			}
		}
		for i := t; i < tEnd; i++ {
			copy(m.y[i*m.l.w.Rows+row:][:rows], tile[(i-t)*ld:])
		}
	}
}
