package kernels

import (
	"encoding/binary"
	"math"
)

// groupedKBlock is the number of columns a band's weights stay in L1 for.
const groupedKBlock = 2048

// groupedKernel multiplies grouped bands with int8 activations. Inside a
// group everything is an exact integer; across groups float32 terms are added
// to y in the order of the groups, whatever the tile:
//
//	Q4, Q8  y += (d·Σ)·a            Σ: sum of products of a group
//	Q4M     y += (d·(sc·Σ) - (dmin·m)·Σq)·a
//	Q6      y += (d·(sc₀·Σ₀ + sc₁·Σ₁))·a
//
// with a the activations' scale and every bracket rounded once.
type groupedKernel struct {
	w     *Matrix
	tiles groupedTiles
}

func newGroupedKernel(w *Matrix) *groupedKernel {
	return &groupedKernel{w: w, tiles: groupedTilesFor(active, w.Packing)}
}

func (q *groupedKernel) prepare(p *Pool, x *Acts) { x.makeGrouped(p) }
func (q *groupedKernel) kBlock() int              { return groupedKBlock }

// addGeneric adds groups [gLo, gHi) of band s.
func (q *groupedKernel) addGeneric(y []float32, ld, s int, x *Acts, t, tEnd, gLo, gHi int) {
	var codes [bandRows][groupCols]int8
	var d, least [bandRows]float32
	var sc [bandRows][2]int32
	size := x.groupedStride()
	for g := gLo; g < gHi; g++ {
		for lane := range bandRows {
			w := q.w.groupedAt(s*bandRows + lane)
			w.codesOf(q.w.Packing, g, &codes[lane])
			d[lane], least[lane], sc[lane] = w.scalesOf(q.w.Packing, g)
		}
		for i := t; i < tEnd; i++ {
			rec := (*[actRecord]byte)(x.grouped.rec[i*size+g*actRecord:])
			a := math.Float32frombits(binary.LittleEndian.Uint32(rec[32:]))
			sum := math.Float32frombits(binary.LittleEndian.Uint32(rec[36:]))
			out := y[(i-t)*ld:][:bandRows]
			for lane := range out {
				lo, hi := dotHalves(&codes[lane], rec)
				v := d[lane]*float32(lo*sc[lane][0]+hi*sc[lane][1]) - least[lane]*sum
				out[lane] += v * a
			}
		}
	}
}

// scalesOf gives the parts of group g's scales: the weights are
// d·sc[half]·code - least.
func (w groupedRow) scalesOf(p Packing, g int) (d, least float32, sc [2]int32) {
	u, i := g/w.format.unit, g%w.format.unit
	d = w.halfAt(u, 0)
	switch p {
	case Q4M:
		s := int32(*w.small(u, 2, 2*i))
		return d, w.halfAt(u, 1) * float32(*w.small(u, 2, 2*i+1)), [2]int32{s, s}
	case Q6:
		return d, 0, [2]int32{int32(int8(*w.small(u, 1, 2*i))), int32(int8(*w.small(u, 1, 2*i+1)))}
	}
	return d, 0, [2]int32{1, 1}
}

// dotHalves is the integer products of the two halves of a group.
func dotHalves(w *[groupCols]int8, rec *[actRecord]byte) (lo, hi int32) {
	for k := 0; k < groupCols/2; k += 2 {
		lo += int32(w[k])*int32(int8(rec[k])) + int32(w[k+1])*int32(int8(rec[k+1]))
		hi += int32(w[k+16])*int32(int8(rec[k+16])) + int32(w[k+17])*int32(int8(rec[k+17]))
	}
	return lo, hi
}
