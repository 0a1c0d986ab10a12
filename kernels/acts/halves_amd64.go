//go:build amd64 && !purego

package acts

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// HalfBytes is the size of the record of half a group, as tiles over codes with a scale each
// 16 columns read it (_gen/grouped/halves.go):
//
//	 0  int8[16]  q
//	16  float32   d of the group
//	20  int32     -128·Σq
//	24  int32     -16·Σq
const HalfBytes = RecordBytes / 2

// halving is a Task that makes the half records of one row.
type halving groups

// MakeHalves makes half records of rows of a limit, [n][K/16] as far apart as the others,
// unless that was done since Set. It wants MakeGroups first.
func (a *Rows) MakeHalves(p *pool.Pool, limit Limit) {
	g := &a.groups[limit]
	if g.halvesReady {
		return
	}
	g.halves = cpu.Grow(g.halves, len(g.rec))
	a.Run(p, (*halving)(g), a.n)
	g.halvesReady = true
}

// Halves returns the records [n][GroupStride] that MakeHalves made with that limit.
func (a *Rows) Halves(limit Limit) []byte { return a.groups[limit].halves }

// Do makes those of row i.
func (g *halving) Do(_, i int) {
	size := g.src.GroupStride()
	dst, rec := g.halves[i*size:], g.rec[i*size:]
	for range (g.src.k + GroupCols - 1) / GroupCols {
		for h := range 2 {
			half := (*[HalfBytes]byte)(dst[h*HalfBytes:])
			copy(half[:16], rec[16*h:])
			copy(half[16:20], rec[32:])
			less := int32(binary.LittleEndian.Uint32(rec[56+4*h:])) // -32·Σq
			binary.LittleEndian.PutUint32(half[20:], uint32(4*less))
			binary.LittleEndian.PutUint32(half[24:], uint32(less/2))
		}
		dst, rec = dst[RecordBytes:], rec[RecordBytes:]
	}
}
