// Package ternary packs and multiplies matrices of weights {-1, 0, +1}, by several
// methods, and chooses among them by packing and number of tokens.
package ternary

//go:generate go -C ../_gen run . -family ternary_lut -pkg ternary -out ../ternary/asm_lut_amd64.s -stubs ../ternary/asm_lut_amd64.go
//go:generate go -C ../_gen run . -family ternary_mad -pkg ternary -out ../ternary/asm_mad_amd64.s -stubs ../ternary/asm_mad_amd64.go
//go:generate go -C ../_gen run . -family ternary_dot -pkg ternary -out ../ternary/asm_dot_amd64.s -stubs ../ternary/asm_dot_amd64.go
//go:generate go -C ../_gen run . -family ternary_vnni -pkg ternary -out ../ternary/asm_vnni_amd64.s -stubs ../ternary/asm_vnni_amd64.go
//go:generate go -C ../_gen run . -family ternary_hybrid -pkg ternary -out ../ternary/asm_hybrid_amd64.s -stubs ../ternary/asm_hybrid_amd64.go
//go:generate go -C ../_gen run . -family ternary_gfni -pkg ternary -out ../ternary/asm_gfni_amd64.s -stubs ../ternary/asm_gfni_amd64.go
//go:generate go -C ../_gen run . -family ternary_amx -pkg ternary -out ../ternary/asm_amx_amd64.s -stubs ../ternary/asm_amx_amd64.go
//go:generate go -C ../_gen run . -header amx_amd64.h -to ../ternary
//go:generate go -C ../_gen run . -tables ternary -to ../ternary
//go:generate go -C ../_gen run . -header vex_amd64.h -to ../ternary
//go:generate go -C ../_gen run . -header neon_arm64.h -to ../ternary

import (
	"fmt"
	"slices"
	"sync"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/stream"
)

// Linear multiplies one I1 or I2 matrix on the CPU. Every kernel forms
// the exact integer sum and then
//
//	y = float32(sum) · (scale of the token · scale of the row)
//
// in this order, so that all of them agree bit for bit.
type Linear struct {
	run    *Runner
	rules  []rule // which kernel multiplies how many tokens
	w      *matrix.Matrix
	g      int
	blocks int          // of a row
	strips int          // of 64 rows
	scale  []float32    // [strips*64], zero beyond Rows
	strip  int          // bytes of a strip
	stream stream.Units // of strips
}

// Runner multiplies ternary matrices on one pool. Its scratch memory is made at the
// first Load.
type Runner struct {
	pool    *pool.Pool
	order   *stream.Order
	scratch []scratch // one a worker, which alone touches it
	only    *kernel   // the one kernel to use; nil: what the rules say
	once    sync.Once
}

// NewRunner makes a runner, which notes in order what it reads.
func NewRunner(p *pool.Pool, order *stream.Order) *Runner {
	return &Runner{pool: p, order: order, scratch: make([]scratch, p.Threads()), only: overridden}
}

// Use has the named kernel multiply all matrices, one of Implementations. It is
// to be called before the first Load.
func (t *Runner) Use(name string) error {
	if !slices.Contains(Implementations(), name) {
		return fmt.Errorf("kernels: no ternary kernel %q here (have %v)", name, Implementations())
	}
	t.only = kernelNamed(name)
	return nil
}

func (t *Runner) prepare() {
	for i := range t.scratch {
		t.scratch[i].init()
	}
}

// Load prepares w. It reports ErrShape for a matrix that kernels could not trust.
func (t *Runner) Load(w *matrix.Matrix) (*Linear, error) {
	if err := checkData(w); err != nil {
		return nil, err
	}
	t.once.Do(t.prepare)
	var rules []rule
	if t.only == nil {
		rules = rulesFor(w.Packing)
	}
	l := &Linear{run: t, rules: rules, w: w, g: tritsPerByte(w.Packing), blocks: blocksOf(w.Cols, w.Packing), strips: (w.Rows + StripRows - 1) / StripRows}
	l.strip = l.blocks * StripRows * acts.BlockBytes
	l.stream.Init(w.Data, l.strip, l.strips)
	l.scale = cpu.Aligned[float32](l.strips * StripRows)
	for r := range w.Rows {
		l.scale[r] = w.Scale[min(r, len(w.Scale)-1)]
	}
	return l, nil
}

