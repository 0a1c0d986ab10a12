//go:build amd64 && !purego

package acts

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// QuadBytes is the size of a quad record: what weights of one bit look up. Quad 2b+h of a group is
// columns 16h+4i+b, i = 0..3. Its table has a sum for each number n of four bits, of the |q| of
// columns whose bit i is set in n and q is positive, or is not set and q is negative. Sums stand as
// low + 32·high, so that the sums of eight quads fit a byte, low and high alike.
//
//	  0  uint8[8][2][16]  the tables, low parts in front of high ones
//	256  float32          8·d, for eighths of scales
//	260  float32          2²³ + Σ|q|: Σ(2·bit-1)·q is twice the sum of the entries less Σ|q|
//
// Eight bytes that nobody reads follow.
const QuadBytes = 272

// MakeQuads makes quad records of the rows from one on, of whole groups that are Unlimited, unless that
// was done since Set.
func (g *Groups) MakeQuads(p *pool.Pool, from int) {
	a, q := g.src, &g.quads
	if q.ready {
		return
	}
	q.from, q.first = g, from
	q.rec = cpu.Grow(q.rec, a.k/GroupCols*g.QuadStride())
	a.Run(p, q, a.n-from)
	q.ready = true
}

// Do makes the quads of row first+i.
func (q *quads) Do(_, i int) {
	a := q.from.src
	groups, stride := a.k/GroupCols, q.from.QuadStride()
	dst, rec := q.rec[i*QuadBytes:], q.from.rec[(q.first+i)*a.GroupStride():][:groups*RecordBytes]
	_ = dst[(groups-1)*stride+QuadBytes-1]
	quadRecordsAVX2(&dst[0], stride, &rec[0], groups)
}

// Quads returns the records of the rows from t on, QuadStride from group to group.
func (g *Groups) Quads(t int) []byte { return g.quads.rec[(t-g.quads.first)*QuadBytes:] }

// QuadStride returns the distance of groups of quad records in bytes.
func (g *Groups) QuadStride() int { return (g.src.n - g.quads.first) * QuadBytes }
