package main

import (
	"fmt"

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

// attend emits the products of attention with AVX2: 1 to 4 query rows that
// share a KV head, head dimensions d that are multiples of 8.
func attend() {
	for _, e := range cachedTypes {
		for rows := 1; rows <= 4; rows++ {
			scores(e, rows)
			accumulate(e, rows)
		}
	}
}

// scores emits dst[i][j] = q[i]·k[j]. Every product has a register of its own
// and one order of additions, whatever the tile.
func scores(e cached, queries int) {
	name := fmt.Sprintf("scores%sx%d", e.name, queries)
	sig := "dst *float32, ld int, q *float32, k *byte, "
	if e.scale {
		sig += "scale *float32, "
	}
	text(name, "func("+sig+"t int, d int)")
	contract(fmt.Sprintf("%s sets dst[%d][t] to the products of queries and t ≥ 1 keys [t][d], d a positive multiple of 8.", name, queries))
	dst := newRows("dst", "ld", 2, queries)
	q := newRows("q", "d", 2, queries)
	k, t := param("k"), param("t")
	var scale reg.Register
	if e.scale {
		scale = param("scale")
	}
	// The three distances are in one: d elements of a key.
	stride, chunks := GP64(), GP64()
	Load(Param("d"), stride)
	if e.size == 2 {
		SHLQ(Imm(1), stride)
	}
	keys := 4 // at a time: as many as registers hold
	if queries == 4 {
		keys = 2
	}
	key := func(j int) Mem {
		if j == 3 {
			m := GP64()
			LEAQ(Mem{Base: k, Index: stride, Scale: 2}, m)
			return Mem{Base: m, Index: stride, Scale: 1}
		}
		m := Mem{Base: k}
		if j > 0 {
			m.Index, m.Scale = stride, uint8(j)
		}
		return m
	}
	block := func(keys int, label string) {
		acc := make([][]reg.VecVirtual, queries)
		for i := range acc {
			acc[i] = ymms(keys)
		}
		Load(Param("d"), chunks)
		Label(label + "Columns")
		qv := make([]reg.VecVirtual, queries)
		for i := range qv {
			qv[i] = YMM()
			VMOVUPS(q.at(i, 0), qv[i])
		}
		for j := range keys {
			kv := YMM()
			e.load(key(j), kv)
			for i := range acc {
				VFMADD231PS(kv, qv[i], acc[i][j])
			}
		}
		q.advance(32)
		ADDQ(Imm(uint64(8*e.size)), k)
		SUBQ(Imm(8), chunks)
		JNE(LabelRef(label + "Columns"))
		Comment("lanes to sums: neighbours, pairs, halves")
		var s reg.VecVirtual
		if e.scale {
			s = XMM()
			switch keys {
			case 4:
				VMOVUPS(Mem{Base: scale}, s)
			case 2:
				VMOVSD(Mem{Base: scale}, s)
			case 1:
				VMOVSS(Mem{Base: scale}, s)
			}
			ADDQ(Imm(uint64(4*keys)), scale)
		}
		for i, a := range acc {
			switch keys {
			case 4:
				VHADDPS(a[1], a[0], a[0])
				VHADDPS(a[3], a[2], a[2])
				VHADDPS(a[2], a[0], a[0])
			case 2:
				VHADDPS(a[1], a[0], a[0])
				VHADDPS(a[0], a[0], a[0])
			case 1:
				VHADDPS(a[0], a[0], a[0])
				VHADDPS(a[0], a[0], a[0])
			}
			x := XMM()
			VEXTRACTF128(Imm(1), a[0], x)
			VADDPS(x, a[0].AsX(), x)
			if e.scale {
				VMULPS(s, x, x)
			}
			switch keys {
			case 4:
				VMOVUPS(x, dst.at(i, 0))
			case 2:
				VMOVLPS(x, dst.at(i, 0))
			case 1:
				VMOVSS(x, dst.at(i, 0))
			}
		}
		dst.advance(4 * keys)
		Comment("back to the queries' start, on to the next keys")
		back := GP64()
		Load(Param("d"), back)
		SHLQ(Imm(2), back)
		q.retreat(back)
		for range keys - 1 {
			ADDQ(stride, k)
		}
	}
	SUBQ(Imm(uint64(keys)), t)
	JL(LabelRef("rest"))
	Label("loop")
	block(keys, "loop")
	SUBQ(Imm(uint64(keys)), t)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(keys)), t)
	JE(LabelRef("end"))
	Label("one")
	block(1, "one")
	DECQ(t)
	JNE(LabelRef("one"))
	Label("end")
	done()
}

// accumulate emits acc[i] += Σ p[i][j]·v[j], in the order of j: a few columns
// at a time over all tokens, so that the sums stay in registers.
func accumulate(e cached, queries int) {
	name := fmt.Sprintf("accum%sx%d", e.name, queries)
	sig := "acc *float32, p *float32, ld int, v *byte, "
	if e.scale {
		sig += "scale *float32, "
	}
	text(name, "func("+sig+"t int, d int)")
	contract(fmt.Sprintf("%s adds the t ≥ 1 values [t][d], weighted by p[%d][t], to acc[%d][d], d a positive multiple of 8.", name, queries, queries))
	acc := newRows("acc", "d", 2, queries)
	v, d := param("v"), param("d")
	stride := GP64()
	MOVQ(d, stride)
	if e.size == 2 {
		SHLQ(Imm(1), stride)
	}
	block := func(vectors int, label string) {
		p := newRows("p", "ld", 2, queries)
		vp, t := GP64(), GP64()
		MOVQ(v, vp)
		Load(Param("t"), t)
		var scale reg.Register
		if e.scale {
			scale = param("scale")
		}
		sums := make([][]reg.VecVirtual, queries)
		for i := range sums {
			for c := range vectors {
				y := YMM()
				VMOVUPS(acc.at(i, 32*c), y)
				sums[i] = append(sums[i], y)
			}
		}
		Label(label + "Tokens")
		w := make([]reg.VecVirtual, queries)
		for i := range w {
			w[i] = YMM()
			VBROADCASTSS(p.at(i, 0), w[i])
		}
		if e.scale {
			s := YMM()
			VBROADCASTSS(Mem{Base: scale}, s)
			for i := range w {
				VMULPS(s, w[i], w[i])
			}
			ADDQ(Imm(4), scale)
		}
		for c := range vectors {
			value := YMM()
			e.load(Mem{Base: vp, Disp: 8 * c * e.size}, value)
			for i := range sums {
				VFMADD231PS(w[i], value, sums[i][c])
			}
		}
		p.advance(4)
		ADDQ(stride, vp)
		DECQ(t)
		JNE(LabelRef(label + "Tokens"))
		for i := range sums {
			for c, y := range sums[i] {
				VMOVUPS(y, acc.at(i, 32*c))
			}
		}
		acc.advance(32 * vectors)
		ADDQ(Imm(uint64(8*vectors*e.size)), v)
	}
	vectors := []int{8, 4, 4, 2}[queries-1]
	SUBQ(Imm(uint64(8*vectors)), d)
	JL(LabelRef("rest"))
	Label("loop")
	block(vectors, "loop")
	SUBQ(Imm(uint64(8*vectors)), d)
	JGE(LabelRef("loop"))
	Label("rest")
	ADDQ(Imm(uint64(8*vectors)), d)
	JE(LabelRef("end"))
	Label("one")
	block(1, "one")
	SUBQ(Imm(8), d)
	JNE(LabelRef("one"))
	Label("end")
	done()
}
