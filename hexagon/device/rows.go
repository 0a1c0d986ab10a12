package device

import (
	"math"

	"github.com/lutra-lm/lutra/hexagon/layout"
	"github.com/lutra-lm/lutra/hexagon/ref"
)

// rowOps runs what layers do to rows between products.
func (g *Go) rowOps(p Packet) {
	memory := func(offset uint32, n int) []byte { return g.bytes(offset, n) }
	if p.Op == OpTilesToRows {
		n := int(tilesOf(p.Args[5]))
		g.parallel(n, func(i int) { tilesToRows(&p, memory, i, i+1) })
		return
	}
	if p.Op == OpDelta {
		g.parallel(int(p.Args[6]*p.Args[7]), func(i int) { deltaHeads(&p, memory, i, i+1) })
		return
	}
	g.eachRowPart(p, func(p Packet) { RunRows(p, memory) })
}

// tilesToRows runs columns [first, end) of an OpTilesToRows.
func tilesToRows(p *Packet, memory func(offset uint32, n int) []byte, first, end int) {
	a := &p.Args
	n, width, stride, columns := int(a[5]), int(a[6]), int(a[7]), int(tilesOf(a[5]))
	floats := func(at, n int) []float32 { return View[float32](memory(a[at], 4*n), 0, n) }
	var bias []float32
	if a[4] != 0 {
		bias = floats(4, width)
	}
	tiles := View[uint16](memory(a[1], width/layout.Tile*columns*layout.TileBytes), 0, width/layout.Tile*columns*tile)
	ref.TilesToRows(ref.Rows{X: floats(0, ((n-1)*stride/4 + width)), Stride: stride / 4}, tiles, floats(2, n), floats(3, width), bias,
		first*layout.Tile, min(n, end*layout.Tile), width, columns, math.Float32frombits(a[8]), a[9] == 1)
}

// deltaHeads runs heads [first, end) of an OpDelta.
func deltaHeads(p *Packet, memory func(offset uint32, n int) []byte, first, end int) {
	a := &p.Args
	n, keys, share, width := int(a[5]), int(a[6]), int(a[7]), int(a[8])
	heads := keys * share
	floats := func(at, n int) []float32 { return View[float32](memory(a[at], 4*n), 0, n) }
	rows := func(at, width, stride int) ref.Rows {
		return ref.Rows{X: floats(at, (n-1)*int(a[stride])/4+width), Stride: int(a[stride]) / 4}
	}
	d := ref.Delta{Keys: keys, Share: share, Width: width, Grouped: a[14] == 1, Decay: int(a[12]), Beta: int(a[13])}
	var from []float32
	if a[3] != 0 {
		from = floats(3, heads*width*width)
	}
	d.Rows(rows(0, heads*width, 9), rows(1, (2*keys+heads)*width, 10), rows(2, max(d.Decay, d.Beta)+heads, 11), from, floats(4, heads*width*width), n, first, end)
}

// RunRows runs an operation on rows of float32 that Check takes, by its definition, and
// tells whether p is one. memory returns n bytes at an offset.
func RunRows(p Packet, memory func(offset uint32, n int) []byte) bool {
	a := &p.Args
	n := func(i int) int { return int(a[i]) }
	float := func(i int) float32 { return math.Float32frombits(a[i]) }
	floats := func(at, n int) []float32 { return View[float32](memory(a[at], 4*n), 0, n) }
	optional := func(at, n int) []float32 {
		if a[at] == 0 {
			return nil
		}
		return floats(at, n)
	}
	rows := func(at, count, width, stride int) ref.Rows {
		return ref.Rows{X: floats(at, (count-1)*n(stride)/4+width), Stride: n(stride) / 4}
	}
	halves := func(at, n int) []uint16 { return View[uint16](memory(a[at], 2*n), 0, n) }
	states := func(at int) []uint32 {
		return View[uint32](memory(a[at], layout.Tile*StateBytes), 0, layout.Tile*ref.StateWords)
	}
	switch p.Op {
	case OpRMSNorm:
		width := n(4) * n(5)
		ref.RMSNorm(rows(0, n(3), width, 6), rows(1, n(3), width, 7), optional(2, n(5)), n(3), n(4), n(5), float(8), float(9))
	case OpLayerNorm:
		ref.LayerNorm(rows(0, n(4), n(5), 6), rows(1, n(4), n(5), 7), floats(2, n(5)), floats(3, n(5)), n(4), n(5), float(8), float(9))
	case OpQuantize:
		ref.Quantize(View[int16](memory(a[0], 2*n(3)*n(4)), 0, n(3)*n(4)), floats(1, n(3)), rows(2, n(3), n(5), 6), n(3), n(4), n(5))
	case OpScale:
		sums := (n(5)-1)*n(8)/4 + n(6)
		ref.Scale(rows(0, n(5), n(6), 7), View[int32](memory(a[1], 4*sums), 0, sums), n(8)/4, floats(2, n(5)), floats(3, n(6)), optional(4, n(6)), n(5), n(6))
	case OpAdd:
		ref.AddRows(rows(0, n(2), n(3), 4), rows(1, n(2), n(3), 5), n(2), n(3), float(6))
	case OpRope:
		ref.Rope(rows(0, n(2), n(3)*n(4), 7), floats(1, n(2)*2*n(5)), n(2), n(3), n(4), n(5), n(6))
	case OpGLU:
		ref.GLU(rows(0, n(3), n(4), 5), rows(1, n(3), n(4), 6), rows(2, n(3), n(4), 6), n(3), n(4), n(7), ref.Clamp{Limit: float(8), Alpha: float(9), Plus: float(10)})
	case OpToTiles:
		ref.ToTiles(halves(0, (n(3)-1)*n(6)/2+n(4)/layout.Tile*tile), rows(1, n(2), n(3)*n(4), 5), n(2), n(3), n(4), n(6)/2, n(7), a[8] == 1, float(9))
	case OpFromTiles:
		ref.FromTiles(rows(0, n(3), n(4), 5), halves(1, n(4)/layout.Tile*tile), floats(2, layout.Tile), View[uint32](memory(a[7], 4*layout.Tile), 0, layout.Tile), n(3), n(4), n(6), a[8] == 1)
	case OpRowsToTiles:
		ref.RowsToTiles(halves(0, int(tilesOf(a[3]))*layout.Tile*n(4)), floats(1, n(3)), rows(2, n(3), n(5), 6), n(3), n(4), n(5))
	case OpTilesToRows:
		tilesToRows(&p, memory, 0, int(tilesOf(a[5])))
	case OpMul:
		ref.MulRows(rows(0, n(3), n(4), 5), rows(1, n(3), n(4), 6), rows(2, n(3), n(4), 7), n(3), n(4))
	case OpConv:
		ref.Conv(rows(0, n(4), n(5), 6), rows(1, n(4), n(5), 7), floats(2, n(8)*n(5)), floats(3, (n(8)-1)*n(5)), n(4), n(5), n(8), a[9] == 1)
	case OpGates:
		ref.Gates(rows(0, n(3), n(4), 5), rows(1, n(3), n(4), 6), floats(2, 3*n(4)), n(3), n(4))
	case OpDelta:
		deltaHeads(&p, memory, 0, n(6)*n(7))
	case OpFold:
		var next []uint32
		if a[2] != 0 {
			next = states(2)
		}
		ref.Fold(floats(0, layout.Tile), states(1), next, a[3] == 1)
	default:
		return false
	}
	return true
}
