package attention

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Sizes of what kernels/attention.Queries and its codes of 4 bits hold.
const (
	scaled      = 32         // elements that share a scale
	queryRecord = scaled + 8 // codes, scale, and what they sum to
)

// nibbles emits the kernels of keys and values of 4 bits. Unpacked once, they serve any number of query rows, so that
// there is one routine of each kind and instruction set.
func nibbles() {
	for _, wide := range []bool{false, true} {
		scoresQ4(wide)
		accumQ4(wide)
	}
}

// suffix names the instruction set.
func suffix(wide bool) string {
	if wide {
		return "AVX512"
	}
	return "AVX2"
}

// scoresQ4 emits integer products of queries of 8 bits and keys of 4: eight keys × 32 dimensions are unpacked, then
// each query's sum joins its scores. Sums are exact, so that both kernels give the same bits.
func scoresQ4(wide bool) {
	emit.Text("scoresQ4"+suffix(wide), "func(dst *float32, ld int, q *byte, k *byte, scale *uint16, at *int32, groups int, parts int, rows int, ahead *byte, aheadAt *int32)")
	emit.Contract("scoresQ4"+suffix(wide)+" sets dst[rows][8·groups] to the products of queries [parts]{int8[32], float32 scale, int32 -8·sum} and groups of keys [8·parts/2][8][4], two codes a byte.",
		"Group j begins with key at[j]. Meanwhile as much is asked for from vector aheadAt[j] of ahead on.")
	table, dst := emit.Arg("at"), emit.Arg("dst")
	ld := emit.Arg("ld")
	SHLQ(Imm(2), ld)
	mask, ones := YMM(), YMM()
	emit.FillLanes(0x0f0f0f0f, mask)
	if !wide {
		emit.FillLanes(0x00010001, ones)
	}
	Label("group")
	first, keys, scales, soon, parts, query := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("parts"), parts)
	Comment("a key has 16 bytes and a scale a part")
	MOVLQSX(Mem{Base: table}, first)
	IMULQ(parts, first)
	Load(Param("scale"), scales)
	LEAQ(Mem{Base: scales, Index: first, Scale: 2}, scales)
	SHLQ(Imm(4), first)
	Load(Param("k"), keys)
	ADDQ(first, keys)
	Load(Param("aheadAt"), soon)
	Load(Param("at"), first)
	SUBQ(first, soon)
	MOVLQSX(Mem{Base: soon, Index: table, Scale: 1}, soon)
	IMULQ(parts, soon)
	SHLQ(Imm(4), soon)
	Load(Param("ahead"), first)
	ADDQ(first, soon)
	Load(Param("q"), query)
	Comment("scores begin at zero")
	out, left, zero := GP64(), GP64(), YMM()
	clearOut := func() {
		MOVQ(dst, out)
		Load(Param("rows"), left)
		emit.ZeroY(zero)
		Label("clear")
		VMOVUPS(zero, Mem{Base: out})
		ADDQ(ld, out)
		DECQ(left)
		JNE(LabelRef("clear"))
	}
	clearOut()
	Label("part")
	codes := make([]reg.VecVirtual, 8)
	for i := 0; i < 8; i += 2 {
		if i%4 == 0 {
			PREFETCHT1(Mem{Base: soon, Disp: 16 * i})
		}
		codes[i], codes[i+1] = YMM(), YMM()
		VMOVDQU(Mem{Base: keys, Disp: 16 * i}, codes[i])
		VPSRLW(Imm(4), codes[i], codes[i+1])
		VPAND(mask, codes[i], codes[i])
		VPAND(mask, codes[i+1], codes[i+1])
	}
	keyScales := YMM()
	VCVTPH2PS(Mem{Base: scales}, keyScales)
	q := GP64()
	MOVQ(query, q)
	MOVQ(dst, out)
	Load(Param("rows"), left)
	row := GP64()
	Load(Param("parts"), row)
	IMUL3Q(Imm(queryRecord), row, row)
	Label("row")
	sum := YMM()
	if wide {
		more := YMM()
		VPBROADCASTD(Mem{Base: q, Disp: scaled + 4}, sum)
		emit.ZeroY(more)
		for i, c := range codes {
			to := sum
			if i%2 == 1 {
				to = more
			}
			VPDPBUSD_BCST(Mem{Base: q, Disp: 4 * i}, c, to)
		}
		VPADDD(more, sum, sum)
	} else {
		Comment("8·2·15·127 is below 2¹⁵")
		emit.ZeroY(sum)
		for i, c := range codes {
			w := YMM()
			VPBROADCASTD(Mem{Base: q, Disp: 4 * i}, w)
			VPMADDUBSW(w, c, w)
			VPADDW(w, sum, sum)
		}
		VPMADDWD(ones, sum, sum)
		offset := YMM()
		VPBROADCASTD(Mem{Base: q, Disp: scaled + 4}, offset)
		VPADDD(offset, sum, sum)
	}
	VCVTDQ2PS(sum, sum)
	scale, score := YMM(), YMM()
	VBROADCASTSS(Mem{Base: q, Disp: scaled}, scale)
	VMULPS(keyScales, scale, scale)
	VMOVUPS(Mem{Base: out}, score)
	VFMADD231PS(scale, sum, score)
	VMOVUPS(score, Mem{Base: out})
	ADDQ(row, q)
	ADDQ(ld, out)
	DECQ(left)
	JNE(LabelRef("row"))
	ADDQ(U32(128), keys)
	ADDQ(U32(128), soon)
	ADDQ(Imm(16), scales)
	ADDQ(Imm(queryRecord), query)
	DECQ(parts)
	JNE(LabelRef("part"))
	ADDQ(Imm(32), dst)
	ADDQ(Imm(4), table)
	groups := GP64()
	Load(Param("groups"), groups)
	DECQ(groups)
	Store(groups, Param("groups"))
	JNE(LabelRef("group"))
	emit.Done()
}

