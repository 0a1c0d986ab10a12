//go:build amd64 && !purego

package acts

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// WideBytes is the size of a wide record, an activation record as tiles over panels of int16
// read it (_gen/grouped/halves_panel.go). Each half is
//
//	 0  int16[8]  q of columns 4w and 4w+2, w = 0..3
//	16  int16[8]  q of columns 4w+1 and 4w+3
//	32  float32   d of the group
const WideBytes = 72

// MakeWide makes wide records of rows that are Unlimited unless that was done since Set.
func (g *Groups) MakeWide(p *pool.Pool) {
	w := &g.wide
	if w.ready {
		return
	}
	w.from, w.rec = g, cpu.Grow(w.rec, g.src.n*g.WideStride())
	g.src.Run(p, w, g.src.n)
	w.ready = true
}

// Do makes the wide records of row i.
func (w *wide) Do(_, i int) {
	a := w.from.src
	groups := (a.k + GroupCols - 1) / GroupCols
	dst, rec := w.rec[i*w.from.WideStride():][:groups*WideBytes], w.from.rec[i*a.GroupStride():][:groups*RecordBytes]
	wideRecordsAVX2(&dst[0], &rec[0], groups)
}

// Wide returns the records [n][WideStride] that MakeWide made.
func (g *Groups) Wide() []byte { return g.wide.rec }

// WideStride returns the distance of rows of wide records in bytes: as GroupStride, that rows'
// records lie in different sets of L1.
func (g *Groups) WideStride() int {
	groups := (g.src.k + GroupCols - 1) / GroupCols
	return (groups*WideBytes+1023)&^2047 + 1024
}
