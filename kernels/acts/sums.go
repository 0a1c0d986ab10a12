package acts

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// sums holds the sums of each cols columns of other rows as these are quantised, which all matrices
// with offsets that read the rows share.
type sums struct {
	from  *Rows
	limit Limit
	cols  int
	set   uint64 // Sets of the rows
	of    Rows   // [n][K/cols]
}

// MakeSums quantises the rows in groups of a limit and sums each cols columns of what becomes of them,
// unless that was done since Set. cols is half of GroupCols or a multiple of it; rows are whole groups.
func (a *Rows) MakeSums(p *pool.Pool, limit Limit, cols int) {
	if a.sums == nil {
		a.sums = new(sums)
	}
	s, g := a.sums, &a.groups[limit]
	if s.set == a.sets && s.cols == cols && s.limit == limit {
		return
	}
	s.from, s.limit, s.cols, s.set = a, limit, cols, a.sets
	k := a.k / cols
	s.of.Set(cpu.Grow(s.of.x, a.n*k), a.n, k)
	if g.ready || a.gather.from != nil {
		a.MakeGroups(p, limit)
		a.Run(p, s, a.n)
		return
	}
	g.sums = s
	a.MakeGroups(p, limit)
	g.sums = nil
}

// Sums returns the rows that MakeSums made last.
func (a *Rows) Sums() *Rows { return &a.sums.of }

// Do sums the columns of row i.
func (s *sums) Do(_, i int) {
	le := binary.LittleEndian
	rec := s.from.groups[s.limit].rec[i*s.from.GroupStride():]
	dst := s.of.Row(i)
	if s.cols < GroupCols {
		for ; len(dst) > 0; rec, dst = rec[RecordBytes:], dst[2:] {
			scale := math.Float32frombits(le.Uint32(rec[32:]))
			dst[0] = scale * float32(int32(le.Uint32(rec[56:]))/-32)
			dst[1] = scale * float32(int32(le.Uint32(rec[60:]))/-32)
		}
		return
	}
	for k := range dst {
		dst[k] = 0
		for range s.cols / GroupCols {
			dst[k] += float32(math.Float32frombits(le.Uint32(rec[32:])) * math.Float32frombits(le.Uint32(rec[36:])))
			rec = rec[RecordBytes:]
		}
	}
}
