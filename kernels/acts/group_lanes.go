package acts

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// lanes holds groups of 32 columns token-contiguous, for lookup tables, in
// tiles of 16 or 32 tokens:
//
//	[tile][K/32] of { q int8[32][tokens] · 8·d float32[2][tokens/2] }
//
// where q and d come from the records, and the scales belong first to the even
// tokens, then to the odd ones. Lanes of tokens beyond the last are never used.
type lanes struct {
	tokens int // of a tile; 0: not made
	data   []byte
	from   *Groups
}

// GroupLaneBytes returns the size of a group of a tile.
func GroupLaneBytes(tokens int) int { return (GroupCols + 4) * tokens }

// MakeLanes arranges the groups, which are Unlimited, in tiles of 16 or 32
// tokens, unless that was done since Set.
func (g *Groups) MakeLanes(p *pool.Pool, tokens int) {
	l := &g.lanes
	if l.tokens == tokens {
		return
	}
	l.tokens, l.from = tokens, g
	tiles := (g.src.n + tokens - 1) / tokens
	l.data = cpu.Grow(l.data, tiles*l.tileBytes())
	g.src.Run(p, l, tiles)
}

// Lanes returns tile i of what MakeLanes made.
func (g *Groups) Lanes(i int) []byte {
	l := &g.lanes
	return l.data[i*l.tileBytes() : (i+1)*l.tileBytes()]
}

func (l *lanes) tileBytes() int {
	return (l.from.src.k + GroupCols - 1) / GroupCols * GroupLaneBytes(l.tokens)
}

// Do arranges tile i.
func (l *lanes) Do(_, i int) {
	stride := l.from.src.GroupStride()
	recs := l.from.rec[i*l.tokens*stride:]
	recs = recs[:min(l.tokens*stride, cap(recs))]
	for g, size := 0, GroupLaneBytes(l.tokens); g*GroupCols < l.from.src.k; g++ {
		group, recs := l.from.Lanes(i)[g*size:][:size], recs[g*RecordBytes:]
		arrangeGroup(group[:GroupCols*l.tokens], recs, stride, l.tokens)
		scales := group[GroupCols*l.tokens:]
		for t := range l.tokens {
			d := math.Float32frombits(binary.LittleEndian.Uint32(recs[t*stride+32:]))
			binary.LittleEndian.PutUint32(scales[4*(t%2*l.tokens/2+t/2):], math.Float32bits(8*d))
		}
	}
}

// arrangeGroupGeneric sets dst[32][tokens] to the codes of a group of as many
// records, stride bytes apart.
func arrangeGroupGeneric(dst, recs []byte, stride, tokens int) {
	for t := range tokens {
		for k, q := range recs[t*stride:][:GroupCols] {
			dst[k*tokens+t] = q
		}
	}
}
