package grouped

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Vector lookup (Vec-LUT) for bits: four bits of a row of weights name one of 16
// sums of four columns, for all tokens of a tile at once. The word of a row has eight
// such nibbles for a group of 32 columns: bits 4h+i of byte b are columns 16h+4i+b.
// Sums of a group are exact int16; float32 operations are those of the other tiles,
// with eight times the activations' scale for eight times the sum, which is the same
// product.
//
// A row and a group take 14 vector operations, 8.5 loads and 16 scalar operations.
// Loads bound it: Zen 5 does 1.3 a cycle where addresses are as good as random.
//
// Codes of two bits gain little: a nibble is two columns then, and with AVX2, 16
// tokens, this was 1.07 times as fast as the other tiles.

// lookup is a tile of tables.
type lookup struct {
	packing
	isa    string
	tokens int // int16 sums of a register
}

func (l lookup) vector() reg.VecVirtual {
	if l.isa == "AVX512" {
		return ZMM()
	}
	return YMM()
}

// Sizes in bytes.
func (l lookup) entry() int  { return 2 * l.tokens }
func (l lookup) table() int  { return 16 * l.entry() }
func (l lookup) tables() int { return 8 } // of a group
func (l lookup) lanes() int  { return 32*l.tokens + 4*l.tokens }
func (l lookup) half() int   { return 2 * l.tokens } // every other token's float32

// Tables emits the lookups.
func Tables() {
	emitEighth("eighthTables")
	for _, l := range []lookup{{lowPackings[0], "AVX2", 16}, {lowPackings[0], "AVX512", 32}} {
		l.build()
		l.rows()
		storeSums(l.tokens)
	}
}

// build generates the routine that makes the tables of some groups.
func (l lookup) build() {
	name := fmt.Sprintf("tables%s%s", l.name, l.isa)
	emit.Text(name, "func(tables *byte, acts *byte, groups int)")
	emit.Contract(fmt.Sprintf("%s makes the tables of groups ≥ 1 groups of %d tokens' lanes: [group][%d][16][%d] int16.", name, l.tokens, l.tables(), l.tokens))
	tables, from, groups := emit.Arg("tables"), emit.Arg("acts"), emit.Arg("groups")
	column := func(k int) reg.VecVirtual {
		v := l.vector()
		VPMOVSXBW(Mem{Base: from, Disp: k * l.tokens}, v)
		return v
	}
	Label("loop")
	for n := range l.tables() {
		at := func(entry int) Mem { return Mem{Base: tables, Disp: n*l.table() + entry*l.entry()} }
		l.buildTable(n, column, at)
	}
	ADDQ(U32(uint32(l.tables()*l.table())), tables)
	ADDQ(U32(uint32(l.lanes())), from)
	DECQ(groups)
	JNE(LabelRef("loop"))
	emit.Done()
}

// buildTable makes table n of a group: Σ (2·bit-1)·q of four columns.
func (l lookup) buildTable(n int, column func(int) reg.VecVirtual, at func(int) Mem) {
	least := l.vector()
	emit.Zero(least)
	var twice [4]reg.VecVirtual
	for i := range twice {
		twice[i] = column(16*(n%2) + 4*i + n/2)
		VPSUBW(twice[i], least, least)
		VPADDW(twice[i], twice[i], twice[i])
	}
	var walk func(bit, entry int, sum reg.VecVirtual)
	walk = func(bit, entry int, sum reg.VecVirtual) {
		if bit < 0 {
			move(sum, at(entry))
			return
		}
		with := l.vector()
		VPADDW(twice[bit], sum, with)
		walk(bit-1, entry, sum)
		walk(bit-1, entry|1<<bit, with)
	}
	walk(3, 0, least)
}

// move stores a register.
func move(v reg.VecVirtual, m Mem) {
	if v.Size() == 64 {
		VMOVDQU64(v, m)
	} else {
		VMOVDQU(v, m)
	}
}

