//go:build amd64 && !purego

package acts

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/pool"
)

// HalfBytes is the size of the record of half a group, as tiles over codes with a scale each
// 16 columns read it (_gen/grouped/halves.go):
//
//	 0  int8[16]  q
//	16  float32   d of the group
//	20  int32     -128·Σq
//	24  int32     -16·Σq
//	28  int16[2]  the same modulo 2¹⁶ and 0: what sums of levels that are 16 too large, of 0..31,
//	              start from to fit, of every other pair of columns each
const HalfBytes = RecordBytes / 2

// MakeHalves makes half records, [n][K/16] as far apart as the others, unless that was done since Set.
func (g *Groups) MakeHalves(p *pool.Pool) { g.halves.build(p, g, halve) }

// Halves returns the records [n][GroupStride] that MakeHalves made.
func (g *Groups) Halves() []byte { return g.halves.rec }

func halve(dst, rec *[RecordBytes]byte) {
	for h := range 2 {
		half := (*[HalfBytes]byte)(dst[h*HalfBytes:])
		copy(half[:16], rec[16*h:])
		copy(half[16:20], rec[32:])
		less := int32(binary.LittleEndian.Uint32(rec[56+4*h:])) // -32·Σq
		binary.LittleEndian.PutUint32(half[20:], uint32(4*less))
		binary.LittleEndian.PutUint32(half[24:], uint32(less/2))
		binary.LittleEndian.PutUint32(half[28:], uint32(uint16(less/2)))
	}
}
