package attention

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
	"github.com/lutra-lm/lutra/kernels/_gen/vector"
)

// accumulate emits acc[i] += Σ p[i][j]·v[j], in the order of j: over the
// columns of eight values at a time, which lie together.
func accumulate(e cached, queries int) {
	name := fmt.Sprintf("accum%sx%d", e.name, queries)
	sig := "acc *float32, p *float32, ld int, v *byte, "
	if e.scale {
		sig += "scale *float32, "
	}
	emit.Text(name, "func("+sig+"at *int32, t int, d int, ahead *byte, aheadAt *int32)")
	emit.Contract(fmt.Sprintf("%s adds t ≥ 1 values [d], weighted by p[%d][t], to acc[%d][d], d a positive multiple of 8.", name, queries, queries),
		"Eight in a row begin with value at[j] of v. Meanwhile as many are asked for from vector aheadAt[j] of ahead on, unless it is nil.")
	a := &accumulation{
		cached: e, queries: queries, p: emit.NewRows("p", "ld", 2, queries),
		table: emit.Arg("at"), stride: GP64(), thrice: GP64(), t: AllocLocal(8), left: AllocLocal(8),
	}
	a.copy("t", a.t)
	Load(Param("d"), a.stride)
	if e.size == 2 {
		SHLQ(Imm(1), a.stride)
	}
	LEAQ(Mem{Base: a.stride, Index: a.stride, Scale: 2}, a.thrice)
	vectors := []int{8, 4, 4, 2}[queries-1]
	Label("group")
	a.begin()
	a.acc = emit.NewRows("acc", "d", 2, queries)
	a.copy("d", a.left)
	CMPQ(a.t, Imm(8))
	JL(LabelRef("rest"))
	a.fifth = GP64()
	LEAQ(Mem{Base: a.v, Index: a.stride, Scale: 4}, a.fifth)
	ADDQ(a.stride, a.fifth)
	Label("eight")
	CMPQ(a.left, Imm(uint64(8*vectors)))
	JL(LabelRef("rest"))
	a.eight(vectors)
	JNE(LabelRef("eight"))
	JMP(LabelRef("next"))
	Label("rest")
	CMPQ(a.left, Imm(uint64(8*vectors)))
	JL(LabelRef("single"))
	a.some(vectors)
	JNE(LabelRef("rest"))
	JMP(LabelRef("next"))
	Label("single")
	a.some(1)
	JNE(LabelRef("single"))
	Label("next")
	a.p.Advance(32)
	ADDQ(Imm(4), a.table)
	SUBQ(Imm(8), a.t)
	JG(LabelRef("group"))
	emit.Done()
}

// accumulation is an accumulate being emitted.
type accumulation struct {
	cached
	queries        int
	acc, p         emit.Rows
	table          reg.Register // the group's entry
	stride, thrice reg.Register // bytes of a value, of three
	v, fifth       reg.Register // the group's first and sixth value, from the columns at hand on
	soon           reg.Register // what is prefetched
	t, left        Mem          // values from the group on, columns from those at hand on: registers are few
}

// copy puts a parameter into memory.
func (a *accumulation) copy(name string, to Mem) { MOVQ(emit.Arg(name), to) }

// begin finds the group's values, and what to prefetch.
func (a *accumulation) begin() {
	a.v, a.soon = GP64(), GP64()
	MOVLQSX(Mem{Base: a.table}, a.v)
	IMULQ(a.stride, a.v)
	start := emit.Arg("v")
	ADDQ(start, a.v)
	MOVQ(a.v, a.soon)
	next := emit.Arg("aheadAt")
	TESTQ(next, next)
	JE(LabelRef("nothing"))
	Load(Param("at"), start)
	SUBQ(start, next)
	MOVLQSX(Mem{Base: next, Index: a.table, Scale: 1}, a.soon)
	IMULQ(a.stride, a.soon)
	Load(Param("ahead"), start)
	ADDQ(start, a.soon)
	Label("nothing")
}

