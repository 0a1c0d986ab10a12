package attention

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// tileRows is the number of query rows whose sums stand in registers together.
const tileRows = 6

// tiles emits what many queries do with keys and values: these become float32 once, and products read them from the
// cache of the core. A score and a sum are the same chain of fused additions as in scores and accumulate.
func tiles() {
	for _, e := range cachedTypes {
		widen(e)
	}
	scaleColumns()
	for vectors := 1; vectors <= 4; vectors++ {
		products(true, vectors)
	}
	for vectors := 1; vectors <= 2; vectors++ {
		products(false, vectors)
	}
}

// widen emits dst[i][j] = src[i][j] as float32, eight columns after the other, of which keys have no more.
func widen(e cached) {
	name := "widen" + e.name
	emit.Text(name, "func(dst *float32, ldd int, src *byte, lds int, rows int, cols int)")
	emit.Contract(name+" sets dst[rows][cols] to src[rows][cols], for positive rows and a positive multiple cols of 8.",
		"Rows of src are lds elements apart.")
	shift := uint64(e.size - 1)
	dst, src := emit.NewRows("dst", "ldd", 2, 8), emit.NewRows("src", "lds", shift, 8)
	left, y := GP64(), YMM()
	move := func(row int) {
		e.load(src.At(row, 0), y)
		VMOVUPS(y, dst.At(row, 0))
	}
	Label("column")
	Load(Param("rows"), left)
	Label("eight")
	CMPQ(left, Imm(8))
	JL(LabelRef("rest"))
	for row := range 8 {
		move(row)
	}
	dst.Skip(8)
	src.Skip(8)
	SUBQ(Imm(8), left)
	JMP(LabelRef("eight"))
	Label("rest")
	TESTQ(left, left)
	JE(LabelRef("next"))
	move(0)
	dst.Skip(1)
	src.Skip(1)
	DECQ(left)
	JMP(LabelRef("rest"))
	Label("next")
	Comment("back to the first row, eight columns on")
	for _, r := range []struct {
		rows  emit.Rows
		ld    string
		shift uint64
		bytes int
	}{{dst, "ldd", 2, 32}, {src, "lds", shift, 8 * e.size}} {
		back := emit.Arg(r.ld)
		Load(Param("rows"), left)
		IMULQ(left, back)
		if r.shift > 0 {
			SHLQ(Imm(r.shift), back)
		}
		r.rows.Retreat(back)
		r.rows.Advance(r.bytes)
	}
	cols := emit.Arg("cols")
	SUBQ(Imm(8), cols)
	Store(cols, Param("cols"))
	JG(LabelRef("column"))
	emit.Done()
}

// scaleColumns emits dst[i][j] = x[i][j]·scale[j], eight columns after the other.
func scaleColumns() {
	emit.Text("scaleColumns", "func(dst *float32, ldd int, x *float32, ldx int, scale *float32, rows int, cols int)")
	emit.Contract("scaleColumns sets dst[rows][cols] to x[rows][cols], column j times scale[j], for positive rows and a positive multiple cols of 8.")
	dst, x, scale := emit.Arg("dst"), emit.Arg("x"), emit.Arg("scale")
	ldd, ldx, cols := emit.Arg("ldd"), emit.Arg("ldx"), emit.Arg("cols")
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), ldx)
	to, from, left, factor, y := GP64(), GP64(), GP64(), YMM(), YMM()
	Label("column")
	MOVQ(dst, to)
	MOVQ(x, from)
	Load(Param("rows"), left)
	VMOVUPS(Mem{Base: scale}, factor)
	Label("row")
	VMULPS(Mem{Base: from}, factor, y)
	VMOVUPS(y, Mem{Base: to})
	ADDQ(ldd, to)
	ADDQ(ldx, from)
	DECQ(left)
	JNE(LabelRef("row"))
	ADDQ(Imm(32), dst)
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), scale)
	SUBQ(Imm(8), cols)
	JG(LabelRef("column"))
	emit.Done()
}

// product is a products being emitted.
type product struct {
	wide    bool
	vectors int
	dst, a  emit.Rows
	b, k    reg.Register
	last    reg.Register // mask of the last vector's columns
	columns []reg.VecVirtual
	sums    [tileRows][]reg.VecVirtual
}