// accumQ4 emits weighted sums of values of 4 bits. Some columns of several values are unpacked into registers. Then each
// query adds them in the order of the values.
func accumQ4(wide bool) {
	emit.Text("accumQ4"+suffix(wide), "func(acc *float32, p *float32, ld int, v *byte, scale *uint16, at *int32, t int, parts int, rows int, ahead *byte, aheadAt *int32)")
	emit.Contract("accumQ4"+suffix(wide)+" adds t ≥ 1 values of parts × 32 columns, weighted by p[rows][t], to acc[rows][32·parts]. A part of a value has 16 bytes, columns 0 to 15 in the low halves.",
		"Eight in a row begin with value at[j] of v. Meanwhile as many are asked for from vector aheadAt[j] of ahead on, unless it is nil.")
	a := &nibbleSums{wide: wide, p: emit.Arg("p"), ld: emit.Arg("ld"), n: AllocLocal(8)}
	SHLQ(Imm(2), a.ld)
	if wide {
		a.levels = ZMM()
		VMOVUPS(signedLevels(), a.levels)
	}
	most := 8
	if !wide {
		most = 4
	}
	Label("group")
	a.begin()
	Label("some")
	CMPQ(a.n, Imm(uint64(most)))
	JL(LabelRef("single"))
	a.add(most)
	SUBQ(Imm(uint64(most)), a.n)
	JG(LabelRef("some"))
	JMP(LabelRef("next"))
	Label("single")
	a.add(1)
	DECQ(a.n)
	JNE(LabelRef("single"))
	Label("next")
	for _, table := range []string{"at", "aheadAt"} {
		next := emit.Arg(table)
		LEAQ(Mem{Base: next, Disp: 4}, next)
		Store(next, Param(table))
	}
	left := emit.Arg("t")
	SUBQ(Imm(8), left)
	Store(left, Param("t"))
	JG(LabelRef("group"))
	emit.Done()
}

// signedLevels emits the table of what codes of two's complement mean.
func signedLevels() Mem {
	m := GLOBL("signedLevels", 16|8)
	for i := range 16 {
		DATA(4*i, F32(float32((i^8)-8)))
	}
	return m
}

// nibbleSums is an accumQ4 being emitted.
type nibbleSums struct {
	wide         bool
	levels       reg.VecVirtual
	p, ld        reg.Register // weights of the values at hand
	n            Mem          // values of the group from those at hand on: registers are few
	v, scale     reg.Register // the values at hand
	stride, soon reg.Register // bytes of a value; what is asked for
}

// begin finds the group's values.
func (a *nibbleSums) begin() {
	a.v, a.scale, a.stride, a.soon = GP64(), GP64(), GP64(), GP64()
	first := emit.Arg("at")
	Load(Param("parts"), a.stride)
	MOVLQSX(Mem{Base: first}, first)
	IMULQ(a.stride, first)
	Load(Param("scale"), a.scale)
	LEAQ(Mem{Base: a.scale, Index: first, Scale: 2}, a.scale)
	SHLQ(Imm(4), first)
	SHLQ(Imm(4), a.stride)
	Load(Param("v"), a.v)
	ADDQ(first, a.v)
	MOVQ(a.v, a.soon)
	Comment("nothing is asked for if there is no table")
	Load(Param("ahead"), first)
	TESTQ(first, first)
	JE(LabelRef("nothing"))
	Load(Param("aheadAt"), a.soon)
	MOVLQSX(Mem{Base: a.soon}, a.soon)
	IMULQ(a.stride, a.soon)
	ADDQ(first, a.soon)
	Label("nothing")
	n, t := GP64(), emit.Arg("t")
	MOVQ(U32(8), n)
	CMPQ(t, n)
	CMOVQLT(t, n)
	MOVQ(n, a.n)
}

