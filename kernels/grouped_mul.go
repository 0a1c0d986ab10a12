package kernels

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/cpu"
)

// groupedKBlock is the number of columns a band's weights stay in L1 for.
const groupedKBlock = 2048

// groupedKernel multiplies grouped bands with int8 activations. Inside a
// group everything is an exact integer; across groups float32 terms are added
// in the order of the groups, whatever the tile, Q6 by superblocks:
//
//	Q4, Q8  y += (d·Σ)·a            Σ: sum of products of a group
//	Q4M     y += (d·(sc·Σ) - (dmin·m)·Σq)·a
//	Q6      y += d·(… + (sc₀·Σ₀ + sc₁·Σ₁)·a)
//
// with a the activations' scale and every bracket rounded once.
type groupedKernel struct {
	w     *Matrix
	tiles groupedTiles
}

func newGroupedKernel(w *Matrix) *groupedKernel {
	return &groupedKernel{w: w, tiles: groupedTilesFor(cpu.Active(), w.Packing)}
}

func (q *groupedKernel) kBlock() int { return groupedKBlock }

// addGeneric adds groups [gLo, gHi) of band s.
func (q *groupedKernel) addGeneric(y []float32, ld, s int, x *Acts, t, tEnd, gLo, gHi int) {
	var unit [superGroups]genericGroup
	size, groups := x.groupedStride(), groupedFormats[q.w.Packing].unit
	for g := gLo; g < gHi; g += groups {
		for i := range groups {
			unit[i].read(q.w, s, g+i)
		}
		for i := t; i < tEnd; i++ {
			addUnit(y[(i-t)*ld:][:bandRows], q.w.Packing, unit[:groups], x.grouped.rec[i*size+g*actRecord:])
		}
	}
}

// addUnit adds the products of a scale unit with the records of a token.
func addUnit(y []float32, p Packing, unit []genericGroup, recs []byte) {
	for lane := range y {
		var super float32
		for i := range unit {
			g, rec := &unit[i], (*[actRecord]byte)(recs[i*actRecord:])
			a := math.Float32frombits(binary.LittleEndian.Uint32(rec[32:]))
			lo, hi := dotHalves(&g.codes[lane], rec)
			sum := float32(lo*g.sc[lane][0] + hi*g.sc[lane][1])
			if p == Q6 {
				super += sum * a
				continue
			}
			least := g.least[lane] * math.Float32frombits(binary.LittleEndian.Uint32(rec[36:]))
			y[lane] += (g.d[lane]*sum - least) * a
		}
		if p == Q6 {
			y[lane] += unit[0].d[lane] * super
		}
	}
}

// genericGroup is a group of a band, its codes' offset taken off.
type genericGroup struct {
	codes    [bandRows][groupCols]int8
	d, least [bandRows]float32
	sc       [bandRows][2]int32
}

func (g *genericGroup) read(w *Matrix, s, group int) {
	for lane := range bandRows {
		row := w.groupedAt(s*bandRows + lane)
		row.codesOf(w.Packing, group, &g.codes[lane])
		g.d[lane], g.least[lane], g.sc[lane] = row.scalesOf(w.Packing, group)
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
