//go:build amd64 && !purego

package acts

import (
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/pool"
)

// build makes the records of g's unless that was done since Set.
func (d *derived) build(p *pool.Pool, g *Groups, make func(dst, rec *[RecordBytes]byte)) {
	if d.ready {
		return
	}
	d.from, d.make, d.rec = g, make, cpu.Grow(d.rec, len(g.rec))
	g.src.Run(p, d, g.src.n)
	d.ready = true
}

// Do makes the derived groups of row i.
func (d *derived) Do(_, i int) {
	size := d.from.src.GroupStride()
	dst, rec := d.rec[i*size:], d.from.rec[i*size:]
	for range (d.from.src.k + GroupCols - 1) / GroupCols {
		d.make((*[RecordBytes]byte)(dst), (*[RecordBytes]byte)(rec))
		dst, rec = dst[RecordBytes:], rec[RecordBytes:]
	}
}
