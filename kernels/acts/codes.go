package acts

import (
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// Codes holds rows quantised to int8 in [-127, 127] with one absmax scale a
// token: q = round-half-even(x·(127/absmax)), x ≈ q·scale, with
// scale = absmax/127, all in float32. A row whose absmax is below 2^-120
// counts as zero. A row that holds NaN or an infinity has scale NaN and codes
// zero: its products are NaN, the products of other rows are not.
//
// Besides the plain rows it keeps the arrangements that kernels ask for, each built
// for the tokens [lo, hi) that are to be read in it:
//
//	Q       [N][Stride]                     plain rows, zero beyond k
//	quads   [tile][block][g][width][4]      the 4 bytes of a multiply-add: one trit position of
//	                                        a block's 4 weight bytes; one array per g
//	lanes   [tile][Stride][lanes]           token-contiguous, for vector lookup tables
//	octets  [pair of tokens][pair of blocks][g][2][8]
//	                                        the 8 bytes of SMMLA: one trit position of two blocks
//	paired  [tile] of lanes [Stride][32], then quads [8][block][g][4][4] of 32 more tokens
type Codes struct {
	Stride int       // bytes from one row of Q to the next
	Q      []int8    // plain rows; memory for whole tiles of LaneTokens is there
	Scale  []float32 // [N]
	NegSum []int32   // [N] −Σq: weights enter multiply-adds as w+1, this takes the 1 out again

	n, k   int
	ready  bool
	quads  [2]quadForm // g = 4, g = 5
	lanes  laneForm
	paired [2]quadForm // g = 4, g = 5; as wide as a tile
	octets [2]quadForm // g = 4, g = 5; width is 2
	prep   arranging   // the arrangement under way
	rows   *Rows
}

// quadForm is the extent of built quads: tiles of width tokens, then for what is
// left narrower powers of two, or one tile as narrow as need be.
type quadForm struct {
	lo, hi, width int
	anyWidth      bool
	data          []int8
}

// laneForm is the extent of built lanes; the last tile is filled up with zeros.
type laneForm struct {
	lo, hi, lanes int
	data          []int8
}

// Tokens of tiles.
const (
	LaneTokens = 16 // of a row of a lookup table
	WideLanes  = 32 // of one in AVX-512
	QuadTokens = 4  // of a multiply-add tile with lookups
)

// BlockBytes is the number of weight bytes of a row that stand together: columns
// are arranged as the trits of these.
const BlockBytes = 4

// rowStride rounds rows up so that pairs of blocks of 16 and of 20 columns both end in
// the padding.
func rowStride(k int) int { return cpu.RoundUp(k, 160) }

func (t *Codes) reset() {
	t.ready = false
	t.quads[0].hi, t.quads[1].hi, t.lanes.hi = 0, 0, 0
	t.paired[0].hi, t.paired[1].hi = 0, 0
	t.octets[0].hi, t.octets[1].hi = 0, 0
}

// Codes quantises the rows to int8, once per Set.
func (a *Rows) Codes(pool *pool.Pool) *Codes {
	t := &a.codes
	if t.ready {
		return t
	}
	t.rows, t.n, t.k, t.Stride = a, a.n, a.k, rowStride(a.k)
	t.Q = grow(t.Q, cpu.RoundUp(t.n, LaneTokens)*t.Stride) // whole tiles, for kernels that read them so
	t.Scale = cpu.Grow(t.Scale, t.n)
	t.NegSum = cpu.Grow(t.NegSum, t.n)
	if a.gather.from != nil {
		a.gather.run(a, pool, gatherCodes)
	} else {
		t.prep = arranging{t: t, what: prepRows, x: a.x}
		t.prep.run(pool, t.n, 1)
	}
	t.ready = true
	return t
}

// grow returns memory for n codes that can be read beyond: tiles of AMX end behind a row.
func grow(s []int8, n int) []int8 { return cpu.Grow(s, n+5*cpu.CacheLine)[:n] }

// Quads returns the quads of tokens [lo, hi) for bytes of g trits, in tiles of
// width tokens. What is left of the last tile is one narrower tile where anyWidth
// says so, or several whose widths are powers of two.
func (t *Codes) Quads(pool *pool.Pool, g, lo, hi, width int, anyWidth bool) []int8 {
	f := &t.quads[g-4]
	if f.lo == lo && f.hi == hi && f.width == width && f.anyWidth == anyWidth {
		return f.data
	}
	kp := cpu.RoundUp(t.k, BlockBytes*g)
	f.lo, f.hi, f.width, f.anyWidth = lo, hi, width, anyWidth
	f.data = grow(f.data, (hi-lo)*kp)
	t.prep = arranging{t: t, what: prepQuads, g: g, kp: kp, form: *f}
	t.prep.run(pool, (hi-lo+width-1)/width, width)
	return f.data
}

// Lanes returns tokens [lo, hi) in tiles of the given number of lanes, the last one
// filled up.
func (t *Codes) Lanes(pool *pool.Pool, lo, hi, lanes int) []int8 {
	f := &t.lanes
	if f.lo == lo && f.hi == hi && f.lanes == lanes {
		return f.data
	}
	tiles := (hi - lo + lanes - 1) / lanes
	f.lo, f.hi, f.lanes = lo, hi, lanes
	f.data = cpu.Grow(f.data, tiles*lanes*t.Stride)
	t.prep = arranging{t: t, what: prepLanes, form: quadForm{lo: lo, hi: hi, width: lanes, data: f.data}}
	t.prep.run(pool, tiles, lanes)
	return f.data
}

// OctetBytes returns the size of the octets of a pair of tokens of k columns.
func OctetBytes(k, g int) int { return 2 * cpu.RoundUp(k, 2*BlockBytes*g) }

// Octets returns the octets of tokens [lo, hi) for bytes of g trits. What stands beside an
// odd last token is arbitrary.
func (t *Codes) Octets(pool *pool.Pool, g, lo, hi int) []int8 {
	f := &t.octets[g-4]
	if f.lo == lo && f.hi == hi {
		return f.data
	}
	pairs := (hi - lo + 1) / 2
	f.lo, f.hi, f.width = lo, hi, 2
	f.data = cpu.Grow(f.data, pairs*OctetBytes(t.k, g))
	t.prep = arranging{t: t, what: prepOctets, g: g, kp: OctetBytes(t.k, g), form: *f}
	t.prep.run(pool, pairs, 2)
	return f.data
}

// PairedTokens is a tile of paired activations: 32 tokens in lanes, 32 in quads.
const PairedTokens = 2 * WideLanes

// TileWidth returns the number of tokens of a tile where there are n. Tiles are as few as the widest allows, and
// of nearly equal width. A width is 1, 2, 3, 4, 6, 8 or 12.
func TileWidth(n, widest int) int {
	switch w := cpu.TileWidth(n, widest); w {
	case 5, 7:
		return w + 1
	case 9, 10, 11:
		return 12
	default:
		return w
	}
}

// TileTokens returns the tokens of the next tile of n, by tiles of width tokens. The rest that fills no tile
// is a narrower one, or two of them.
func TileTokens(n, width int) int {
	if n >= width {
		return width
	}
	switch n {
	case 5:
		return 3
	case 7:
		return 4
	case 9, 10:
		return 6
	case 11:
		return 8
	}
	return n
}

// PairedSize returns the size of a paired tile of rows of stride bytes in lanes and kp
// in quads.
func PairedSize(stride, kp int) int { return WideLanes * (stride + kp) }

// PairedTile gives the lanes and the quads of a paired tile.
func PairedTile(tile []int8, stride int) (lanes, quads []int8) {
	return tile[:WideLanes*stride], tile[WideLanes*stride:]
}

// Paired returns the paired form of tokens [lo, hi), a whole number of tiles.
func (t *Codes) Paired(pool *pool.Pool, g, lo, hi int) []int8 {
	f := &t.paired[g-4]
	if f.lo == lo && f.hi == hi {
		return f.data
	}
	kp, tiles := cpu.RoundUp(t.k, BlockBytes*g), (hi-lo)/PairedTokens
	f.lo, f.hi, f.width = lo, hi, PairedTokens
	f.data = cpu.Grow(f.data, tiles*PairedSize(t.Stride, kp))
	t.prep = arranging{t: t, what: prepPaired, g: g, kp: kp, form: *f}
	t.prep.run(pool, tiles*pairedParts, QuadTokens)
	return f.data
}

// pairedParts is the number of parts in which a tile is arranged: its lanes,
// and every 4 tokens of its quads.
const pairedParts = 1 + WideLanes/QuadTokens

func (p *arranging) pair(i int) {
	t, f := p.t, &p.form
	lo := f.lo + i/pairedParts*PairedTokens
	lanes, quads := PairedTile(f.data[i/pairedParts*PairedSize(t.Stride, p.kp):], t.Stride)
	if i %= pairedParts; i == 0 {
		arrangeLanes(lanes, t.Q[lo*t.Stride:], t.Stride, WideLanes, WideLanes)
		return
	}
	at := (i - 1) * QuadTokens
	arrangeQuads(quads[at*p.kp:][:QuadTokens*p.kp], t.Q[(lo+WideLanes+at)*t.Stride:], t.Stride, p.g, QuadTokens)
}

type prepKind uint8

const (
	prepRows prepKind = iota
	prepQuads
	prepLanes
	prepPaired
	prepOctets
)

// arranging is the Task that quantises rows or arranges tiles.
type arranging struct {
	t     *Codes
	what  prepKind
	n     int // rows or tiles
	each  int // how many of them a part
	x     []float32
	g, kp int
	form  quadForm
}

// prepValues is about the number of values that a part prepares: the work of a microsecond
// or two, as long as handing it over takes.
const prepValues = 1 << 13

// run prepares n rows, or tiles of width tokens.
func (p *arranging) run(pool *pool.Pool, n, width int) {
	p.n, p.each = n, max(1, prepValues/(width*p.t.Stride))
	p.t.rows.Run(pool, p, (n+p.each-1)/p.each)
}

// Do prepares the rows or tiles of a part.
func (p *arranging) Do(_, part int) {
	for i := part * p.each; i < min((part+1)*p.each, p.n); i++ {
		p.one(i)
	}
}

// one prepares row or tile i.
func (p *arranging) one(i int) {
	t, f := p.t, &p.form
	switch p.what {
	case prepRows:
		q := t.Q[i*t.Stride : (i+1)*t.Stride]
		t.Scale[i], t.NegSum[i] = quantizeRow(q[:t.k], p.x[i*t.k:(i+1)*t.k])
		clear(q[t.k:])
	case prepQuads:
		lo := f.lo + i*f.width
		hi := min(lo+f.width, f.hi)
		for lo < hi { // a full tile, what is left of one, or the binary digits of that
			w := f.width
			if f.anyWidth {
				w = TileTokens(hi-lo, w)
			}
			for w > hi-lo {
				w /= 2
			}
			arrangeQuads(f.data[(lo-f.lo)*p.kp:][:w*p.kp], t.Q[lo*t.Stride:], t.Stride, p.g, w)
			lo += w
		}
	case prepPaired:
		p.pair(i)
	case prepOctets:
		rows := t.Q[(f.lo+2*i)*t.Stride : cap(t.Q)]
		arrangeOctets(f.data[i*p.kp:][:p.kp], rows[:2*t.Stride], t.Stride, p.g)
	case prepLanes:
		lo := f.lo + i*f.width
		arrangeLanes(f.data[i*f.width*t.Stride:][:f.width*t.Stride], t.Q[lo*t.Stride:cap(t.Q)], t.Stride, f.width, min(f.width, f.hi-lo))
	}
}

// leastAbsmax is the absmax from which 127/absmax stays finite.
const leastAbsmax = 0x1p-120

// rowScale makes of the bits of a row's absmax the factor that makes codes
// and the one that undoes it. Both are zero for a row of zeros.
func rowScale(absmax uint32) (inv, scale float32) {
	m := math.Float32frombits(absmax)
	switch {
	case absmax >= 0x7f800000:
		return 0, float32(math.NaN())
	case m < leastAbsmax:
		return 0, 0
	}
	return 127 / m, m / 127
}

// QuantizeRow sets q to the codes of a row, and gives its scale and minus their
// sum: what every implementation has to give, bit for bit.
func QuantizeRow(q []int8, x []float32) (scale float32, negSum int32) {
	inv, scale := rowScale(absmaxBits(x))
	if inv == 0 {
		clear(q)
		return scale, 0
	}
	return scale, vector.RoundInt8(q, x, inv)
}

// absmaxBits compares magnitudes as bits: NaN is then the largest, and the
// order of columns cannot matter.
func absmaxBits(x []float32) uint32 {
	absmax := uint32(0)
	for _, v := range x {
		absmax = max(absmax, math.Float32bits(v)&0x7fffffff)
	}
	return absmax
}

// arrangeQuadsGeneric writes [block][g][width][4] from width rows of q.
func arrangeQuadsGeneric(dst, q []int8, stride, g, width int) {
	cols := BlockBytes * g // of a block
	for b := range len(dst) / (width * cols) {
		for n := range width {
			src := q[n*stride+b*cols:][:cols]
			out := dst[(b*g*width+n)*4:]
			for j := range g {
				o := out[j*width*4:][:4]
				o[0], o[1], o[2], o[3] = src[j], src[g+j], src[2*g+j], src[3*g+j]
			}
		}
	}
}

// arrangeOctetsGeneric writes [pair of blocks][g][2][8] from two rows of q.
func arrangeOctetsGeneric(dst, q []int8, stride, g int) {
	cols := BlockBytes * g
	for at := 0; at < len(dst); at += 16 * g {
		for n := range 2 {
			src := q[n*stride+at/2:][:2*cols]
			for i, v := range src {
				b, j := i/g, i%g // byte b of the pair of blocks, trit j
				dst[at+16*j+8*n+b] = v
			}
		}
	}
}

// arrangeLanesGeneric writes [stride][lanes] from n rows of q and zeros for
// the lanes that have no row.
func arrangeLanesGeneric(dst, q []int8, stride, lanes, n int) {
	if n < lanes {
		clear(dst)
	}
	for i := range n {
		for k, v := range q[i*stride : (i+1)*stride] {
			dst[k*lanes+i] = v
		}
	}
}
