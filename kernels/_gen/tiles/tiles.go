// Package tiles emits the kernels of hexagon/hmx/tiles.
package tiles

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

const (
	side  = 32       // rows and columns of a tile
	row   = side * 4 // bytes of a row of float32
	bytes = side * row
)

// Kernels emits products of tiles and conversions to float32.
func Kernels() {
	multiply("multiplyAVX2", YMM, 8, 2, side)
	multiply("multiplyHalfAVX2", YMM, 8, 4, side/2)
	multiply("multiplyAVX512", ZMM, 16, 8, side)
	multiply("multiplyHalfAVX512", ZMM, 16, 16, side/2)
	widen()
	widenPairs()
	narrowPairs()
	for _, bits := range []int{1, 2, 4} {
		unpack(bits)
	}
	scaleValues()
	superGroups()
	lookUps()
	addScaled()
}

// multiply emits the products of some rows with the first columns. Sums stay in
// registers through all tiles; a k costs a broadcast a row and one load of the
// columns for all rows.
func multiply(name string, vec func() reg.VecVirtual, floats, rows, columns int) {
	emit.Text(name, "func(acc, act, wgt *float32, tiles int)")
	emit.Contract(fmt.Sprintf("%s adds to the first %d columns of acc[%d][32] the products of tiles ≥ 1 tiles:", name, columns, rows),
		"as many rows of act, whose pairs stand interleaved, and wgt[32·tiles][32].")
	acc, act, wgt := emit.Arg("acc"), emit.Arg("act"), emit.Arg("wgt")
	tiles := Load(Param("tiles"), GP64())
	sums := make([][]reg.VecVirtual, rows)
	for r := range sums {
		for v := range columns / floats {
			s := vec()
			VMOVUPS(Mem{Base: acc, Disp: r*row + v*floats*4}, s)
			sums[r] = append(sums[r], s)
		}
	}
	k := GP64()
	Label("tile")
	const unroll = 4
	MOVQ(U32(side/unroll), k)
	Label("k")
	for i := range unroll {
		w := make([]reg.VecVirtual, columns/floats)
		for v := range w {
			w[v] = vec()
			VMOVUPS(Mem{Base: wgt, Disp: i*row + v*floats*4}, w[v])
		}
		for r := range rows {
			from := Mem{Base: act, Disp: r/2*2*row + i*8 + r%2*4}
			if len(w) == 1 {
				VFMADD231PS_BCST(from, w[0], sums[r][0])
				continue
			}
			a := vec()
			VBROADCASTSS(from, a)
			for v := range w {
				VFMADD231PS(a, w[v], sums[r][v])
			}
		}
	}
	ADDQ(Imm(unroll*8), act)
	ADDQ(U32(unroll*row), wgt)
	DECQ(k)
	JNE(LabelRef("k"))
	ADDQ(U32(bytes-side*8), act)
	DECQ(tiles)
	JNE(LabelRef("tile"))
	for r := range sums {
		for v, s := range sums[r] {
			VMOVUPS(s, Mem{Base: acc, Disp: r*row + v*floats*4})
		}
	}
	emit.Done()
}

// widen emits the conversion of fp16 to float32.
func widen() {
	emit.Text("widenAVX2", "func(dst *float32, src *uint16, n int)")
	emit.Contract("widenAVX2 converts n fp16, a positive multiple of 64.")
	dst, src := emit.Arg("dst"), emit.Arg("src")
	n := Load(Param("n"), GP64())
	Label("loop")
	for i := range 8 {
		v := YMM()
		VCVTPH2PS(Mem{Base: src, Disp: 16 * i}, v)
		VMOVUPS(v, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(U32(128), src)
	ADDQ(U32(256), dst)
	SUBQ(Imm(64), n)
	JNE(LabelRef("loop"))
	emit.Done()
}

// widenPairs emits the conversion that also takes rows apart.
func widenPairs() {
	emit.Text("widenPairsAVX2", "func(dst *float32, src *uint16, pairs int)")
	emit.Contract("widenPairsAVX2 converts pairs ≥ 1 of rows of 32 fp16 that stand interleaved",
		"to rows that stand one after the other.")
	dst, src := emit.Arg("dst"), emit.Arg("src")
	n := Load(Param("pairs"), GP64())
	Label("loop")
	for i := range 4 {
		lo, hi, even, odd := YMM(), YMM(), YMM(), YMM()
		VCVTPH2PS(Mem{Base: src, Disp: 32 * i}, lo)    // columns 0 to 3, both rows
		VCVTPH2PS(Mem{Base: src, Disp: 32*i + 16}, hi) // 4 to 7
		VSHUFPS(U8(0x88), hi, lo, even)                // columns 0 1 4 5 | 2 3 6 7
		VSHUFPS(U8(0xdd), hi, lo, odd)
		VPERMPD(U8(0xd8), even, even)
		VPERMPD(U8(0xd8), odd, odd)
		VMOVUPS(even, Mem{Base: dst, Disp: 32 * i})
		VMOVUPS(odd, Mem{Base: dst, Disp: row + 32*i})
	}
	ADDQ(U32(128), src)
	ADDQ(U32(2*row), dst)
	DECQ(n)
	JNE(LabelRef("loop"))
	emit.Done()
}
