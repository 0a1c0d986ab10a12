// Package delta emits the kernels of kernels/delta.
package delta

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// Kernels emits the parts of a chunk of the gated delta rule. A panel has two tiles
// side by side; a state of an odd number of tiles ends with one.
func Kernels() {
	products("productsAVX2", 1, 2, YMM)
	products("productsOneAVX2", 1, 1, YMM)
	products("productsAVX512", 1, 2, ZMM)
	products("productsAVX512x4", 4, 2, ZMM)
	products("productsOneAVX512", 1, 1, ZMM)
	dots("dotsAVX2", YMM)
	dots("dotsAVX512", ZMM)
	correct("correctAVX2", 2, YMM)
	correct("correctOneAVX2", 1, YMM)
	correct("correctAVX512", 4, ZMM)
	correct("correctOneAVX512", 1, ZMM)
	fold("foldAVX2", 2, 2, YMM)
	fold("foldOneAVX2", 4, 1, YMM)
	fold("foldAVX512", 8, 2, ZMM)
	fold("foldOneAVX512", 8, 1, ZMM)
	space("spaceAVX2", 1, YMM)
	space("spaceAVX2x2", 2, YMM)
	space("spaceAVX512", 1, ZMM)
	space("spaceAVX512x4", 4, ZMM)
}

const (
	chunk     = 16   // tokens
	tileBytes = 64   // of a row of a tile
	ahead     = 4096 // bytes that a single token asks for before it reads them
)

// vectors makes the registers of a row of tiles, of size bytes each.
func vectors[V reg.VecVirtual](tiles int, blank func() V) (row []reg.VecVirtual, size int) {
	v := blank()
	size = int(v.Size())
	for row = append(row, v); len(row)*size < tiles*tileBytes; row = append(row, blank()) {
	}
	return row, size
}

// products emits the products of keys and queries, of tokens at once, with a panel of
// tiles. A sum takes the rows in their order.
func products[V reg.VecVirtual](name string, tokens, tiles int, blank func() V) {
	const unroll = 4
	emit.Text(name, "func(panel *float32, width int, q *float32, k *float32, stride int, out *float32, ld int, n int)")
	emit.Contract(fmt.Sprintf("%s sets out[n·%d][2][%d] to the products of as many k[width], then q, with the columns of panel[width][%[3]d].", name, tokens, 16*tiles),
		"Keys and queries are stride bytes apart, their results ld bytes; width is a positive multiple of 16, n positive.")
	panel, width := emit.Arg("panel"), emit.Arg("width")
	x := [2]emit.Rows{emit.NewRows("k", "stride", 0, tokens), emit.NewRows("q", "stride", 0, tokens)}
	out, ld, n := emit.Arg("out"), emit.Arg("ld"), emit.Arg("n")
	row, i, step := GP64(), GP64(), GP64()
	Load(Param("stride"), step)
	IMUL3Q(Imm(uint64(tokens)), step, step)
	MOVQ(width, i)
	SHLQ(Imm(2), i)
	SUBQ(i, step) // from the end of a token's numbers to the next ones'
	Label("token")
	sums, size := make([][2][]reg.VecVirtual, tokens), 0 // of key and query
	for t := range sums {
		for of := range x {
			sums[t][of], size = vectors(tiles, blank)
			for _, v := range sums[t][of] {
				emit.Zero(v)
			}
		}
	}
	MOVQ(panel, row)
	MOVQ(width, i)
	Label("rows")
	for j := range unroll {
		m := Mem{Base: row, Disp: tiles * tileBytes * j}
		if tokens == 1 {
			for line := range tiles {
				PREFETCHT0(m.Offset(ahead + tileBytes*line))
			}
		}
		v, _ := vectors(tiles, blank)
		for c := range v {
			VMOVUPS(m.Offset(size*c), v[c])
		}
		for t := range sums {
			for of := range x {
				f := blank()
				VBROADCASTSS(x[of].At(t, 4*j), f)
				for c := range v {
					VFMADD231PS(v[c], f, sums[t][of][c])
				}
			}
		}
	}
	ADDQ(U32(uint32(unroll*tiles*tileBytes)), row)
	x[0].Advance(4 * unroll)
	x[1].Advance(4 * unroll)
	SUBQ(Imm(unroll), i)
	JNE(LabelRef("rows"))
	for t := range sums {
		for of := range x {
			for c, v := range sums[t][of] {
				VMOVUPS(v, Mem{Base: out, Disp: size * c})
			}
			ADDQ(ld, out)
		}
	}
	for _, r := range x {
		for _, p := range r.Base {
			ADDQ(step, p)
		}
	}
	DECQ(n)
	JNE(LabelRef("token"))
	emit.Done()
}

