package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// AVX2 vector lookup (Vec-LUT): a table of 3^g rows of 16 tokens each as int16,
// one add of a table row for g weights × 16 tokens. Sums of 256 columns of
// |a| <= 127 fit int16; then they are added into int32.

const rowBytes = 32 // 16 tokens of int16: one register

// lutTables lays out the tables of 4·blocks groups in memory. Those of base 3
// follow one another. Those of bit pairs have 81 rows at 171 places: two tables
// share the lines of 64 bytes, row by row, so that no line is half empty, and
// pairs are pairDistance apart: of the distances that keep pairs apart, those of
// 13 or 51 sets more than a multiple of 64 spread the rows of four pairs over
// the 64 sets of an L1 most evenly (at most 9 lines, in 4 sets; 6 or less in
// the others).
type lutTables struct{ base, rowBits int }

const pairDistance = (3*64 + 13) * 2 * rowBytes

func tablesOf(g int) lutTables {
	if g == 4 {
		return lutTables{4, 6}
	}
	return lutTables{3, 5}
}

// place returns what trit j counts in rows.
func (t lutTables) place(j int) int {
	n := 1
	for range j {
		n *= t.base
	}
	return n
}

// table returns the distance of table k from the first in bytes.
func (t lutTables) table(k, g int) int {
	if g == 4 {
		return k/2*pairDistance + k%2*rowBytes
	}
	return k * emit.Pow3(g) * rowBytes
}

func LUT() {
	for _, g := range []int{4, 5} {
		lutBuild(g)
	}
	for _, stage := range []lutStage{lutSet, lutAdd, lutBegin, lutWiden} {
		lutLookup(4, 2, stage)
		lutLookup(4, 1, stage)
		lutLookup(5, 1, stage)
	}
	lutFinish()
	lutMerge()
}

func lutBuild(g int) {
	emit.Text(fmt.Sprintf("lutBuild%dAVX2", g), "func(tables *int16, act *int8, groups int, w *byte)")
	t := tablesOf(g)
	emit.Contract(fmt.Sprintf("lutBuild%dAVX2 writes groups tables from act[groups][%d][16]: row Σ (w+1)·%d^j holds Σ w·act[j].", g, g, t.base),
		"groups is positive. Meanwhile the lines at w, one a table, come into the cache.")
	tables, act, groups, w := emit.Arg("tables"), emit.Arg("act"), emit.Arg("groups"), emit.Arg("w")
	var next, both reg.GPVirtual
	if g == 4 {
		next, both = GP64(), GP64()
		Comment("To the table's twin and on to the next pair in turn")
		MOVQ(U32(rowBytes), next)
		MOVQ(U32(pairDistance), both)
	}
	Label("loop")
	PREFETCHT0(Mem{Base: w})
	a := make([]reg.VecVirtual, g)
	for j := range a {
		a[j] = YMM()
		VPMOVSXBW(Mem{Base: act, Disp: 16 * j}, a[j])
	}
	Comment("Walk the ternary tree depth first: each row is its parent's -a, +0 or +a")
	root := YMM()
	emit.ZeroY(root)
	var walk func(j, row int, sum reg.VecVirtual)
	walk = func(j, row int, sum reg.VecVirtual) {
		if j < 0 {
			VMOVDQU(sum, Mem{Base: tables, Disp: row << t.rowBits})
			return
		}
		lo, hi := YMM(), YMM()
		VPSUBW(a[j], sum, lo)
		walk(j-1, row, lo)
		walk(j-1, row+t.place(j), sum)
		VPADDW(a[j], sum, hi)
		walk(j-1, row+2*t.place(j), hi)
	}
	walk(g-1, 0, root)
	if g == 4 {
		ADDQ(next, tables)
		NEGQ(next)
		ADDQ(both, next)
	} else {
		ADDQ(U32(uint32(t.table(1, g))), tables)
	}
	ADDQ(Imm(uint64(16*g)), act)
	ADDQ(Imm(64), w)
	DECQ(groups)
	JNE(LabelRef("loop"))
	emit.Done()
}

// lutStage says where a pass over the rows leaves its sums.
type lutStage struct {
	name, does string
	wide       bool // in acc32, with what acc16 holds
	fresh      bool // over what was there
}

var (
	lutSet   = lutStage{"Set", "sets acc16 to", false, true}
	lutAdd   = lutStage{"Add", "adds to acc16", false, false}
	lutBegin = lutStage{"Begin", "sets acc32 to what acc16 holds and", true, true}
	lutWiden = lutStage{"Widen", "adds to acc32 what acc16 holds and", true, false}
)

