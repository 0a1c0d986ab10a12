// Package dense emits the kernels of kernels/dense.
package dense

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// BandRows is the number of rows side by side in a band of the layout.
const BandRows = 16

// isa is a vector width to generate for.
type isa struct {
	name      string
	floats    int   // float32 values of a register
	maxTokens int   // widest tile: what the registers hold, or beyond which rows of x crowd each other out of L1
	more      []int // other tokens of tiles
	vec       func() reg.VecVirtual
}

var isas = []isa{
	{"AVX2", 8, 6, nil, YMM},
	{"AVX512", 16, 8, []int{5}, ZMM},
}

// weight is a storage type: its size and how a register of it becomes float32.
type weight struct {
	name string
	size int
	load func(m Mem, v reg.VecVirtual)
}

var weights = []weight{
	{"F32", 4, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }},
	{"F16", 2, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
	{"BF16", 2, func(m Mem, v reg.VecVirtual) { VPMOVZXWD(m, v); VPSLLD(Imm(16), v, v) }},
}

// The tables of routines.
var (
	streams = &emit.Routines{Name: "streams", Doc: "multiply four bands with one token: enough independent sums to keep up with memory.", Type: "tileFunc", By: []string{"cpu.ISA", "matrix.Packing"}}
	tiles   = &emit.Routines{Name: "tiles", Doc: "multiply one band.", Type: "tileFunc", By: []string{"cpu.ISA", "matrix.Packing"}, Leaf: emit.Tiles}
)

// RoutineTables lists the tables.
var RoutineTables = []*emit.Routines{streams, tiles}

// Kernels emits products with float weights.
func Kernels() {
	for _, i := range isas {
		for _, w := range weights {
			denseTile(i, w, 4, 1)
			for _, t := range emit.Widths(1, i.maxTokens, i.more...) {
				denseTile(i, w, 1, t)
			}
		}
	}
}

// denseTile emits the product of some bands with some tokens over k columns.
// All accumulators live in registers; a column costs one load of each band
// and one broadcast a token. Nothing is prefetched: four bands are four streams,
// which the hardware follows at the full rate of memory, and did so slower with
// prefetches in its way.
func denseTile(i isa, w weight, bands, tokens int) {
	name := fmt.Sprintf("dense%s%sx%dx%d", w.name, i.name, bands, tokens)
	emit.Text(name, "func(y *float32, ld int, w *byte, stride int, x *float32, ldx int, k int)")
	if bands > 1 {
		streams.Add(tokens, "cpu."+i.name, "matrix."+w.name)
	} else {
		tiles.Add(tokens, "cpu."+i.name, "matrix."+w.name)
	}
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of k ≥ 1 columns", name, tokens, bands*BandRows),
		fmt.Sprintf("of %d band(s) of %s, stride bytes apart, with rows of x that are ldx values apart.", bands, w.name))
	wp := Load(Param("w"), GP64())
	stride := GP64()
	stride3 := GP64()
	if bands > 1 {
		Load(Param("stride"), stride)
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	}
	k := Load(Param("k"), GP64())
	xs := emit.NewRows("x", "ldx", 2, tokens)

	vectors := BandRows / i.floats // registers of a band
	acc := make([][]reg.VecVirtual, tokens)
	for t := range acc {
		acc[t] = make([]reg.VecVirtual, bands*vectors)
		for v := range acc[t] {
			acc[t][v] = i.vec()
			emit.Zero(acc[t][v])
		}
	}
	band := func(b, disp int) Mem {
		switch b {
		case 0:
			return Mem{Base: wp, Disp: disp}
		case 3:
			return Mem{Base: wp, Index: stride3, Scale: 1, Disp: disp}
		}
		return Mem{Base: wp, Index: stride, Scale: uint8(b), Disp: disp}
	}
	columns := func(n int) {
		for c := range n {
			if tokens == 1 {
				a := i.vec()
				VBROADCASTSS(xs.At(0, 4*c), a)
				for v := range acc[0] {
					f := i.vec()
					w.load(band(v/vectors, c*BandRows*w.size+v%vectors*i.floats*w.size), f)
					VFMADD231PS(a, f, acc[0][v])
				}
				continue
			}
			f := make([]reg.VecVirtual, vectors)
			for v := range f {
				f[v] = i.vec()
				w.load(Mem{Base: wp, Disp: c*BandRows*w.size + v*i.floats*w.size}, f[v])
			}
			for t := range tokens {
				if vectors == 1 {
					VFMADD231PS_BCST(xs.At(t, 4*c), f[0], acc[t][0])
					continue
				}
				a := i.vec()
				VBROADCASTSS(xs.At(t, 4*c), a)
				for v := range f {
					VFMADD231PS(a, f[v], acc[t][v])
				}
			}
		}
		ADDQ(U32(uint32(n*BandRows*w.size)), wp)
		xs.Advance(4 * n)
	}
	const unroll = 4
	Comment("four columns a turn, then one")
	SUBQ(Imm(unroll), k)
	JLT(LabelRef("rest"))
	Label("loop")
	columns(unroll)
	SUBQ(Imm(unroll), k)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(unroll), k)
	JE(LabelRef("done"))
	Label("one")
	columns(1)
	DECQ(k)
	JNE(LabelRef("one"))
	Label("done")
	Comment("y += sums")
	ys := emit.NewRows("y", "ld", 2, tokens)
	for t := range acc {
		for v, a := range acc[t] {
			VADDPS(ys.At(t, v*i.floats*4), a, a)
			VMOVUPS(a, ys.At(t, v*i.floats*4))
		}
	}
	emit.Done()
}
