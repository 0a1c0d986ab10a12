package hexagon

import (
	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/hexagon/hmx"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

// Matrices with a scale a row by the tile unit in int8 (T-MAN §6.2): codes are its uint8 operand as they
// stand, activations of 8 bits the int8 one. Sums are exact, so that products have the bits of lookups.

// byteRowsOfStrip is the number of tiles of codes in a column of a strip.
const byteRowsOfStrip = layout.Strip / hmx.ByteRows

// laid holds the results of a row beside its integers.
type laid struct {
	sum   int32 // of them
	scale float32
}

// planes returns the bytes of a strip's results.
func (t *tiling) planes() int {
	return byteRowsOfStrip * t.cols * device.BytePlanes * layout.TileBytes
}

// fitsBytes reports whether products by tiles of bytes are exact, and all columns have room in TCM.
func (l *linear) fitsBytes(levels float32) bool {
	if !l.Integers() || l.InBytes() || l.Group != l.K {
		return false
	}
	largest := (1<<l.Bits - 1) * int(levels)
	end := uint32(scratch)
	l.tileBytes(tileRows, 0, &end)
	return largest*l.K < 1<<(8*device.BytePlanes-1) && end <= tcmEnd
}

// tileBytes plans a product of n rows, at most tileRows, with results at y. It takes TCM from *at on.
func (l *linear) tileBytes(n int, y uint32, at *uint32) (t tiling) {
	t.y, t.k, t.strips, t.bytes = y, l.K, 1, true
	t.cols = roundUp(n, layout.Tile) / layout.Tile
	t.x = take(at, t.cols*l.K*layout.Tile)
	for i := range t.weights {
		w := &t.weights[i]
		w.codes, w.tiles, w.out = take(at, l.K*l.codeBytes()), take(at, l.K*layout.Strip), take(at, t.planes())
	}
	return t
}

// mulBytes multiplies on the tile unit in int8.
func (ps *products) mulBytes(p *product) error {
	for lo := 0; lo < p.n; lo += tileRows {
		n, at := min(tileRows, p.n-lo), uint32(scratch)
		t := p.tileBytes(n, ps.plan.y.at, &at)
		now := resident{p.acts, p.sets(), PathInt8, lo, n}
		if p.acts == nil || ps.resident != now {
			ps.resident = now
			ps.layBytes(p, lo, n)
		}
		for first := 0; first < p.M/layout.Strip; {
			ps.q.add(device.OpCopy, t.x, ps.plan.x.at, uint32(t.cols*p.K*layout.Tile))
			strips := min(p.M/layout.Strip-first, resultBytes/t.planes())
			t.pipeline(ps.q, p.passes(nil, &t, first, strips, nil), 0, p.K)
			if err := ps.s.run(); err != nil {
				return err
			}
			ps.gatherPlanes(p, lo, n, &t, first, strips)
			first += strips
		}
	}
	return nil
}

// layBytes lays out rows [lo, lo+n) in tiles of bytes, zeros beyond the last one, a row in each lane.
func (ps *products) layBytes(p *product, lo, n int) {
	size := roundUp(n, layout.Tile) * p.K
	ps.q.count(&ps.q.work.Written, size)
	clear(ps.q.mem[ps.plan.x.at:][:size])
	for i := range n {
		row, l := p.row(lo+i), laid{}
		var inverse float32
		inverse, l.scale = ps.codes.activations(row)
		tiles := ps.q.mem[int(ps.plan.x.at)+i/layout.Tile*p.K*layout.Tile:]
		for k, f := range row {
			v := ps.codes.integer(f, inverse)
			l.sum += v
			tiles[k/layout.Tile*device.ByteLanesBytes+hmx.LaneIndex(k%layout.Tile, i%layout.Tile)] = byte(v)
		}
		ps.laid[i] = l
	}
}

// gatherPlanes turns the results of strips into rows [lo, lo+n) of the product.
func (ps *products) gatherPlanes(p *product, lo, n int, t *tiling, first, strips int) {
	ps.q.count(&ps.q.work.Read, strips*t.planes())
	const plane = layout.TileBytes
	for i := range n {
		l, out := ps.laid[i], p.out(lo+i)
		zero := int32(p.B) * l.sum
		for m := first * layout.Strip; m < min(p.Rows, (first+strips)*layout.Strip); m++ {
			tile := (m/hmx.ByteRows-first*byteRowsOfStrip)*t.cols + i/layout.Tile
			at := ps.q.mem[int(t.y)+tile*device.BytePlanes*plane+m%hmx.ByteRows*layout.Tile+i%layout.Tile:]
			sum := int32(at[0]) | int32(at[plane])<<8 | int32(int8(at[2*plane]))<<16
			out[m] = float32(int32(p.A)*sum-zero) * (l.scale * p.R[m])
		}
	}
}
