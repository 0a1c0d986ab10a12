//go:build amd64 && !purego

package acts

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/pool"
)

// A mixed record is an activation record as tiles over mixed panels read it,
// whose int16 sums keep the halves of a group apart (_gen/grouped/panel.go):
//
//	 0  dword j: columns 2j, 2j+1, 16+2j, 17+2j of q
//	32  float32   d
//	36  int16[2]  -32·Σq of each half, or of what is Tight -64·Σq: modulo 2¹⁶, where the sums fit

// MakeMixed makes mixed records, [n][K/32] as the others, unless that was done since Set.
func (g *Groups) MakeMixed(p *pool.Pool) {
	how := mix
	if g.limit == Tight {
		how = mixTight
	}
	g.mixed.build(p, g, how)
}

// Mixed returns the records [n][GroupStride] that MakeMixed made.
func (g *Groups) Mixed() []byte { return g.mixed.rec }

func mix(dst, rec *[RecordBytes]byte) {
	le := binary.LittleEndian
	for j := range GroupCols / 4 {
		first, second := le.Uint16(rec[2*j:]), le.Uint16(rec[GroupCols/2+2*j:])
		le.PutUint32(dst[4*j:], uint32(first)|uint32(second)<<16)
	}
	copy(dst[32:36], rec[32:])
	copy(dst[36:38], rec[56:]) // the low halves of int32
	copy(dst[38:40], rec[60:])
}

func mixTight(dst, rec *[RecordBytes]byte) {
	mix(dst, rec)
	le := binary.LittleEndian
	for h := 36; h < 40; h += 2 {
		le.PutUint16(dst[h:], 2*le.Uint16(dst[h:]))
	}
}
