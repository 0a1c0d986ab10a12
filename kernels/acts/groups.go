package acts

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// GroupCols is the number of columns that share an activation scale.
const GroupCols = 32

// RecordBytes is the size of the record that a group of activations is:
//
//	 0  int8[32]  q, in [-127, 127], Σ|q| of a half within the Limit
//	32  float32   d: x ≈ d·q, d = absmax/127, or more where the Limit asks for it
//	36  float32   Σq
//	40  int16[2]  -4·Σq twice: what a pair of int16 sums of 4-bit codes starts
//	              from to end as Σ(code-8)·q (modulo 2¹⁶, where the end fits)
//	44  int32     -8·Σq
//	48  int16[4]  -32·(sums over k%4 < 2 and k%4 ≥ 2) of the first and of the
//	              second half: the same for 6-bit codes, of what is Limited; else:
//	48  uint32    the bits of the float32 1.5·2²³, less 8·Σq, and
//	52  uint32    less 128·Σq: sums of 4- and 8-bit codes that start from there
//	              become 1.5·2²³ + Σ(code-8)·q, or code-128, without a conversion
//	56  int32[2]  -32·Σq of the first and of the second half
const RecordBytes = 64

// Limit says how large the codes of half a group may be together.
type Limit uint8

// The limits.
const (
	Unlimited Limit = iota // each up to 127
	// Limited is for products with 6-bit codes, 32 at most, which add up in int16:
	// Σ|q| is at most mostHalf. Groups whose values are of much the same size, as in
	// embeddings that are signs, lose up to a bit by it.
	Limited
	// Tight is Limited further, to mostTight, for products with levels of up to 43.
	Tight
	limits
)

// most returns the largest Σ|q| of half a group.
func (l Limit) most() int32 { return [limits]int32{16 * 127, mostHalf, mostTight}[l] }

// flat returns the numerator of the largest code, flat/Σ|q|, where Σ|q| is more than most.
func (l Limit) flat() int32 { return [limits]int32{Limited: flatHalf, Tight: flatTight}[l] }

// mostHalf bounds Σ|q| of half a group where it is Limited. Where d = absmax/127
// gives more, as it does for some groups in a hundred of gaussian values, the largest
// code is flatHalf/Σ|q|, rounded down, instead of 127. Both passes round by half a code. So
// Σ|q| is at most 1006·(1+8/1024) + 8 < mostHalf, and of Tight groups at most
// 746·(1+8/763) + 8 < mostTight, of which 43 times fit int16.
const (
	mostHalf  = 1023
	flatHalf  = 127 * 1006
	mostTight = 762
	flatTight = 127 * 746
)

// Groups holds rows quantised to int8 with one absmax scale each 32
// columns, as records [n][K/32]. Columns beyond K count as zero. Forms that some
// tiles read in place of the records are made of these, each once.
type Groups struct {
	ready bool
	rec   []byte
	src   *Rows
	limit Limit
	sums  *sums // to be made with the records; nil: none
	lanes lanes

	mixed  derived // for mixed panels
	halves derived // of halves
	wide   wide
	quads  quads

	pairs []byte // groups of pairs of rows; empty: not made

	nibblesReady bool
	nibbles      []byte // of one row
}

// derived holds records that some tiles read in place of the groups' own, one made of each.
type derived struct {
	ready bool
	rec   []byte // [n][GroupStride]
	from  *Groups
	make  func(dst, rec *[RecordBytes]byte)
}

// wide holds wide records, which are larger.
type wide struct {
	ready bool
	rec   []byte // [n][WideStride]
	from  *Groups
}

// quads holds quad records, which are larger still.
type quads struct {
	ready bool
	first int    // row
	rec   []byte // [K/32][n-first]
	from  *Groups
}

func (g *Groups) reset() {
	g.ready, g.mixed.ready, g.halves.ready, g.wide.ready, g.quads.ready = false, false, false, false, false
	g.nibblesReady, g.lanes.tokens = false, 0
	g.pairs = g.pairs[:0]
}

// GroupStride returns the distance of rows in bytes: their records, and padding up to 1 KiB off a
// multiple of 2 KiB. So a panel's groups of a tile of four tokens lie in different sets of L1.
func (a *Rows) GroupStride() int {
	records := (a.k + GroupCols - 1) / GroupCols
	return ((records+15)&^31 + 16) * RecordBytes
}