// products emits dst[i] (+)= Σ a[i][k]·b[k], in the order of k: sums of six rows and a panel of columns stay in registers.
func products(wide bool, vectors int) {
	name := fmt.Sprintf("products%sx%d", suffix(wide), vectors)
	sig, which := "", ""
	p := product{wide: wide, vectors: vectors}
	if wide {
		sig, which = ", last uint32", " Of the last vector it writes the lanes of mask last."
	}
	emit.Text(name, "func(dst *float32, ldd int, a *float32, lda int, b *float32, m int, k int, add bool, scale *float32"+sig+")")
	emit.Contract(fmt.Sprintf("%s sets dst[m] to the products of rows a[m][k] and a panel b[k] of %d columns, times scale unless it is nil, or adds them.", name, vectors*p.lanes()),
		"m and k are positive."+which)
	if wide {
		last := GP32()
		Load(Param("last"), last)
		p.last = K()
		KMOVW(last, p.last)
	}
	p.dst, p.a = emit.NewRows("dst", "ldd", 2, tileRows), emit.NewRows("a", "lda", 2, tileRows)
	p.b, p.k = GP64(), GP64()
	for range vectors {
		p.columns = append(p.columns, p.vector())
		for i := range p.sums {
			p.sums[i] = append(p.sums[i], p.vector())
		}
	}
	m := emit.Arg("m")
	Label("rows")
	CMPQ(m, Imm(tileRows))
	JL(LabelRef("rest"))
	p.tile(tileRows)
	back := emit.Arg("k")
	SHLQ(Imm(2), back)
	p.a.Retreat(back)
	p.a.Skip(tileRows)
	p.dst.Skip(tileRows)
	SUBQ(Imm(tileRows), m)
	JMP(LabelRef("rows"))
	Label("rest")
	for rows := tileRows - 1; rows > 0; rows-- {
		CMPQ(m, Imm(uint64(rows)))
		JNE(LabelRef(fmt.Sprintf("not%d", rows)))
		p.tile(rows)
		JMP(LabelRef("end"))
		Label(fmt.Sprintf("not%d", rows))
	}
	Label("end")
	emit.Done()
}

// lanes returns the number of floats in a vector.
func (p *product) lanes() int {
	if p.wide {
		return 16
	}
	return 8
}

func (p *product) vector() reg.VecVirtual {
	if p.wide {
		return ZMM()
	}
	return YMM()
}

// each calls f for all sums of some rows, with their places in dst.
func (p *product) each(acc [][]reg.VecVirtual, f func(sum reg.VecVirtual, m Mem, vector int)) {
	for i := range acc {
		for c, sum := range acc[i] {
			f(sum, p.dst.At(i, 4*p.lanes()*c), c)
		}
	}
}

// partly tells whether a vector may have fewer columns than lanes.
func (p *product) partly(vector int) bool { return p.wide && vector == p.vectors-1 }

// tile emits the products of some rows.
func (p *product) tile(rows int) {
	label := func(name string) string { return fmt.Sprintf("%s%d", name, rows) }
	acc := p.sums[:rows]
	Load(Param("b"), p.b)
	Load(Param("k"), p.k)
	p.each(acc, func(sum reg.VecVirtual, _ Mem, _ int) { emit.Zero(sum) })
	add := GP8()
	Load(Param("add"), add)
	TESTB(add, add)
	JE(LabelRef(label("sum")))
	p.each(acc, func(sum reg.VecVirtual, m Mem, c int) {
		if p.partly(c) {
			VMOVUPS_Z(m, p.last, sum)
			return
		}
		VMOVUPS(m, sum)
	})
	Label(label("sum"))
	for c, v := range p.columns {
		VMOVUPS(Mem{Base: p.b, Disp: 4 * p.lanes() * c}, v)
	}
	for i := range acc {
		w := p.vector()
		VBROADCASTSS(p.a.At(i, 0), w)
		for c, v := range p.columns {
			VFMADD231PS(v, w, acc[i][c])
		}
	}
	ADDQ(U32(uint32(4*p.lanes()*p.vectors)), p.b)
	p.a.Advance(4)
	DECQ(p.k)
	JNE(LabelRef(label("sum")))
	scale := emit.Arg("scale")
	TESTQ(scale, scale)
	JE(LabelRef(label("store")))
	p.each(acc, func(sum reg.VecVirtual, _ Mem, c int) {
		VMULPS(Mem{Base: scale, Disp: 4 * p.lanes() * c}, sum, sum)
	})
	Label(label("store"))
	p.each(acc, func(sum reg.VecVirtual, m Mem, c int) {
		if p.partly(c) {
			VMOVUPS(sum, p.last, m)
			return
		}
		VMOVUPS(sum, m)
	})
}