// Mul sets y[n][Rows] to x · Wᵀ. m is x's.
func (l *Linear) Mul(y []float32, x *acts.Rows, m *Task) {
	n, p := x.N(), l.run.pool
	if x.K() != l.w.Cols {
		panic("kernels: Mul: the rows of x are not as long as those of w")
	}
	if len(y) < n*l.w.Rows {
		panic("kernels: Mul: y holds fewer than n*Rows values")
	}
	if n == 0 {
		return
	}
	start, threads := p.Meter().Start(), x.Threads(p)
	m.l, m.t, m.x, m.y = l, x.Codes(p), x, y
	plan := makePlan(l.rules, l.run.only, l.w.Packing, n, n*l.strips/threads)
	parts, idle := 0, 0
	for i := range m.runs {
		m.runs[i] = segmentRun{segment: plan[i]}
		if r := &m.runs[i]; r.kernel != nil {
			r.prepare(m)
			parts += r.parts
			idle += r.idle()
		}
	}
	switch workers := min(parts, threads); {
	case m.streams(workers):
		m.stream.Run(p, l.run.order, x, &l.stream, workers, m)
	case workers > 1 && m.runs[0].kernel.shared != nil:
		m.sharing.run(m, parts, workers)
	default:
		x.Run(p, m, parts)
	}
	m.y = nil
	p.Meter().StopProduct(meter.Ternary, start, threads, n, idle, l.w.Weights(), int64(len(l.w.Data)))
}

// scratch is a worker's own memory.
type scratch struct {
	tables []int16   // lookup tables of one K tile
	acc16  []int16   // [rows][lanes]
	acc32  []int32   // [rows][lanes], or [tokens][64 rows]
	edge   []float32 // [tokens][64 rows] of a strip that y has not room for
	tile   []int32   // [4][64 rows] of a multiply-add under way
	panel  []byte    // digits of a few rows
	digits []byte    // of a few columns, in tiles of AMX
	sums   [genericRows]int32
	table  [acts.BlockBytes][256]int32
}

func (s *scratch) init() {
	s.tables = cpu.Aligned[int16](maxTables / 2)
	s.acc16 = cpu.Aligned[int16](maxPartStrips * StripRows * acts.WideLanes)
	s.acc32 = cpu.Aligned[int32](maxPartStrips * StripRows * acts.WideLanes)
	s.edge = cpu.Aligned[float32](edgeTokens * StripRows)
	s.tile = cpu.Aligned[int32](acts.QuadTokens * StripRows)
	s.digits = cpu.Aligned[byte](maxDigits)
}

// Sizes of the scratch memory.
const (
	maxPartStrips = 32             // strips a part of a lookup kernel
	maxTables     = 8 * 185 * 64   // bytes of 32 tokens for 8 groups of I2; the others take less
	edgeTokens    = acts.WideLanes // tokens of the widest tile
	genericRows   = 16 * StripRows
	maxDigits     = 2 * 16 * 5 * StripRows * acts.BlockBytes // two chunks of 16 blocks of I1
)

// segment is a range of tokens that one kernel multiplies.
type segment struct {
	kernel *kernel
	lo, hi int
}

// leastPart is the multiply-accumulates of a part worth handing over: about a
// microsecond of them, what it takes another core to notice and answer.
const leastPart = 3 << 15

// segmentRun is a segment with its activations arranged and its work divided.
type segmentRun struct {
	segment
	act    []int8
	form   actForm
	width  int // tokens of an activation tile
	strips int // of a part
	parts  int
	across int // parts side by side along the rows; tokens are the outer loop
}