// value returns the place of column disp of value i of the group.
func (a *accumulation) value(i, disp int) Mem {
	m := Mem{Base: a.v, Disp: disp}
	switch i {
	case 1, 2, 4:
		m.Index, m.Scale = a.stride, uint8(i)
	case 3:
		m.Index, m.Scale = a.thrice, 1
	case 5:
		m.Base = a.fifth
	case 6, 7:
		m.Base, m.Index, m.Scale = a.fifth, a.stride, uint8(i-5)
	}
	return m
}

// sums loads the sums of some vectors of columns.
func (a *accumulation) sums(vectors int) [][]reg.VecVirtual {
	sums := make([][]reg.VecVirtual, a.queries)
	for i := range sums {
		sums[i] = vector.BlankYMMs(vectors)
		for c, y := range sums[i] {
			VMOVUPS(a.acc.At(i, 32*c), y)
		}
	}
	return sums
}

// weights loads those of a value, at disp of the rows of p.
func (a *accumulation) weights(disp int, scale Mem) []reg.VecVirtual {
	w := vector.BlankYMMs(a.queries)
	for i := range w {
		VBROADCASTSS(a.p.At(i, disp), w[i])
	}
	if a.scale {
		s := YMM()
		VBROADCASTSS(scale, s)
		for i := range w {
			VMULPS(s, w[i], w[i])
		}
	}
	return w
}

// scales returns the register that points to the group's scales.
func (a *accumulation) scales() reg.Register {
	if !a.scale {
		return nil
	}
	scale, first := emit.Arg("scale"), GP64()
	MOVLQSX(Mem{Base: a.table}, first)
	LEAQ(Mem{Base: scale, Index: first, Scale: 4}, scale)
	return scale
}

// add adds the vectors of columns at m, weighted.
func (a *accumulation) add(sums [][]reg.VecVirtual, w []reg.VecVirtual, m func(disp int) Mem) {
	for c := range sums[0] {
		value := YMM()
		a.load(m(8*c*a.size), value)
		for i := range sums {
			VFMADD231PS(w[i], value, sums[i][c])
		}
	}
}

// move stores the sums and goes on to the columns that follow, setting the flags by how many there are.
func (a *accumulation) move(sums [][]reg.VecVirtual) {
	vectors := len(sums[0])
	for i := range sums {
		for c, y := range sums[i] {
			VMOVUPS(y, a.acc.At(i, 32*c))
		}
	}
	a.acc.Advance(32 * vectors)
	ADDQ(Imm(uint64(8*vectors*a.size)), a.v)
	SUBQ(Imm(uint64(8*vectors)), a.left)
}

// eight adds some vectors of columns of eight values, and prefetches as much.
func (a *accumulation) eight(vectors int) {
	sums, scale := a.sums(vectors), a.scales()
	for j := range 8 {
		if line := 8 * vectors * a.size * j; line%64 == 0 {
			PREFETCHT1(Mem{Base: a.soon, Disp: line})
		}
		w := a.weights(4*j, Mem{Base: scale, Disp: 4 * j})
		a.add(sums, w, func(disp int) Mem { return a.value(j, disp) })
	}
	ADDQ(U32(uint32(64*vectors*a.size)), a.soon)
	ADDQ(Imm(uint64(8*vectors*a.size)), a.fifth)
	a.move(sums)
}

// some adds some vectors of columns of the group's values, however many there are.
func (a *accumulation) some(vectors int) {
	label := fmt.Sprintf("value%d", vectors)
	sums, scale := a.sums(vectors), a.scales()
	n, v := GP64(), GP64()
	a.count(n)
	MOVQ(a.v, v)
	Label(label)
	w := a.weights(0, Mem{Base: scale})
	if a.scale {
		ADDQ(Imm(4), scale)
	}
	a.add(sums, w, func(disp int) Mem { return Mem{Base: v, Disp: disp} })
	a.p.Advance(4)
	ADDQ(a.stride, v)
	DECQ(n)
	JNE(LabelRef(label))
	Comment("back to the group's first value")
	a.count(n)
	SHLQ(Imm(2), n)
	for _, b := range a.p.Base {
		SUBQ(n, b)
	}
	a.move(sums)
}

// count sets n to the number of the group's values.
func (a *accumulation) count(n reg.Register) {
	MOVQ(U32(8), n)
	CMPQ(a.t, n)
	CMOVQLT(a.t, n)
}