// rows generates the routine that takes bands through the tables of a unit.
func (l lookup) rows() {
	name := fmt.Sprintf("lookup%s%s", l.name, l.isa)
	emit.Text(name, "func(sums *float32, codes *byte, scales *byte, tables *byte, acts *byte, bands int, stride int)")
	emit.Contract(fmt.Sprintf("%s adds to sums[bands·16][2][%d] (even tokens, odd tokens) the products of a unit of", name, l.tokens/2),
		fmt.Sprintf("bands ≥ 1 bands of %s, stride bytes apart, with the tokens whose lanes acts and tables are of.", l.name))
	sums, codes, scales := emit.Arg("sums"), emit.Arg("codes"), emit.Arg("scales")
	tables, from, bands, stride := emit.Arg("tables"), emit.Arg("acts"), emit.Arg("bands"), emit.Arg("stride")
	d := AllocLocal(64)
	even := l.vector()
	emit.FillLanes(0x00000001, even)
	scale := make([][2]reg.VecVirtual, l.unit) // of activations, times 8
	for g := range scale {
		for h := range scale[g] {
			scale[g][h] = l.vector()
			VMOVUPS(Mem{Base: from, Disp: g*l.lanes() + 32*l.tokens + h*l.half()}, scale[g][h])
		}
	}
	pairs, at := GP64(), GP64()
	Label("band")
	for v := range vectors {
		s := YMM()
		VCVTPH2PS(Mem{Base: scales, Disp: v * 16}, s)
		VMULPS(eighth, s, s)
		VMOVUPS(s, d.Offset(v*32))
	}
	LEAQ(d, at)
	Comment("The next band's codes come into L1, and this one's of the next unit into L2")
	for line := range l.unit * l.codeBytes / 64 {
		PREFETCHT0(Mem{Base: codes, Index: stride, Scale: 1, Disp: 64 * line})
		PREFETCHT1(Mem{Base: codes, Disp: l.unit*l.codeBytes + 64*line})
	}
	MOVQ(U32(dense.BandRows/2), pairs)
	Label("rows")
	var whole [2][2]reg.VecVirtual // of both rows: even and odd tokens
	for g := range l.unit {
		var sum [2]reg.VecVirtual
		word := GP64()
		MOVQ(Mem{Base: codes, Disp: g * l.codeBytes}, word)
		for r := range sum {
			for n := range l.tables() {
				sum[r] = l.add(sum[r], word, 32*r+4*n, tables, (g*l.tables()+n)*l.table())
			}
		}
		for r := range sum {
			for h := range 2 {
				x := sum[r]
				if h == 0 {
					x = l.vector()
					VPMADDWD(even, sum[r], x)
				} else {
					VPSRAD(Imm(16), x, x) // in place: AVX2 has 16 registers, and all are taken here
				}
				VCVTDQ2PS(x, x)
				if g == 0 {
					VMULPS(scale[g][h], x, x)
					whole[r][h] = x
				} else {
					VFMADD231PS(scale[g][h], x, whole[r][h])
				}
			}
		}
	}
	for r := range whole {
		s := l.vector()
		VBROADCASTSS(Mem{Base: at, Disp: 4 * r}, s)
		for h, w := range whole[r] {
			m := Mem{Base: sums, Disp: 2*r*l.half() + h*l.half()}
			VFMADD213PS(m, s, w)
			VMOVUPS(w, m)
		}
	}
	ADDQ(Imm(8), codes)
	ADDQ(Imm(8), at)
	ADDQ(U32(uint32(4*l.half())), sums)
	DECQ(pairs)
	JNE(LabelRef("rows"))
	Comment("The next band")
	SUBQ(Imm(64), codes)
	ADDQ(stride, codes)
	ADDQ(stride, scales)
	DECQ(bands)
	JNE(LabelRef("band"))
	emit.Done()
}

// add adds to sum, nil at first, the entry of the table at disp that the nibble at
// bit of word names.
func (l lookup) add(sum reg.VecVirtual, word reg.GPVirtual, bit int, tables reg.Register, disp int) reg.VecVirtual {
	o, shift := GP64(), bits.TrailingZeros(uint(l.entry()))
	RORXQ(Imm(uint64((bit-shift+64)%64)), word, o)
	ANDL(U32(uint32(15<<shift)), o.As32())
	m := Mem{Base: tables, Index: o, Scale: 1, Disp: disp}
	if sum != nil {
		VPADDW(m, sum, sum)
		return sum
	}
	sum = l.vector()
	if l.isa == "AVX512" {
		VMOVDQU64(m, sum)
	} else {
		VMOVDQU(m, sum)
	}
	return sum
}

// storeSums generates the routine that turns the sums of bands over.
func storeSums(tokens int) {
	name := fmt.Sprintf("storeSums%dAVX2", tokens)
	emit.Text(name, "func(y *float32, ld int, sums *float32, bands int)")
	emit.Contract(fmt.Sprintf("%s sets y[%d][16·bands] (ld values a token) to sums[bands·16][2][%d], even tokens and odd ones.", name, tokens, tokens/2))
	y, ld, sums, bands := emit.Arg("y"), emit.Arg("ld"), emit.Arg("sums"), emit.Arg("bands")
	SHLQ(Imm(3), ld) // of every other token
	ld3, out, odd := GP64(), GP64(), GP64()
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	MOVQ(ld, odd)
	SHRQ(Imm(1), odd)
	Label("band")
	for h := range 2 {
		MOVQ(y, out)
		if h == 1 {
			ADDQ(odd, out)
		}
		for quad := range tokens / 8 {
			lines := [4]Mem{{Base: out}, {Base: out, Index: ld, Scale: 1}, {Base: out, Index: ld, Scale: 2}, {Base: out, Index: ld3, Scale: 1}}
			for half := range 2 {
				v := make([]reg.VecVirtual, 4)
				for i := range v {
					at := func(row int) Mem { return Mem{Base: sums, Disp: row*4*tokens + h*2*tokens + 16*quad} }
					v[i] = YMM()
					VBROADCASTI128(at(8*half+i), v[i])
					VINSERTI128(Imm(1), at(8*half+i+4), v[i], v[i])
				}
				for i, o := range acts.Transpose4(v) {
					VMOVUPS(o, lines[i].Offset(32*half))
				}
			}
			if quad+1 < tokens/8 {
				LEAQ(Mem{Base: out, Index: ld, Scale: 4}, out)
			}
		}
	}
	ADDQ(U32(uint32(dense.BandRows*4*tokens)), sums)
	ADDQ(U32(4*dense.BandRows), y)
	DECQ(bands)
	JNE(LabelRef("band"))
	emit.Done()
}