// Task is a product under way.
type Task struct {
	l       *Linear
	t       *acts.Codes
	x       *acts.Rows
	y       []float32
	stream  stream.Task
	runs    [maxSegments]segmentRun
	sharing sharing
}

// streams reports whether workers walk through shards of the matrix.
func (m *Task) streams(workers int) bool {
	k := m.runs[0].kernel
	if m.x.N() == 1 && k.one != nil {
		return true
	}
	return workers > 1 && k.streams && m.runs[1].kernel == nil
}

func (r *segmentRun) prepare(m *Task) {
	l, k, pool := m.l, r.kernel, m.l.run.pool
	n := r.hi - r.lo
	form, width := k.form(l.w.Packing, n)
	switch r.form = form; form {
	case formRows:
		r.act, r.width = m.t.Q[r.lo*m.t.Stride:], 1
	case formQuads, formTiles:
		r.act, r.width = m.t.Quads(pool, l.g, r.lo, r.hi, width, form == formTiles), width
	case formPaired:
		r.act, r.width = m.t.Paired(pool, l.g, r.lo, r.hi), width
	case formOctets:
		r.act, r.width = m.t.Octets(pool, l.g, r.lo, r.hi), width
	case formLanes:
		r.act, r.width = m.t.Lanes(pool, r.lo, r.hi, width), width
	}
	tiles := 1
	if k.tokens > 0 {
		tiles = (n + k.tokens - 1) / k.tokens
	}
	// As few strips a part as gives every worker its share of parts, but no part
	// too small for what handing it over costs.
	threads := m.x.Threads(pool)
	want := min(k.perThread*threads, max(1, n*l.w.Cols*l.strips*StripRows/leastPart))
	if want > threads {
		want -= want % threads
	}
	want = (want + tiles - 1) / tiles
	r.strips = min(k.strips, (l.strips+want-1)/want)
	r.across = (l.strips + r.strips - 1) / r.strips
	r.strips = (l.strips + r.across - 1) / r.across // parts of one size: 40 strips are 20 and 20, not 32 and 8
	r.across = (l.strips + r.strips - 1) / r.strips
	r.parts = tiles * r.across
}

// idle returns the number of lanes that carry no token: lookups, unlike
// multiply-adds, know tiles of one width only.
func (r *segmentRun) idle() int {
	if r.form != formLanes {
		return 0
	}
	n := r.hi - r.lo
	return cpu.RoundUp(n, r.width) - n
}

// Do multiplies part i of the runs, counted through.
func (m *Task) Do(worker, i int) {
	r, strips, tokens := m.part(i)
	r.kernel.mul(m, r, &m.l.run.scratch[worker], strips, tokens)
}

// part gives the segment, strips and tokens of part i.
func (m *Task) part(i int) (r *segmentRun, strips, tokens extent) {
	r = &m.runs[0]
	for i >= r.parts {
		i -= r.parts
		r = &m.runs[1]
	}
	tokens = extent{r.lo, r.hi}
	if r.kernel.tokens > 0 {
		tokens.lo += i / r.across * r.kernel.tokens
		tokens.hi = min(tokens.lo+r.kernel.tokens, tokens.hi)
	}
	s := i % r.across * r.strips
	return r, extent{s, min(s+r.strips, m.l.strips)}, tokens
}

// Multiply does a strip of a product that streams.
func (m *Task) Multiply(worker, strip int, next uintptr) {
	r := &m.runs[0]
	s := &m.l.run.scratch[worker]
	if m.x.N() == 1 && r.kernel.one != nil {
		r.kernel.one(m, r, s, strip, next)
		return
	}
	r.kernel.mul(m, r, s, extent{strip, strip + 1}, extent{r.lo, r.hi})
}

// extent is the half-open range [lo, hi).
type extent struct{ lo, hi int }

// stripData returns the packed weights of strip s.
func (l *Linear) stripData(s int) []byte { return l.w.Data[s*l.strip : (s+1)*l.strip] }

// rows returns the number of rows of strip s that y has room for.
func (l *Linear) rows(s int) int { return min(StripRows, l.w.Rows-s*StripRows) }
