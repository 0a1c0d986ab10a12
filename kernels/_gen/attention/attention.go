// Package attention emits the kernels of kernels/attention.
package attention

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
	"github.com/lutra-lm/lutra/kernels/_gen/vector"
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

// Kernels emits the parts of attention with AVX2: 1 to 4 query rows that
// share a KV head, head dimensions d that are multiples of 8. Kernels of 4 bits have AVX-512 too.
func Kernels() {
	for _, e := range cachedTypes {
		for rows := 1; rows <= 4; rows++ {
			scores(e, rows)
			accumulate(e, rows)
		}
	}
	nibbles()
	tiles()
	least := vector.FloatTable("softmaxLeast", math.Inf(-1))
	softmaxRows(false, least)
	softmaxRows(true, least)
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
	emit.Text(name, "func("+sig+"at *int32, groups int, d int, ahead *byte, aheadAt *int32)")
	emit.Contract(fmt.Sprintf("%s sets dst[%d][8·groups] to the products of queries and groups of keys [d][8], for positive groups and a positive multiple d of 4.", name, queries),
		"Group j begins with key at[j] of k. Meanwhile as much is asked for from vector aheadAt[j] of ahead on.")
	dst := emit.NewRows("dst", "ld", 2, queries)
	table, groups := emit.Arg("at"), emit.Arg("groups")
	Comment("pointers to ends: one index, from -4d to 0, goes with all of them")
	size := GP64()
	Load(Param("d"), size)
	SHLQ(Imm(2), size)
	q := []reg.Register{emit.Arg("q")}
	ADDQ(size, q[0])
	for range queries - 1 {
		next := GP64()
		LEAQ(Mem{Base: q[len(q)-1], Index: size, Scale: 1}, next)
		q = append(q, next)
	}
	block := func(n int, label string) {
		k := emit.Arg("k")
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
			acc[i] = vector.YMMs(n)
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
		for k := range 4 {
			if line := 8 * n * e.size * k; line%64 == 0 {
				PREFETCHT1(Mem{Base: soon, Disp: line})
			}
			values := make([]reg.VecVirtual, n)
			for j := range values {
				values[j] = YMM()
				e.load(Mem{Base: keys[j], Disp: 8 * e.size * k, Index: at, Scale: uint8(2 * e.size)}, values[j])
			}
			for i := range acc {
				w := YMM()
				VBROADCASTSS(Mem{Base: q[i], Disp: 4 * k, Index: at, Scale: 1}, w)
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
				VMOVUPS(acc[i][j], dst.At(i, 32*j))
			}
		}
		dst.Advance(32 * n)
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
	emit.Done()
}

// softmaxRows emits what one block of scores does to an online softmax. Both widths add up weights lane i%8 by lane, in
// the order of i.
func softmaxRows(wide bool, least Mem) {
	e := vector.ExpTables()
	name := "softmaxRows" + suffix(wide)
	emit.Text(name, "func(soft *float32, scores *float32, ld int, counts *int32, acc *float32, d int, rows int)")
	emit.Contract(name+" turns the first counts[i] scores of each row into weights exp(score - max), raises max and rescales sum",
		"(soft[2]) and acc[d], d a positive multiple of 8. Scores are read and written in whole vectors, weights are at least 2⁻¹²⁶.")
	start := func() (soft, scores, ld, counts, rows reg.Register) {
		soft, scores, ld, counts, rows = emit.Arg("soft"), emit.Arg("scores"), emit.Arg("ld"), emit.Arg("counts"), emit.Arg("rows")
		SHLQ(Imm(2), ld)
		return soft, scores, ld, counts, rows
	}
	// Two passes, so that rows overlap: each by itself is a long chain.
	Comment("maxima, and what they do to the sum and acc so far")
	soft, scores, ld, counts, rows := start()
	acc := emit.Arg("acc")
	Label("row")
	n, p, base, mask, v, top := GP64(), GP64(), GP64(), YMM(), YMM(), YMM()
	MOVLQSX(Mem{Base: counts}, n)
	CMPQ(n, Imm(0))
	JLE(LabelRef("next"))
	MOVQ(scores, p)
	VMOVUPS(least, top)
	if wide {
		more, z := ZMM(), ZMM()
		VBROADCASTSS(least, more)
		SUBQ(Imm(16), n)
		JL(LabelRef("maxWideEnd"))
		Label("maxWide")
		VMOVUPS(Mem{Base: p}, z)
		VMAXPS(more, z, more)
		ADDQ(Imm(64), p)
		SUBQ(Imm(16), n)
		JGE(LabelRef("maxWide"))
		VEXTRACTF64X4(Imm(1), more, top)
		VMAXPS(top, more.AsY(), top)
		Label("maxWideEnd")
		ADDQ(Imm(16), n)
	}
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
	LEAQ(vector.Tail.Offset(32), base)
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
	Comment("before any score there is nothing to rescale")
	VUCOMISS(least, old)
	JE(LabelRef("next"))
	VSUBSS(m, old, old)
	c := YMM()
	VBROADCASTSS(old, c)
	e.EmitNegative(c)
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
	weigh := func(x, shift reg.VecVirtual) {
		VSUBPS(shift, x, x)
		e.EmitNegative(x)
	}
	var low reg.Register
	if wide {
		e, low = e.Wide(), K()
		eight := GP32()
		MOVL(U32(0xff), eight)
		KMOVW(eight, low)
	} else {
		e = e.InRegisters()
	}
	Label("weighRow")
	MOVLQSX(Mem{Base: counts}, n)
	CMPQ(n, Imm(0))
	JLE(LabelRef("weighNext"))
	MOVQ(scores, p)
	sum := YMM()
	emit.ZeroY(sum)
	if wide {
		shift, x, high := ZMM(), ZMM(), YMM()
		VBROADCASTSS(Mem{Base: soft}, shift)
		Label("weights")
		CMPQ(n, Imm(8))
		JLE(LabelRef("half"))
		VMOVUPS(Mem{Base: p}, x)
		weigh(x, shift)
		VMOVUPS(x, Mem{Base: p})
		VEXTRACTF64X4(Imm(1), x, high)
		VADDPS(x.AsY(), sum, sum)
		VADDPS(high, sum, sum)
		ADDQ(Imm(64), p)
		SUBQ(Imm(16), n)
		JG(LabelRef("weights"))
		JMP(LabelRef("weighed"))
		Label("half")
		VMOVUPS_Z(Mem{Base: p}, low, x)
		weigh(x, shift)
		VMOVUPS(x.AsY(), Mem{Base: p})
		VADDPS(x.AsY(), sum, sum)
		Label("weighed")
	} else {
		shift, x := YMM(), YMM()
		VBROADCASTSS(Mem{Base: soft}, shift)
		Label("weights")
		VMOVUPS(Mem{Base: p}, x)
		weigh(x, shift)
		VMOVUPS(x, Mem{Base: p})
		VADDPS(x, sum, sum)
		ADDQ(Imm(32), p)
		SUBQ(Imm(8), n)
		JG(LabelRef("weights"))
	}
	total := vector.SumLanes(sum)
	VADDSS(Mem{Base: soft, Disp: 4}, total, total)
	VMOVSS(total, Mem{Base: soft, Disp: 4})
	Label("weighNext")
	ADDQ(Imm(4), counts)
	ADDQ(Imm(8), soft)
	ADDQ(ld, scores)
	DECQ(rows)
	JNE(LabelRef("weighRow"))
	emit.Done()
}

// interleave emits the store of a key: its elements stand eight places apart.
func interleave() {
	emit.Text("interleaveF16", "func(dst *uint16, x *float32, n int)")
	emit.Contract("interleaveF16 sets dst[8i] to x[i] as binary16, to nearest even, for a positive multiple n of 8.")
	dst, x, n := emit.Arg("dst"), emit.Arg("x"), emit.Arg("n")
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
	emit.Done()
}
