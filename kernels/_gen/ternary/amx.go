package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// AMX multiply-add. A tile holds the digits of a band of 16 rows and 64 columns, another one those columns of up to 16
// tokens. TDPBSUD multiplies both in 16 cycles, where VPDPBUSD takes 128.
//
//   - Four sums are under way, as it takes 52 cycles until TDPBSUD can add to its sum again: four bands of up to 16
//     tokens, or two of up to 32, which load half as many tiles for each product.
//   - Digits are unpacked a chunk ahead, into L1: a load of a tile waits until stores have left their buffer, and these
//     do so once the products before them are done. What is unpacked again for further tokens costs little beside
//     products, and less than panels of a whole strip that come from L2.
//   - Columns of I2 stay in their order, so that activations are read as they are: VPMULTISHIFTQB takes four
//     neighbours out of a byte. Digits of I1 come out by position, so that theirs are arranged as quads of one token.

const (
	amxBands = 4    // of a strip, 16 rows each
	amxTile  = 1024 // bytes of a tile of digits
)

func AMX() {
	shifts := emit.Table("amxShifts", emit.Fill(4*64, func(i int) byte { return byte(32*(i%8/4) + 8*(i/64) + 2*(i%4)) }))
	d := newGFNIDigits()
	for _, g := range []int{4, 5} {
		for tokens := 1; tokens <= 2; tokens++ {
			u := &amxUnpacker{g: g, bands: amxBands / tokens, chunk: 4, shifts: shifts, trits: d}
			if g == 5 {
				u.chunk = 16
			}
			amx(u, tokens)
		}
	}
}

// amxUnpacker unpacks chunks of blocks whose digits are whole tiles.
type amxUnpacker struct {
	g, bands, chunk int // trits of a byte, bands, blocks of a chunk
	shifts          Mem
	trits           *gfniDigits
	w, left         reg.Register  // what is to be unpacked, and how many blocks
	into, from      reg.GPVirtual // tiles that are filled, and those that are read
	at, count       reg.GPVirtual
	chunks          reg.Register // blocks that are to be multiplied
	three           reg.VecVirtual
	by              []reg.VecVirtual // of I2 shifts, of I1 tables of digits
	halves          []reg.VecVirtual // of I1, tables that split
}

// tiles returns the number of tiles of a chunk.
func (u *amxUnpacker) tiles() int { return u.chunk * u.g * 64 / amxTile }

// size returns the bytes of a chunk's tiles.
func (u *amxUnpacker) size() int { return u.bands * u.tiles() * amxTile }

func (u *amxUnpacker) begin() {
	u.w, u.left, u.chunks = emit.Arg("w"), emit.Arg("blocks"), emit.Arg("blocks")
	u.into, u.from, u.at, u.count = GP64(), GP64(), GP64(), GP64()
	Load(Param("tiles"), u.from)
	LEAQ(Mem{Base: u.from, Disp: u.size()}, u.into)
	load := func(m Mem) reg.VecVirtual {
		v := ZMM()
		VMOVDQU64(m, v)
		return v
	}
	if u.g == 4 {
		u.three = broadcast(3)
		for c := range 4 {
			u.by = append(u.by, load(u.shifts.Offset(64*c)))
		}
		return
	}
	u.halves = []reg.VecVirtual{load(u.trits.low), load(u.trits.high)}
	for _, t := range u.trits.digits {
		u.by = append(u.by, load(t))
	}
}

// unpack fills the tiles of the next chunk. Blocks after the last one are zeros, which meet whatever activations stand
// there.
func (u *amxUnpacker) unpack(name string) {
	MOVQ(u.into, u.at)
	MOVQ(U32(uint32(u.chunk)), u.count)
	Label(name)
	for r := range u.bands {
		PREFETCHT1(Mem{Base: u.w, Disp: 64*r + vnniPrefetch})
		x := ZMM()
		VMOVDQU64(Mem{Base: u.w, Disp: 64 * r}, x)
		store := func(j int, d reg.VecVirtual) {
			VMOVDQA64(d, Mem{Base: u.at, Disp: r*u.tiles()*amxTile + 64*j})
		}
		if u.g == 4 {
			for c, by := range u.by {
				d := ZMM()
				VPMULTISHIFTQB(x, by, d)
				VPANDD(u.three, d, d)
				store(c, d)
			}
			continue
		}
		i := ZMM()
		VPSRLW(Imm(2), x, i) // VPERMB ignores what comes from the neighbour
		var half [2]reg.VecVirtual
		for h, table := range u.halves {
			half[h] = ZMM()
			VPERMB(table, i, half[h])
			VPADDB(x, half[h], half[h])
		}
		for j, table := range u.by {
			d := ZMM()
			VPERMB(table, half[j/3], d)
			store(j, d)
		}
	}
	ADDQ(U32(stripBytes), u.w)
	ADDQ(U32(uint32(64*u.g)), u.at)
	DECQ(u.left)
	JEQ(LabelRef(name + "Last"))
	DECQ(u.count)
	JNE(LabelRef(name))
	JMP(LabelRef(name + "Done"))
	Label(name + "Last")
	zero := ZMM()
	VPXORD(zero, zero, zero)
	Label(name + "Zero")
	DECQ(u.count)
	JEQ(LabelRef(name + "Done"))
	for r := range u.bands {
		for j := range u.g {
			VMOVDQA64(zero, Mem{Base: u.at, Disp: r*u.tiles()*amxTile + 64*j})
		}
	}
	ADDQ(U32(uint32(64*u.g)), u.at)
	JMP(LabelRef(name + "Zero"))
	Label(name + "Done")
}

