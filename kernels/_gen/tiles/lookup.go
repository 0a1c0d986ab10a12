package tiles

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// lookUp emits products by lookup of 32 columns of 128 rows. A table of 16 int16 is two
// of bytes, the upper ones with 128 added, that a shuffle looks up for 64 rows. Sums
// of bytes are kept of the words they lie in, and of these words' upper bytes.
func lookUp(bits int, split, join Mem) {
	name := fmt.Sprintf("lookUp%dAVX512", bits)
	emit.Text(name, "func(t *int32, lines *byte, tables *int16)")
	emit.Contract(name+" adds to t[128] the products of 32 columns: lines are the 4 of each plane, highest",
		"first, tables the four pairs of quads', 64 numbers apart. Even rows' bytes come first in t.")
	t, lines, tables := emit.Arg("t"), emit.Arg("lines"), emit.Arg("tables")
	low, t1, t2 := ZMM(), ZMM(), ZMM()
	splat := func(v uint32) reg.VecVirtual {
		r, z := GP32(), ZMM()
		MOVL(U32(v), r)
		VPBROADCASTD(r, z)
		return z
	}
	VMOVDQU64(split, t1)
	VMOVDQU64(join, t2)
	signs := ZMM()
	{
		s := splat(0x80808080)
		k, r := K(), GP32()
		MOVL(U32(0xf0f0), r) // dwords of the upper bytes
		KMOVW(r, k)
		VMOVDQA32_Z(s, k, signs)
	}
	const quads = 8
	var lo, hi [quads]reg.VecVirtual
	for p := range quads / 2 {
		v := ZMM()
		VMOVDQU64(Mem{Base: tables, Disp: p * 128}, v)
		VPSHUFB(t1, v, v)
		VPERMD(v, t2, v)
		VPXORD(signs, v, v)
		for i, dst := range []*reg.VecVirtual{&lo[2*p], &hi[2*p], &lo[2*p+1], &hi[2*p+1]} {
			*dst = ZMM()
			VSHUFI32X4(U8(0x55*i), v, v, *dst)
		}
	}
	VMOVDQA64(splat(0x0f0f0f0f), low)
	for chunk := range 2 {
		var words, upper [2]reg.VecVirtual // of low bytes, of high bytes
		for i := range words {
			words[i], upper[i] = ZMM(), ZMM()
			VPXORQ(words[i], words[i], words[i])
			VPXORQ(upper[i], upper[i], upper[i])
		}
		for plane := range bits {
			if plane > 0 {
				for i := range words {
					VPADDW(words[i], words[i], words[i])
					VPADDW(upper[i], upper[i], upper[i])
				}
			}
			for p := range quads / 2 {
				var index [2]reg.VecVirtual
				index[0], index[1] = ZMM(), ZMM()
				VMOVDQU64(Mem{Base: lines, Disp: plane*8*line + p*line + chunk*64}, index[1])
				VPANDQ(low, index[1], index[0])
				VPSRLW(U8(4), index[1], index[1])
				VPANDQ(low, index[1], index[1])
				for i, q := range index {
					for part, table := range []reg.VecVirtual{lo[2*p+i], hi[2*p+i]} {
						v := ZMM()
						VPSHUFB(q, table, v)
						VPADDW(v, words[part], words[part])
						VPSRLW(U8(8), v, v)
						VPADDW(v, upper[part], upper[part])
					}
				}
			}
		}
		Comment("sums of 32 even bytes, then of 32 odd ones")
		bias := splat(uint32(128 * 256 * quads * (1<<bits - 1)))
		for i := range words {
			s := ZMM()
			VPSLLW(U8(8), upper[i], s)
			VPSUBW(s, words[i], words[i])
		}
		for odd, sums := range [][2]reg.VecVirtual{words, upper} {
			for h := range 2 {
				at := Mem{Base: t, Disp: 4 * (odd*64 + chunk*32 + h*16)}
				var wide [2]reg.VecVirtual
				for i, s := range sums {
					wide[i] = ZMM()
					y := s.AsY()
					if h == 1 {
						upperHalf := YMM()
						VEXTRACTI64X4(U8(1), s, upperHalf)
						y = upperHalf.AsY()
					}
					VPMOVZXWD(y, wide[i])
				}
				VPSLLD(U8(8), wide[1], wide[1])
				VPADDD(wide[1], wide[0], wide[0])
				VPSUBD(bias, wide[0], wide[0])
				VPADDD(at, wide[0], wide[0])
				VMOVDQU32(wide[0], at)
			}
		}
	}
	emit.Done()
}

// lookUps emits lookups for all widths of codes.
func lookUps() {
	// The bytes of 16 entries of two tables: entry n's are 4n to 4n+3.
	split := emit.Table("splitTables", emit.Fill(64, func(i int) byte { return byte(i%4*4 + i/4%4) }))
	join := emit.Table("joinTables", emit.Fill(64, func(i int) byte {
		if i%4 > 0 {
			return 0
		}
		return byte(i/4%4*4 + i/16)
	}))
	for _, bits := range []int{1, 2, 4} {
		lookUp(bits, split, join)
	}
}

// addScaled emits the scaling of 128 sums.
func addScaled() {
	emit.Text("addScaledAVX512", "func(y, t *int32, scales *int16, a, b int32)")
	emit.Contract("addScaledAVX512 adds ((a·t - b)·scale + 2¹⁴) >> 15 to y[128], the product in 64 bits.")
	y, t, scales := emit.Arg("y"), emit.Arg("t"), emit.Arg("scales")
	a, b, round := ZMM(), ZMM(), ZMM()
	VPBROADCASTD(Load(Param("a"), GP32()), a)
	VPBROADCASTD(Load(Param("b"), GP32()), b)
	r := GP64()
	MOVQ(U32(1<<14), r)
	VPBROADCASTQ(r, round)
	odd := K()
	r32 := GP32()
	MOVL(U32(0xaaaa), r32)
	KMOVW(r32, odd)
	n := GP64()
	MOVQ(U32(8), n)
	Label("loop")
	v, s, v1, s1 := ZMM(), ZMM(), ZMM(), ZMM()
	VPMULLD(Mem{Base: t}, a, v)
	VPSUBD(b, v, v)
	VPMOVSXWD(Mem{Base: scales}, s)
	VPSRLQ(U8(32), v, v1)
	VPSRLQ(U8(32), s, s1)
	VPMULDQ(s, v, v)
	VPMULDQ(s1, v1, v1)
	VPADDQ(round, v, v)
	VPADDQ(round, v1, v1)
	VPSRAQ(U8(15), v, v)
	VPSLLQ(U8(17), v1, v1) // bits 15 to 46 become the upper half
	VMOVDQA32(v1, odd, v)
	VPADDD(Mem{Base: y}, v, v)
	VMOVDQU32(v, Mem{Base: y})
	ADDQ(Imm(64), t)
	ADDQ(Imm(64), y)
	ADDQ(Imm(32), scales)
	DECQ(n)
	JNE(LabelRef("loop"))
	emit.Done()
}
