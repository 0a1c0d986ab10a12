//go:build amd64 && !purego

package acts

import "github.com/lutra-lm/lutra/kernels/cpu"

// NibbleBytes is the size of a nibble record, an activation record in parts from
// which a product makes its tables of sums in registers: q = low + 16·(high-8).
//
//	 0  uint8[32]  low, at most 15
//	32  uint8[32]  high, at most 15
//	64  int32      -Σq - 8192: what sums of table entries start from. A table's
//	               high parts are 32 too large, eight of them count 16·2 times
//	68  float32    8·d: other products multiply eight times the sum by d
const NibbleBytes = 72

// MakeNibbles makes the nibble records of the only row, of whole groups that are
// Unlimited, unless that was done since Set.
func (g *Groups) MakeNibbles() {
	if g.nibblesReady {
		return
	}
	n := g.src.k / GroupCols
	g.nibbles = cpu.Grow(g.nibbles, n*NibbleBytes)
	_, _ = g.rec[n*RecordBytes-1], g.nibbles[n*NibbleBytes-1]
	nibbleRecordsAVX2(&g.nibbles[0], &g.rec[0], n)
	g.nibblesReady = true
}

// Nibbles returns the records [K/32] that MakeNibbles made.
func (g *Groups) Nibbles() []byte { return g.nibbles }