// add adds n values, all columns of them, and goes on to the next ones.
func (a *nibbleSums) add(n int) {
	name := map[bool]string{true: "One", false: "Some"}[n == 1]
	parts, acc, v, scale := GP64(), GP64(), GP64(), GP64()
	Load(Param("parts"), parts)
	Load(Param("acc"), acc)
	MOVQ(a.v, v)
	MOVQ(a.scale, scale)
	Label("part" + name)
	if n > 1 {
		for line := range n / 4 {
			PREFETCHT1(Mem{Base: a.soon, Disp: 64 * line})
		}
		ADDQ(U32(uint32(16*n)), a.soon)
	}
	passes := 2
	if a.wide {
		passes = 1
	}
	for pass := range passes {
		values := a.unpack(n, 8*pass, v, scale)
		rows, p, out := GP64(), GP64(), GP64()
		Load(Param("rows"), rows)
		MOVQ(a.p, p)
		LEAQ(Mem{Base: acc, Disp: 4 * 8 * pass}, out)
		label := "row" + name + string(rune('0'+pass))
		row := GP64()
		Load(Param("parts"), row)
		SHLQ(Imm(7), row)
		Label(label)
		sums := [2]reg.VecVirtual{a.vector(), a.vector()}
		for half, s := range sums {
			VMOVUPS(Mem{Base: out, Disp: 64 * half}, s)
		}
		for i := range n {
			if a.wide {
				for half, s := range sums {
					VFMADD231PS_BCST(Mem{Base: p, Disp: 4 * i}, values[i][half], s)
				}
				continue
			}
			w := YMM()
			VBROADCASTSS(Mem{Base: p, Disp: 4 * i}, w)
			for half, s := range sums {
				VFMADD231PS(w, values[i][half], s)
			}
		}
		for half, s := range sums {
			VMOVUPS(s, Mem{Base: out, Disp: 64 * half})
		}
		ADDQ(a.ld, p)
		ADDQ(row, out)
		DECQ(rows)
		JNE(LabelRef(label))
	}
	ADDQ(U32(4*scaled), acc)
	ADDQ(Imm(16), v)
	ADDQ(Imm(2), scale)
	DECQ(parts)
	JNE(LabelRef("part" + name))
	Comment("the values that follow")
	Load(Param("parts"), parts)
	LEAQ(Mem{Base: a.scale, Index: parts, Scale: 2}, a.scale)
	ADDQ(a.stride, a.v)
	for range n - 1 {
		LEAQ(Mem{Base: a.scale, Index: parts, Scale: 2}, a.scale)
		ADDQ(a.stride, a.v)
	}
	ADDQ(Imm(uint64(4*n)), a.p)
}

func (a *nibbleSums) vector() reg.VecVirtual {
	if a.wide {
		return ZMM()
	}
	return YMM()
}

// unpack makes floats of n values' columns, byte from on: of the low halves and of the high ones. A scale has 11 bits
// and a code 4, so that products are exact.
func (a *nibbleSums) unpack(n, from int, v, scale reg.Register) (values [][2]reg.VecVirtual) {
	at, scales, step := GP64(), GP64(), GP64()
	MOVQ(v, at)
	MOVQ(scale, scales)
	Load(Param("parts"), step)
	for range n {
		low, high, s, half := a.vector(), a.vector(), a.vector(), XMM()
		h := GP32()
		MOVWLZX(Mem{Base: scales}, h)
		VMOVD(h, half)
		VCVTPH2PS(half, half)
		VBROADCASTSS(half, s)
		VPMOVSXBD(Mem{Base: at, Disp: from}, low)
		if a.wide {
			VMULPS(a.levels, s, s)
			VPSRLD(Imm(4), low, high)
			VPERMPS(s, low, low)
			VPERMPS(s, high, high)
		} else {
			VPSRAD(Imm(4), low, high)
			VPSLLD(Imm(28), low, low)
			VPSRAD(Imm(28), low, low)
			VCVTDQ2PS(low, low)
			VCVTDQ2PS(high, high)
			VMULPS(s, low, low)
			VMULPS(s, high, high)
		}
		values = append(values, [2]reg.VecVirtual{low, high})
		ADDQ(a.stride, at)
		LEAQ(Mem{Base: scales, Index: step, Scale: 2}, scales)
	}
	return values
}
