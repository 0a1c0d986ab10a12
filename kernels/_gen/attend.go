package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// cached is an element type of cached keys and values.
type cached struct {
	name  string
	size  int
	scale bool // a float32 scale a token
	load  func(m Mem, v reg.VecVirtual)
}

var cachedTypes = []cached{
	{"F16", 2, false, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
	{"Q8", 1, true, func(m Mem, v reg.VecVirtual) { VPMOVSXBD(m, v); VCVTDQ2PS(v, v) }},
}

// attend emits the parts of attention with AVX2: 1 to 4 query rows that
// share a KV head, head dimensions d that are multiples of 8.
func attend() {
	for _, e := range cachedTypes {
		for rows := 1; rows <= 4; rows++ {
			scores(e, rows)
			accumulate(e, rows)
		}
	}
	softmaxRows()
	interleave()
}

// scores emits dst[i][j] = q[i]·k[j]. Keys stand in groups of eight, a vector
// for each dimension, so that a lane is a key and a score one chain of fused
// additions in the order of the dimensions, whatever the tile.
func scores(e cached, queries int) {
	name := fmt.Sprintf("scores%sx%d", e.name, queries)
	sig := "dst *float32, ld int, q *float32, k *byte, "
	if e.scale {
		sig += "scale *float32, "
	}
	text(name, "func("+sig+"at *int32, groups int, d int, ahead *byte, aheadAt *int32)")
	contract(fmt.Sprintf("%s sets dst[%d][8·groups] to the products of queries and groups of keys [d][8], for positive groups and a positive multiple d of 4.", name, queries),
		"Group j begins with key at[j] of k. Meanwhile as much is asked for from vector aheadAt[j] of ahead on.")
	dst := newRows("dst", "ld", 2, queries)
	table, groups := param("at"), param("groups")
	Comment("pointers to ends: one index, from -4d to 0, goes with all of them")
	size := GP64()
	Load(Param("d"), size)
	SHLQ(Imm(2), size)
	q := []reg.Register{param("q")}
	ADDQ(size, q[0])
	for range queries - 1 {
		next := GP64()
		LEAQ(Mem{Base: q[len(q)-1], Index: size, Scale: 1}, next)
		q = append(q, next)
	}
	block := func(n int, label string) {
		k := param("k")
		LEAQ(Mem{Base: k, Index: size, Scale: uint8(2 * e.size)}, k)
		keys := make([]reg.Register, n)
		for j := range keys {
			keys[j] = GP64()
			MOVLQSX(Mem{Base: table, Disp: 4 * j}, keys[j])
			IMULQ(size, keys[j])
			SHRQ(Imm(uint64(3-e.size)), keys[j]) // size is that of a query
			ADDQ(k, keys[j])
		}
		acc := make([][]reg.VecVirtual, queries)
		for i := range acc {
			acc[i] = ymms(n)
		}
		at, soon := GP64(), GP64()
		Comment("what is asked for: the groups in one piece, as they are within a block")
		Load(Param("aheadAt"), soon)
		Load(Param("at"), at)
		SUBQ(at, soon)
		MOVLQSX(Mem{Base: soon, Index: table, Scale: 1}, soon)
		IMULQ(size, soon)
		SHRQ(Imm(uint64(3-e.size)), soon)
		Load(Param("ahead"), at)
		ADDQ(at, soon)
		MOVQ(size, at)
		NEGQ(at)
		Label(label)
		for step := range 4 {
			if line := 8 * n * e.size * step; line%64 == 0 {
				PREFETCHT1(Mem{Base: soon, Disp: line})
			}
			values := make([]reg.VecVirtual, n)
			for j := range values {
				values[j] = YMM()
				e.load(Mem{Base: keys[j], Disp: 8 * e.size * step, Index: at, Scale: uint8(2 * e.size)}, values[j])
			}
			for i := range acc {
				w := YMM()
				VBROADCASTSS(Mem{Base: q[i], Disp: 4 * step, Index: at, Scale: 1}, w)
				for j := range values {
					VFMADD231PS(values[j], w, acc[i][j])
				}
			}
		}
		ADDQ(U32(uint32(4*8*n*e.size)), soon)
		ADDQ(Imm(16), at)
		JNE(LabelRef(label))
		for j := range n {
			if e.scale {
				MOVLQSX(Mem{Base: table, Disp: 4 * j}, at)
				Load(Param("scale"), soon)
			}
			for i := range acc {
				if e.scale {
					VMULPS(Mem{Base: soon, Index: at, Scale: 4}, acc[i][j], acc[i][j])
				}
				VMOVUPS(acc[i][j], dst.at(i, 32*j))
			}
		}
		dst.advance(32 * n)
		ADDQ(U32(uint32(4*n)), table)
	}
	most := []int{4, 4, 2, 2}[queries-1]
	Label("loop")
	for n := most; n >= 1; n /= 2 {
		label := fmt.Sprintf("under%d", n)
		CMPQ(groups, Imm(uint64(n)))
		JL(LabelRef(label))
		block(n, fmt.Sprintf("columns%d", n))
		SUBQ(Imm(uint64(n)), groups)
		JNE(LabelRef("loop"))
		JMP(LabelRef("end"))
		Label(label)
	}
	Label("end")
	done()
}

// softmaxRows emits the step of an online softmax over one block of scores.
func softmaxRows() {
	e := expTables()
	least := constant("softmaxLeast", math.Inf(-1))
	text("softmaxRows", "func(soft *float32, scores *float32, ld int, counts *int32, acc *float32, d int, rows int)")
	contract("softmaxRows turns the first counts[i] scores of each row into weights exp(score - max), raises max and rescales sum",
		"(soft[2]) and acc[d], d a positive multiple of 8. Scores are read and written in whole vectors, weights are at least 2⁻¹²⁶.")
	start := func() (soft, scores, ld, counts, rows reg.Register) {
		soft, scores, ld, counts, rows = param("soft"), param("scores"), param("ld"), param("counts"), param("rows")
		SHLQ(Imm(2), ld)
		return soft, scores, ld, counts, rows
	}
	// Two passes, so that rows overlap: each by itself is a long chain.
	Comment("maxima, and what they do to the sum and acc so far")
	soft, scores, ld, counts, rows := start()
	acc := param("acc")
	Label("row")
	n, p, base, mask, v, top := GP64(), GP64(), GP64(), YMM(), YMM(), YMM()
	MOVLQSX(Mem{Base: counts}, n)
	CMPQ(n, Imm(0))
	JLE(LabelRef("next"))
	MOVQ(scores, p)
	VMOVUPS(least, top)
	SUBQ(Imm(8), n)
	JL(LabelRef("maxTail"))
	Label("max")
	VMOVUPS(Mem{Base: p}, v)
	VMAXPS(top, v, top) // the second operand, top, wins against NaN
	ADDQ(Imm(32), p)
	SUBQ(Imm(8), n)
	JGE(LabelRef("max"))
	Label("maxTail")
	ADDQ(Imm(8), n)
	JE(LabelRef("maxEnd"))
	Comment("lanes beyond n can be no maximum and weigh nothing")
	LEAQ(tail.Offset(32), base)
	NEGQ(n)
	VMOVUPS(Mem{Base: base, Index: n, Scale: 4}, mask)
	VMOVUPS(least, v)
	VBLENDVPS(mask, Mem{Base: p}, v, v)
	VMOVUPS(v, Mem{Base: p})
	VMAXPS(top, v, top)
	Label("maxEnd")
	old, m, t := XMM(), XMM(), XMM()
	VEXTRACTF128(Imm(1), top, m)
	VMAXPS(top.AsX(), m, m)
	VMOVHLPS(m, m, t)
	VMAXPS(t, m, m)
	VMOVSHDUP(m, t)
	VMAXSS(t, m, m)
	VMOVSS(Mem{Base: soft}, old)
	VMAXSS(old, m, m)
	VUCOMISS(m, old)
	JE(LabelRef("next"))
	VMOVSS(m, Mem{Base: soft})
	VSUBSS(m, old, old)
	c := YMM()
	VBROADCASTSS(old, c)
	e.emitNegative(c)
	VMULSS(Mem{Base: soft, Disp: 4}, c.AsX(), t)
	VMOVSS(t, Mem{Base: soft, Disp: 4})
	a, d := GP64(), GP64()
	MOVQ(acc, a)
	Load(Param("d"), d)
	Label("rescale")
	VMULPS(Mem{Base: a}, c, v)
	VMOVUPS(v, Mem{Base: a})
	ADDQ(Imm(32), a)
	SUBQ(Imm(8), d)
	JNE(LabelRef("rescale"))
	Label("next")
	ADDQ(Imm(4), counts)
	ADDQ(Imm(8), soft)
	ADDQ(ld, scores)
	Load(Param("d"), d)
	LEAQ(Mem{Base: acc, Index: d, Scale: 4}, acc)
	DECQ(rows)
	JNE(LabelRef("row"))

	Comment("weights")
	soft, scores, ld, counts, rows = start()
	e = e.inRegisters()
	Label("weighRow")
	MOVLQSX(Mem{Base: counts}, n)
	CMPQ(n, Imm(0))
	JLE(LabelRef("weighNext"))
	MOVQ(scores, p)
	shift, sum := YMM(), YMM()
	VBROADCASTSS(Mem{Base: soft}, shift)
	zeroY(sum)
	Label("weights")
	x := YMM()
	VMOVUPS(Mem{Base: p}, x)
	VSUBPS(shift, x, x)
	e.emitNegative(x)
	VMOVUPS(x, Mem{Base: p})
	VADDPS(x, sum, sum)
	ADDQ(Imm(32), p)
	SUBQ(Imm(8), n)
	JG(LabelRef("weights"))
	total := sumLanes(sum)
	VADDSS(Mem{Base: soft, Disp: 4}, total, total)
	VMOVSS(total, Mem{Base: soft, Disp: 4})
	Label("weighNext")
	ADDQ(Imm(4), counts)
	ADDQ(Imm(8), soft)
	ADDQ(ld, scores)
	DECQ(rows)
	JNE(LabelRef("weighRow"))
	done()
}

// interleave emits the store of a key: its elements stand eight places apart.
func interleave() {
	text("interleaveF16", "func(dst *uint16, x *float32, n int)")
	contract("interleaveF16 sets dst[8i] to x[i] as binary16, to nearest even, for a positive multiple n of 8.")
	dst, x, n := param("dst"), param("x"), param("n")
	v := YMM()
	Label("loop")
	VMOVUPS(Mem{Base: x}, v)
	VCVTPS2PH(Imm(0), v, v.AsX())
	for i := range 8 {
		VPEXTRW(Imm(uint64(i)), v.AsX(), Mem{Base: dst, Disp: 16 * i})
	}
	ADDQ(Imm(32), x)
	ADDQ(U32(128), dst)
	SUBQ(Imm(8), n)
	JNE(LabelRef("loop"))
	done()
}

// accumulate emits acc[i] += Σ p[i][j]·v[j], in the order of j: over the
// columns of eight values at a time, which lie together.
func accumulate(e cached, queries int) {
	name := fmt.Sprintf("accum%sx%d", e.name, queries)
	sig := "acc *float32, p *float32, ld int, v *byte, "
	if e.scale {
		sig += "scale *float32, "
	}
	text(name, "func("+sig+"at *int32, t int, d int, ahead *byte, aheadAt *int32)")
	contract(fmt.Sprintf("%s adds t ≥ 1 values [d], weighted by p[%d][t], to acc[%d][d], d a positive multiple of 8.", name, queries, queries),
		"Eight in a row begin with value at[j] of v. Meanwhile as many are asked for from vector aheadAt[j] of ahead on, unless it is nil.")
	a := &accumulation{
		cached: e, queries: queries, p: newRows("p", "ld", 2, queries),
		table: param("at"), stride: GP64(), thrice: GP64(), t: AllocLocal(8), left: AllocLocal(8),
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
	a.acc = newRows("acc", "d", 2, queries)
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
	a.p.advance(32)
	ADDQ(Imm(4), a.table)
	SUBQ(Imm(8), a.t)
	JG(LabelRef("group"))
	done()
}

// accumulation is an accumulate being emitted.
type accumulation struct {
	cached
	queries        int
	acc, p         rows
	table          reg.Register // the group's entry
	stride, thrice reg.Register // bytes of a value, of three
	v, fifth       reg.Register // the group's first and sixth value, from the columns at hand on
	soon           reg.Register // what is asked for
	t, left        Mem          // values from the group on, columns from those at hand on: registers are few
}

// copy puts a parameter into memory.
func (a *accumulation) copy(name string, to Mem) { MOVQ(param(name), to) }

// begin finds the group's values, and what to ask for.
func (a *accumulation) begin() {
	a.v, a.soon = GP64(), GP64()
	MOVLQSX(Mem{Base: a.table}, a.v)
	IMULQ(a.stride, a.v)
	start := param("v")
	ADDQ(start, a.v)
	MOVQ(a.v, a.soon)
	next := param("aheadAt")
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

// value is where column disp of value i of the group is.
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
		sums[i] = blankYMMs(vectors)
		for c, y := range sums[i] {
			VMOVUPS(a.acc.at(i, 32*c), y)
		}
	}
	return sums
}

// weights loads those of a value, at disp of the rows of p.
func (a *accumulation) weights(disp int, scale Mem) []reg.VecVirtual {
	w := blankYMMs(a.queries)
	for i := range w {
		VBROADCASTSS(a.p.at(i, disp), w[i])
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

// scales is where the group's are.
func (a *accumulation) scales() reg.Register {
	if !a.scale {
		return nil
	}
	scale, first := param("scale"), GP64()
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
			VMOVUPS(y, a.acc.at(i, 32*c))
		}
	}
	a.acc.advance(32 * vectors)
	ADDQ(Imm(uint64(8*vectors*a.size)), a.v)
	SUBQ(Imm(uint64(8*vectors)), a.left)
}

// eight adds some vectors of columns of eight values, and asks for as much.
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
	a.p.advance(4)
	ADDQ(a.stride, v)
	DECQ(n)
	JNE(LabelRef(label))
	Comment("back to the group's first value")
	a.count(n)
	SHLQ(Imm(2), n)
	for _, b := range a.p.base {
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
