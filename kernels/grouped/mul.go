package grouped

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
)

const (
	kBlock     = 2048 // the number of columns a band's weights stay in L1 for
	tileTokens = 64   // 256 KiB of records, at kBlock columns
)

// kernel multiplies grouped bands with int8 activations. Inside a
// group everything is an exact integer; across groups float32 terms are added
// in the order of the groups, whatever the tile, by units where d is theirs:
//
//	Q4, Q8  y += (d·Σ)·a            Σ: sum of products of a group
//	Q4M     y += (d·(sc·Σ) - (dmin·m)·Σq)·a
//	Q41     y += (d·Σ - m·Σq)·a
//	Q6, NL4S, NL3K
//	        y += d·(… + (sc₀·Σ₀ + sc₁·Σ₁)·a)
//	Q1, Q2  y += d·(… + Σ·a)
//	NL4, NL4K, NVFP4
//	        y += ((d·sc₀)·Σ₀)·a, then the same of the second half
//
// with a the activations' scale and every bracket rounded once.
type kernel struct {
	product
	tiles tileSet
}

// product has what kernels of all sets of tiles have in common: a matrix and the format of its packing.
type product struct {
	w *matrix.Matrix
	f *format
}

func productOf(w *matrix.Matrix) product { return product{w, &formats[w.Packing]} }

// NewKernel returns the kernel that multiplies w on the instruction set in use.
func NewKernel(w *matrix.Matrix) bands.Kernel {
	return kernelFor(cpu.Active(), w)
}

// BandBytes returns the size of a band.
func (q *product) BandBytes() int { return q.f.bandBytes(q.w.Cols) }

// KBlock returns the number of columns after which sums are added to y.
func (q *product) KBlock() int { return kBlock }

// TileTokens returns the number of tokens that stay in L2.
func (q *product) TileTokens() int { return tileTokens }

// quantise makes the rows of x groups, and sums them for the offsets if there are any.
func (q *product) quantise(p *pool.Pool, x *acts.Rows) {
	if o := q.w.Offsets; o != nil {
		x.MakeSums(p, q.f.limit, q.w.Cols/o.Cols)
		return
	}
	x.MakeGroups(p, q.f.limit)
}

// addGeneric adds groups [gLo, gHi) of band s.
func (q *product) addGeneric(y []float32, ld, s int, x *acts.Rows, t, tEnd, gLo, gHi int) {
	var unit [superGroups]genericGroup
	size := x.GroupStride()
	for g := gLo; g < gHi; g += q.f.unit {
		for i := range q.f.unit {
			unit[i].read(q.w, s, g+i)
		}
		for i := t; i < tEnd; i++ {
			addUnit(y[(i-t)*ld:][:bands.Rows], q.f.super, unit[:q.f.unit], x.Groups(q.f.limit).Records()[i*size+g*acts.RecordBytes:])
		}
	}
}

// addUnit adds the products of a scale unit with the records of a token. Where d belongs
// to a superblock, it multiplies the sum of all groups.
func addUnit(y []float32, super bool, unit []genericGroup, recs []byte) {
	for r := range y {
		var whole float32
		for i := range unit {
			g, rec := &unit[i], (*[acts.RecordBytes]byte)(recs[i*acts.RecordBytes:])
			a := math.Float32frombits(binary.LittleEndian.Uint32(rec[32:]))
			lo, hi := dotHalves(&g.codes[r], rec)
			s := &g.scales[r]
			if g.halves {
				for h, sum := range [2]int32{lo, hi} {
					y[r] += s.d * float32(s.sc[h]) * float32(sum) * a
				}
				continue
			}
			sum := float32(lo*s.sc[0] + hi*s.sc[1])
			if super {
				whole += sum * a
				continue
			}
			least := s.least * math.Float32frombits(binary.LittleEndian.Uint32(rec[36:]))
			y[r] += (s.d*sum - least) * a
		}
		if super {
			y[r] += unit[0].scales[r].d * whole
		}
	}
}

// genericGroup is a group of a band, its codes' offset taken off.
type genericGroup struct {
	codes  [bands.Rows][acts.GroupCols]int8
	scales [bands.Rows]scales
	halves bool // sums meet their scales apart
}

func (g *genericGroup) read(w *matrix.Matrix, s, group int) {
	g.halves = formats[w.Packing].halves && !formats[w.Packing].super
	for i := range bands.Rows {
		r := rowOf(w, s*bands.Rows+i)
		r.codesOf(group, &g.codes[i])
		g.scales[i] = r.format.scales(r, group)
	}
}

// dotHalves returns the integer products of the two halves of a group.
func dotHalves(w *[acts.GroupCols]int8, rec *[acts.RecordBytes]byte) (lo, hi int32) {
	for k := 0; k < acts.GroupCols/2; k += 2 {
		lo += int32(w[k])*int32(int8(rec[k])) + int32(w[k+1])*int32(int8(rec[k+1]))
		hi += int32(w[k+16])*int32(int8(rec[k+16])) + int32(w[k+17])*int32(int8(rec[k+17]))
	}
	return lo, hi
}
