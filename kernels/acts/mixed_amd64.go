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
//	36  int16[2]  -32·Σq of each half, which fits what is Limited

// MakeMixed makes mixed records of a limit, [n][K/32] as the others, unless that was
// done since Set. It wants MakeGroups first.
func (a *Rows) MakeMixed(p *pool.Pool, limit Limit) {
	g := &a.groups[limit]
	g.derive(p, &g.mixed, mix)
}

// Mixed returns the records [n][GroupStride] that MakeMixed made with that limit.
func (a *Rows) Mixed(limit Limit) []byte { return a.groups[limit].mixed.rec }

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