// amx emits the product of some bands of a strip and one or two tiles of tokens.
func amx(u *amxUnpacker, tokens int) {
	bands := u.bands
	name := fmt.Sprintf("amx%dx%dx%dAVX512", u.g, 16*bands, 16*tokens)
	emit.Text(name, "func(w *byte, act *int8, stride, blocks, n int, sizes, tiles *byte, sums, negSum *int32, tokens, rows, y *float32, ldy int)")
	amxTiles.Add(tokens, byTrits(u.g))
	order := "as they are"
	if u.g == 5 {
		order = "as [blocks][5][4]"
	}
	emit.Contract(fmt.Sprintf("%s sets y[n][%d] = float32(sum)·(tokens·rows) for the first rows of w[blocks][64][4] and act[n], %s,", name, 16*bands, order),
		fmt.Sprintf("stride bytes apart and readable for chunks of %d blocks; n is %d to %d, blocks is positive, rows of y are ldy floats", u.chunk, 16*tokens-15, 16*tokens),
		fmt.Sprintf("apart. sizes are of tiles [%d of tokens][%d] of sums, then of tokens, then of two of digits. tiles holds %d bytes and", tokens, bands, 2*u.size()),
		fmt.Sprintf("sums int32[%d][%d].", 16*tokens, 16*bands))
	emit.TileConfigure(Mem{Base: emit.Arg("sizes")})
	act, stride := []reg.Register{emit.Arg("act")}, emit.Arg("stride")
	if tokens > 1 {
		next := GP64()
		MOVQ(stride, next)
		SHLQ(Imm(4), next)
		ADDQ(act[0], next)
		act = append(act, next)
	}
	line := GP64()
	MOVQ(U32(64), line)
	sum := func(t, r int) emit.Tile { return emit.Tile(t*bands + r) }
	of := func(t int) emit.Tile { return emit.Tile(tokens*bands + t) }
	digits := func(r int) emit.Tile { return emit.Tile(tokens*bands + tokens + r%2) }
	for t := range tokens {
		for r := range bands {
			emit.TileZero(sum(t, r))
		}
	}
	u.begin()
	u.unpack("first")
	Label("loop")
	XCHGQ(u.into, u.from)
	TESTQ(u.left, u.left)
	JEQ(LabelRef("aheadDone"))
	u.unpack("ahead")
	for i := range u.tiles() {
		for t := range tokens {
			emit.TileLoad(Mem{Base: act[t], Index: stride, Scale: 1, Disp: 64 * i}, of(t))
		}
		for r := range bands {
			emit.TileLoad(Mem{Base: u.from, Index: line, Scale: 1, Disp: (r*u.tiles() + i) * amxTile}, digits(r))
			for t := range tokens {
				emit.TileDot(digits(r), of(t), sum(t, r), true, false)
			}
		}
	}
	for t := range tokens {
		ADDQ(U32(uint32(64*u.tiles())), act[t])
	}
	SUBQ(U32(uint32(u.chunk)), u.chunks)
	JG(LabelRef("loop"))
	Comment("Scale the sums and store them, token by token")
	sums := emit.Arg("sums")
	MOVQ(U32(uint32(64*bands)), line)
	for t := range tokens {
		for r := range bands {
			emit.TileStore(sum(t, r), Mem{Base: sums, Index: line, Scale: 1, Disp: 16*64*bands*t + 64*r})
		}
	}
	emit.TileRelease()
	n, corr, y, ldy := emit.Arg("n"), emit.Arg("negSum"), emit.Arg("y"), emit.Arg("ldy")
	scales, rows := emit.Arg("tokens"), emit.Arg("rows")
	SHLQ(Imm(2), ldy)
	scale := zmms(bands)
	for r := range scale {
		VMOVUPS(Mem{Base: rows, Disp: 64 * r}, scale[r])
	}
	Label("finish")
	offset := ZMM()
	VPBROADCASTD(Mem{Base: corr}, offset)
	for r := range scale {
		v, f := ZMM(), ZMM()
		VPADDD(Mem{Base: sums, Disp: 64 * r}, offset, v)
		VMULPS_BCST(Mem{Base: scales}, scale[r], f)
		VCVTDQ2PS(v, v)
		VMULPS(f, v, v)
		VMOVUPS(v, Mem{Base: y, Disp: 64 * r})
	}
	ADDQ(U32(uint32(64*bands)), sums)
	ADDQ(Imm(4), corr)
	ADDQ(Imm(4), scales)
	ADDQ(ldy, y)
	DECQ(n)
	JNE(LabelRef("finish"))
	emit.Done()
}