// lutLookup adds up the table rows that 4·blocks bytes of each weight row name.
func lutLookup(g, blocks int, stage lutStage) {
	name := fmt.Sprintf("lut%s%dx%dAVX2", stage.name, g, blocks)
	emit.Text(name, "func(acc32 *int32, acc16, tables *int16, w *byte, strips, strip int)")
	t := tablesOf(g)
	emit.Contract(fmt.Sprintf("%s %s what %d blocks contribute by %d tables of lutBuild%dAVX2: acc[strips·64][16].", name, stage.does, blocks, 4*blocks, g),
		"strip is the distance of strips in bytes. strips is positive.")
	acc, tables, w, strips, strip := emit.Arg("acc16"), emit.Arg("tables"), emit.Arg("w"), emit.Arg("strips"), emit.Arg("strip")
	var wide reg.Register
	if stage.wide {
		wide = emit.Arg("acc32")
	}
	next, quads := GP64(), GP64()
	Label("strip")
	Comment("Ask for the next strip's blocks while this one is taken")
	LEAQ(Mem{Base: w, Index: strip, Scale: 1}, next)
	for line := range 4 * blocks {
		PREFETCHT0(Mem{Base: next, Disp: 64 * line})
	}
	MOVQ(U32(stripRows/4), quads)
	q := make([]reg.GPVirtual, blocks)
	Label("loop")
	for r := range 4 {
		if r%2 == 0 {
			Comment("The bytes of two rows: each names a table row to add")
			for s := range q {
				q[s] = GP64()
				MOVQ(Mem{Base: w, Disp: stripBytes*s + 4*r}, q[s])
			}
		}
		z := YMM()
		for k := range 4 * blocks {
			// Rotating puts a byte, times the size of a row, where the mask leaves it.
			o := GP64()
			RORXQ(Imm(uint64((8*(r%2*4+k%4)-t.rowBits+64)%64)), q[k/4], o)
			ANDL(U32(0xff<<t.rowBits), o.As32())
			m := Mem{Base: tables, Index: o, Scale: 1, Disp: t.table(k, g)}
			if k == 0 {
				VMOVDQU(m, z)
			} else {
				VPADDW(m, z, z)
			}
		}
		m := Mem{Base: acc, Disp: rowBytes * r}
		if stage.wide || !stage.fresh {
			VPADDW(m, z, z)
		}
		if !stage.wide {
			VMOVDQU(z, m)
			continue
		}
		Comment("Widen the sums of 16 tokens")
		high := XMM()
		VEXTRACTI128(Imm(1), z, high)
		for h, x := range []Op{z.AsX(), high} {
			t, m := YMM(), Mem{Base: wide, Disp: 64*r + 32*h}
			VPMOVSXWD(x, t)
			if !stage.fresh {
				VPADDD(m, t, t)
			}
			VMOVDQU(t, m)
		}
	}
	ADDQ(Imm(16), w)
	ADDQ(U32(4*rowBytes), acc)
	if stage.wide {
		ADDQ(U32(4*64), wide)
	}
	DECQ(quads)
	JNE(LabelRef("loop"))
	MOVQ(next, w)
	DECQ(strips)
	JNE(LabelRef("strip"))
	emit.Done()
}

// lutFinish transposes the sums of a strip, 8 rows × 4 tokens at a time. Rows of y
// can be so far apart that they compete for a few sets of the caches: a line of it
// is written at once, and prefetched a strip ahead.
func lutFinish() {
	emit.Text("lutFinishAVX2", "func(y *float32, ldy int, acc *int32, tokens, rows *float32)")
	emit.Contract("lutFinishAVX2 sets y[16][64] = float32(acc[64][16])·(tokens[16]·rows[64]); rows of y are ldy floats apart.")
	y, ldy, acc, tokens, rows := emit.Arg("y"), emit.Arg("ldy"), emit.Arg("acc"), emit.Arg("tokens"), emit.Arg("rows")
	SHLQ(Imm(2), ldy)
	ldy3, group, out := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: ldy, Index: ldy, Scale: 2}, ldy3)
	MOVQ(U32(4), group)
	Label("loop")
	Comment("16 rows: exchange rows and tokens, scale, store token by token")
	MOVQ(y, out)
	for quad := range 4 {
		lines := [4]Mem{{Base: out}, {Base: out, Index: ldy, Scale: 1}, {Base: out, Index: ldy, Scale: 2}, {Base: out, Index: ldy3, Scale: 1}}
		for half := range 2 {
			s := YMM()
			VMOVUPS(Mem{Base: rows, Disp: 32 * half}, s)
			v := make([]reg.VecVirtual, 4)
			for i := range v {
				v[i] = YMM()
				row := 8*half + i
				VBROADCASTI128(Mem{Base: acc, Disp: 64*row + 16*quad}, v[i])
				VINSERTI128(Imm(1), Mem{Base: acc, Disp: 64*(row+4) + 16*quad}, v[i], v[i])
			}
			for i, o := range acts.Transpose4(v) {
				f := YMM()
				VBROADCASTSS(Mem{Base: tokens, Disp: 4 * (4*quad + i)}, f)
				VMULPS(s, f, f)
				VCVTDQ2PS(o, o)
				VMULPS(f, o, o)
				VMOVUPS(o, lines[i].Offset(32*half))
			}
		}
		for _, m := range lines {
			PREFETCHT0(m.Offset(4 * stripRows))
		}
		if quad < 3 {
			LEAQ(Mem{Base: out, Index: ldy, Scale: 4}, out)
		}
	}
	ADDQ(U32(16*64), acc)
	ADDQ(Imm(64), rows)
	ADDQ(Imm(64), y)
	DECQ(group)
	JNE(LabelRef("loop"))
	emit.Done()
}

// lutMerge adds the sums of a strip that another worker has formed.
func lutMerge() {
	emit.Text("lutMergeAVX2", "func(acc, other *int32)")
	emit.Contract("lutMergeAVX2 adds other[64][16] to acc[64][16].")
	acc, other, n := emit.Arg("acc"), emit.Arg("other"), GP64()
	MOVQ(U32(stripRows/4), n)
	Label("loop")
	for i := range 8 {
		v := LoadY(Mem{Base: other, Disp: 32 * i})
		VPADDD(Mem{Base: acc, Disp: 32 * i}, v, v)
		VMOVDQU(v, Mem{Base: acc, Disp: 32 * i})
	}
	ADDQ(U32(256), other)
	ADDQ(U32(256), acc)
	DECQ(n)
	JNE(LabelRef("loop"))
	emit.Done()
}