// MakeGroups quantises the rows in groups of a limit unless that was done since Set.
func (a *Rows) MakeGroups(p *pool.Pool, limit Limit) {
	g := &a.groups[limit]
	if g.ready {
		return
	}
	g.rec = cpu.Grow(g.rec, cpu.RoundUp(a.n, WideLanes)*a.GroupStride()) // whole tiles, for what reads them so
	g.src, g.limit = a, limit
	if a.gather.from != nil {
		a.gather.run(a, p, gatherGroups+gatherKind(limit))
	} else {
		a.Run(p, g, a.n)
	}
	g.ready = true
}

// Groups returns what MakeGroups made with that limit.
func (a *Rows) Groups(limit Limit) *Groups { return &a.groups[limit] }

// Records returns the records [n][GroupStride].
func (g *Groups) Records() []byte { return g.rec }

// Do quantises row i, and sums it for the products that wait for that.
func (g *Groups) Do(worker, i int) {
	a := g.src
	size := a.GroupStride()
	quantizeGroups(g.rec[i*size:(i+1)*size], a.Row(i), g.limit)
	if g.sums != nil {
		g.sums.Do(worker, i)
	}
}

// quantizeGroups writes the records of one row.
func quantizeGroups(rec []byte, x []float32, limit Limit) {
	done := quantizeGroupsFast(rec, x, limit)
	rec, x = rec[done*RecordBytes:], x[done*GroupCols:]
	for len(x) > 0 {
		n := min(GroupCols, len(x))
		QuantizeGroup((*[RecordBytes]byte)(rec), x[:n], limit)
		rec, x = rec[RecordBytes:], x[n:]
	}
}

// QuantizeGroup writes the record of a group, of fewer columns at the end of a row.
func QuantizeGroup(rec *[RecordBytes]byte, x []float32, limit Limit) {
	clear(rec[:])
	le := binary.LittleEndian
	var bits uint32 // |x| compares as an integer, with NaN on top
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&0x7fffffff)
	}
	top := math.Float32frombits(bits)
	if !(top >= vector.MinAbsMax && top <= math.MaxFloat32) {
		if bits >= 0x7f800000 {
			le.PutUint32(rec[32:], 0x7fc00000) // NaN: an infinity must not pass for a number
		}
		return
	}
	most := int32(127)
	sums, half := codesOfGroup(rec, x, float32(most)/top)
	if half > limit.most() {
		most = limit.flat() / half
		sums, _ = codesOfGroup(rec, x, float32(most)/top)
	}
	first, second := sums[0][0]+sums[0][1], sums[1][0]+sums[1][1]
	sum := first + second
	le.PutUint32(rec[32:], math.Float32bits(top/float32(most)))
	le.PutUint32(rec[36:], math.Float32bits(float32(sum)))
	le.PutUint16(rec[40:], uint16(-4*sum))
	le.PutUint16(rec[42:], uint16(-4*sum))
	le.PutUint32(rec[44:], uint32(-8*sum))
	if limit != Unlimited {
		for i := range 4 {
			le.PutUint16(rec[48+2*i:], uint16(-32*sums[i/2][i%2]))
		}
	} else {
		const magic = 0x4b400000
		le.PutUint32(rec[48:], uint32(magic-8*sum))
		le.PutUint32(rec[52:], uint32(magic-128*sum))
	}
	le.PutUint32(rec[56:], uint32(-32*first))
	le.PutUint32(rec[60:], uint32(-32*second))
}

// codesOfGroup writes q = round(x·inv) and gives their sums [half][k%4 ≥ 2],
// and Σ|q| of the half where it is larger.
func codesOfGroup(rec *[RecordBytes]byte, x []float32, inv float32) (sums [2][2]int32, largest int32) {
	var sizes [2]int32
	for k, v := range x {
		q := int32(math.RoundToEven(float64(v * inv)))
		rec[k] = byte(q)
		sums[k/16][k/2%2] += q
		sizes[k/16] += max(q, -q)
	}
	return sums, max(sizes[0], sizes[1])
}