// dots emits the products of a token's key and query with the keys of its chunk. Every
// instruction set sums 16 columns side by side, so that all give the same bits.
func dots[V reg.VecVirtual](name string, blank func() V) {
	emit.Text(name, "func(keys *float32, width int, n int, q *float32, k *float32, mix *float32)")
	emit.Contract(name+" sets mix[i] = Σ keys[i]·k and mix[16+i] = Σ keys[i]·q over rows keys[n][width],",
		"width a positive multiple of 16, n from 1 to 16.")
	keys, width, n := emit.Arg("keys"), emit.Arg("width"), emit.Arg("n")
	q, k, mix := emit.Arg("q"), emit.Arg("k"), emit.Arg("mix")
	j := GP64()
	Label("row")
	var sums [2][]reg.VecVirtual // of key and query
	for of := range sums {
		sums[of], _ = vectors(1, blank)
		for _, s := range sums[of] {
			emit.Zero(s)
		}
	}
	XORQ(j, j)
	Label("columns")
	parts, size := vectors(1, blank)
	for c, v := range parts {
		VMOVUPS(Mem{Base: keys, Disp: size * c}, v)
		for of, x := range []reg.Register{k, q} {
			VFMADD231PS(Mem{Base: x, Index: j, Scale: 4, Disp: size * c}, v, sums[of][c])
		}
	}
	ADDQ(Imm(tileBytes), keys)
	ADDQ(Imm(chunk), j)
	CMPQ(j, width)
	JL(LabelRef("columns"))
	for of, s := range sums {
		half, y := YMM(), YMM()
		if size == 64 {
			VEXTRACTF64X4(Imm(1), s[0], half)
			VADDPS(s[0].AsY(), half, y)
		} else {
			VADDPS(s[0], s[1], y)
		}
		low, high := XMM(), XMM()
		VEXTRACTF128(Imm(1), y, high)
		VADDPS(y.AsX(), high, low)
		VMOVHLPS(low, low, high)
		VADDPS(low, high, low)
		VMOVSHDUP(low, high)
		VADDSS(low, high, low)
		VMOVSS(low, Mem{Base: mix, Disp: 4 * chunk * of})
	}
	ADDQ(Imm(4), mix)
	DECQ(n)
	JNE(LabelRef("row"))
	emit.Done()
}

// correct emits the corrections and outputs of a token, tiles at a time.
func correct[V reg.VecVirtual](name string, tiles int, blank func() V) {
	emit.Text(name, "func(all *float32, width int, n int, token int, mix *float32, products *float32, ld int, v *float32)")
	emit.Contract(fmt.Sprintf("%s computes %d columns after the other, n > 0 times, of corrections all[16][width]: with", name, 16*tiles),
		"mix = key[16], query[16], before, beta, it sets d = all[token] = (v - (before·products + Σ key[i]·all[i]))·beta over i < token, and",
		"v = before·products + Σ query[i]·all[i] + query[token]·d, the products of queries standing ld bytes after those of keys.")
	all, width, n, token := emit.Arg("all"), emit.Arg("width"), emit.Arg("n"), emit.Arg("token")
	mix, products, ld, v := emit.Arg("mix"), emit.Arg("products"), emit.Arg("ld"), emit.Arg("v")
	SHLQ(Imm(2), width)
	before, beta, last := blank(), blank(), blank()
	VBROADCASTSS(Mem{Base: mix, Disp: 8 * chunk}, before)
	VBROADCASTSS(Mem{Base: mix, Disp: 8*chunk + 4}, beta)
	VBROADCASTSS(Mem{Base: mix, Index: token, Scale: 4, Disp: 4 * chunk}, last)
	i, d := GP64(), GP64()
	Label("columns")
	u, size := vectors(tiles, blank)
	o, _ := vectors(tiles, blank)
	for c := range u {
		VMULPS(Mem{Base: products, Disp: size * c}, before, u[c])
		VMULPS(Mem{Base: products, Index: ld, Scale: 1, Disp: size * c}, before, o[c])
	}
	MOVQ(all, d)
	XORQ(i, i)
	CMPQ(i, token)
	JE(LabelRef("end"))
	Label("earlier")
	key, query := blank(), blank()
	VBROADCASTSS(Mem{Base: mix, Index: i, Scale: 4}, key)
	VBROADCASTSS(Mem{Base: mix, Index: i, Scale: 4, Disp: 4 * chunk}, query)
	for c := range u {
		x := blank()
		VMOVUPS(Mem{Base: d, Disp: size * c}, x)
		VFMADD231PS(x, key, u[c])
		VFMADD231PS(x, query, o[c])
	}
	ADDQ(width, d)
	INCQ(i)
	CMPQ(i, token)
	JL(LabelRef("earlier"))
	Label("end")
	for c := range u {
		x := blank()
		VMOVUPS(Mem{Base: v, Disp: size * c}, x)
		VSUBPS(u[c], x, x)
		VMULPS(beta, x, x)
		VMOVUPS(x, Mem{Base: d, Disp: size * c})
		VFMADD231PS(x, last, o[c])
		VMOVUPS(o[c], Mem{Base: v, Disp: size * c})
	}
	for _, p := range []reg.Register{all, products, v} {
		ADDQ(U32(uint32(tiles*tileBytes)), p)
	}
	DECQ(n)
	JNE(LabelRef("columns"))
	emit.Done()
}

