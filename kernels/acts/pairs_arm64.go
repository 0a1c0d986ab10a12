//go:build arm64 && !purego

package acts

import "github.com/lutra-lm/lutra/kernels/pool"

// PairBytes is the size of a group of two tokens' activations as SMMLA reads them,
// 8 columns of the one beside 8 of the other:
//
//	 0  int8[4][2][8]   q
//	64  float32[2][2]   d of the records, each twice
//	80  float32[2][2]   Σq, each twice
const PairBytes = 96

// pairing is a Task that makes the groups of a pair of rows.
type pairing Groups

// MakePairs makes the groups of pairs of rows, [(n+1)/2][K/32][PairBytes], unless that was
// done since Set. What stands beside an odd last row is arbitrary.
func (g *Groups) MakePairs(p *pool.Pool) {
	if len(g.pairs) > 0 {
		return
	}
	size, pairs := g.PairStride(), (g.src.n+1)/2
	if cap(g.pairs) < pairs*size {
		g.pairs = make([]byte, pairs*size)
	}
	g.pairs = g.pairs[:pairs*size]
	g.src.Run(p, (*pairing)(g), pairs)
}

// PairStride returns the distance of pairs in bytes.
func (g *Groups) PairStride() int { return (g.src.k + GroupCols - 1) / GroupCols * PairBytes }

// Pairs returns the pairs that MakePairs made.
func (g *Groups) Pairs() []byte { return g.pairs }

// Do makes pair i.
func (g *pairing) Do(_, i int) {
	stride, size := g.src.GroupStride(), (*Groups)(g).PairStride()
	rec, dst := g.rec[2*i*stride:cap(g.rec)], g.pairs[i*size:(i+1)*size]
	for at := 0; len(dst) > 0; at += RecordBytes {
		pair := (*[PairBytes]byte)(dst)
		for t := range 2 {
			r := (*[RecordBytes]byte)(rec[t*stride+at:])
			for o := range 4 {
				*(*[8]byte)(pair[16*o+8*t:]) = *(*[8]byte)(r[8*o:])
			}
			for i := range 2 {
				*(*[4]byte)(pair[64+8*t+4*i:]) = *(*[4]byte)(r[32:])
				*(*[4]byte)(pair[80+8*t+4*i:]) = *(*[4]byte)(r[36:])
			}
		}
		dst = dst[PairBytes:]
	}
}