// fold emits the addition of a chunk's corrections to a panel, rows at a time.
func fold[V reg.VecVirtual](name string, rows, tiles int, blank func() V) {
	emit.Text(name, "func(panel *float32, width int, keys *float32, d *float32, before float32)")
	emit.Contract(fmt.Sprintf("%s sets panel[width][%d] to before·panel + Σ keys[i]ᵀ·d[i] over i < 16, in this order, of rows", name, 16*tiles),
		fmt.Sprintf("keys[16][width] and d[16][width], of which it takes %d columns; width is a positive multiple of 16.", 16*tiles))
	panel, width, keys, d := emit.Arg("panel"), emit.Arg("width"), emit.Arg("keys"), emit.Arg("d")
	before := blank()
	VBROADCASTSS(mustParam("before"), before)
	stride, key, add, i := GP64(), GP64(), GP64(), GP64()
	MOVQ(width, stride)
	SHLQ(Imm(2), stride)
	Label("rows")
	s, size := make([][]reg.VecVirtual, rows), 0
	for j := range s {
		s[j], size = vectors(tiles, blank)
		for c, v := range s[j] {
			VMULPS(Mem{Base: panel, Disp: tiles*tileBytes*j + size*c}, before, v)
		}
	}
	MOVQ(keys, key)
	MOVQ(d, add)
	MOVQ(U32(chunk), i)
	Label("tokens")
	x, _ := vectors(tiles, blank)
	for c, v := range x {
		VMOVUPS(Mem{Base: add, Disp: size * c}, v)
	}
	for j := range s {
		f := blank()
		VBROADCASTSS(Mem{Base: key, Disp: 4 * j}, f)
		for c, v := range s[j] {
			VFMADD231PS(x[c], f, v)
		}
	}
	ADDQ(stride, key)
	ADDQ(stride, add)
	DECQ(i)
	JNE(LabelRef("tokens"))
	for j := range s {
		for c, v := range s[j] {
			VMOVUPS(v, Mem{Base: panel, Disp: tiles*tileBytes*j + size*c})
		}
	}
	ADDQ(U32(uint32(rows*tiles*tileBytes)), panel)
	ADDQ(U32(uint32(4*rows)), keys)
	SUBQ(Imm(uint64(rows)), width)
	JNE(LabelRef("rows"))
	emit.Done()
}

// space emits tokens on their way through a tile of a state space, one after the other: rows of it are read
// once for all of them.
func space[V reg.VecVirtual](name string, tokens int, blank func() V) {
	emit.Text(name, "func(state *float32, length int, b *float32, c *float32, stride int, x *float32, y *float32, ld int, decays *float32)")
	emit.Contract(fmt.Sprintf("%s takes %d tokens, one after the other, through state[length][16]: state = decay·state + b[i]·x of row i,", name, tokens),
		"and y = Σ c[i]·state, in the order of rows. The b and c of tokens are stride bytes apart, their x[16] and y[16] ld bytes; length is positive.")
	state, length := emit.Arg("state"), emit.Arg("length")
	b, c := emit.NewRows("b", "stride", 0, tokens), emit.NewRows("c", "stride", 0, tokens)
	in, out, ld, decays := emit.Arg("x"), emit.Arg("y"), emit.Arg("ld"), emit.Arg("decays")
	x, y, decay, size := make([][]reg.VecVirtual, tokens), make([][]reg.VecVirtual, tokens), make([]V, tokens), 0
	for t := range tokens {
		x[t], size = vectors(1, blank)
		y[t], _ = vectors(1, blank)
		for v := range x[t] {
			VMOVUPS(Mem{Base: in, Disp: size * v}, x[t][v])
			emit.Zero(y[t][v])
		}
		decay[t] = blank()
		VBROADCASTSS(Mem{Base: decays, Disp: 4 * t}, decay[t])
		ADDQ(ld, in)
	}
	Label("row")
	s, _ := vectors(1, blank)
	for v := range s {
		VMOVUPS(Mem{Base: state, Disp: size * v}, s[v])
	}
	if tokens == 1 {
		PREFETCHT0(Mem{Base: state, Disp: ahead})
	}
	for t := range tokens {
		fb, fc := blank(), blank()
		VBROADCASTSS(b.At(t, 0), fb)
		VBROADCASTSS(c.At(t, 0), fc)
		for v := range s {
			VMULPS(decay[t], s[v], s[v])
			VFMADD231PS(x[t][v], fb, s[v])
			VFMADD231PS(s[v], fc, y[t][v])
		}
	}
	for v := range s {
		VMOVUPS(s[v], Mem{Base: state, Disp: size * v})
	}
	ADDQ(Imm(tileBytes), state)
	b.Advance(4)
	c.Advance(4)
	DECQ(length)
	JNE(LabelRef("row"))
	for t := range tokens {
		for v := range y[t] {
			VMOVUPS(y[t][v], Mem{Base: out, Disp: size * v})
		}
		ADDQ(ld, out)
	}
	emit.Done()
}

// mustParam returns the place of a parameter.
func mustParam(name string) Op {
	b, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}
