package ternary

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// AVX-VNNI multiply-add: VPDPBUSD on registers of 8 rows × 4 bytes. Trits enter
// as digits 0..2, sums are exact in int32. Golden Cove, Lion Cove and Zen 5
// begin two VPDPBUSD a cycle, each 4 or 5 cycles after the one before on the
// same sum: ten sums keep them busy. Shifts wait for the same two units, masks
// have a third, loads their own; so tiles save shifts where there are registers
// for it, by multiplying every other digit where it stands, 4 times what it is,
// into sums of their own.

// dotChunk is the number of blocks that all rows of a tile read before the next ones:
// both, for the next are prefetched meanwhile, take 24 KiB of L1.
const dotChunk = 48

func Dot() {
	for _, d := range []struct {
		dotDigits
		g      int
		tokens []int
	}{{&dotBitPairs{newBitPairs()}, 4, emit.Widths(1, 6, 5)}, {&dotBase3{newBase3(), emit.Table("odd", emit.Words(16, 0xff00))}, 5, emit.Widths(1, 8, 5, 7)}} {
		for _, n := range d.tokens {
			dotTile(d, d.g, n)
		}
	}
}

// dotDigits is a way to multiply one block of some rows with n tokens.
type dotDigits interface {
	// shape returns how many registers of 8 rows are taken together, and whether odd
	// digits have sums of their own.
	shape(n int) (registers int, odd bool)
	// load puts constants into registers.
	load(n int)
	// multiply adds to even (and odd)[registers][n] the products of the block at w with the quads at act.
	multiply(w, act Mem, even, odd [][]reg.VecVirtual)
}

// dotTile emits the product of whole strips with n tokens.
func dotTile(d dotDigits, g, n int) {
	name := fmt.Sprintf("dot%dx%d%s", g, n, emit.VexSuffix)
	ahead, prefetch := beginMAD(name, "cpu.AVXVNNI", g, n)
	w, act, strips, rows, y, acc := emit.Arg("w"), emit.Arg("act"), emit.Arg("strips"), emit.Arg("rows"), emit.Arg("y"), emit.Arg("acc")
	rm, apart := d.shape(n)
	groups := 8 / rm
	Label("strip")
	tmp := beginSums(n, acc)
	d.load(n)
	a, left := GP64(), GP64()
	MOVQ(act, a)
	if n > 1 {
		LEAQ(Mem{Base: w, Disp: dotChunk * stripBytes}, ahead)
	}
	Load(Param("blocks"), left)
	Label("chunk")
	count, group, out := GP64(), GP64(), GP64()
	if groups > 1 {
		Comment("As many blocks as stay in L1 while all rows of them are taken")
		MOVQ(U32(dotChunk), count)
		CMPQ(left, count)
		CMOVQLT(left, count)
		SUBQ(count, left)
		MOVQ(U32(uint32(groups)), group)
		MOVQ(acc, out)
		Label("group")
	} else {
		count, out = left, acc.(reg.GPVirtual)
	}
	Comment("These rows of the blocks, asking for later blocks line by line")
	even, odd := zeroSums(rm, n), [][]reg.VecVirtual(nil)
	if apart {
		odd = zeroSums(rm, n)
	}
	c := GP64()
	MOVQ(count, c)
	Label("loop")
	for line := 0; line < 32*rm; line += 64 {
		prefetch(Mem{Base: ahead, Disp: line})
	}
	ADDQ(U32(uint32(32*rm)), ahead)
	d.multiply(Mem{Base: w}, Mem{Base: a}, even, odd)
	ADDQ(U32(stripBytes), w)
	ADDQ(Imm(uint64(4*g*n)), a)
	DECQ(c)
	JNE(LabelRef("loop"))
	Comment("Add the sums to acc")
	for r := range even {
		for i, s := range even[r] {
			m := Mem{Base: out, Disp: stripBytes*i + 32*r}
			if apart {
				VPSRAD(Imm(2), odd[r][i], odd[r][i])
				VPADDD(odd[r][i], s, s)
			}
			VPADDD(m, s, s)
			VMOVDQU(s, m)
		}
	}
	if groups > 1 {
		Comment("Back to the next rows of the same blocks, which L1 holds")
		MOVQ(count, tmp)
		SHLQ(Imm(8), tmp)
		SUBQ(tmp, w)
		ADDQ(U32(uint32(32*rm)), w)
		IMUL3Q(U32(uint32(4*g*n)), count, tmp)
		SUBQ(tmp, a)
		ADDQ(U32(uint32(32*rm)), out)
		DECQ(group)
		JNE(LabelRef("group"))
		Comment("On to the next blocks")
		ADDQ(tmp, a)
		MOVQ(count, tmp)
		SHLQ(Imm(8), tmp)
		LEAQ(Mem{Base: w, Index: tmp, Scale: 1, Disp: -stripBytes}, w)
		TESTQ(left, left)
		JNE(LabelRef("chunk"))
	}
	madFinish(n, rows, y, acc)
	ADDQ(U32(stripBytes), rows)
	ADDQ(U32(stripBytes), y)
	DECQ(strips)
	JNE(LabelRef("strip"))
	emit.Done()
}

// dots adds to sum[registers][n] the products of p[registers] and the n quads at act.
func dots(act Mem, p []reg.VecVirtual, sum [][]reg.VecVirtual) {
	for i := range sum[0] {
		b := YMM()
		VPBROADCASTD(act.Offset(4*i), b)
		for r := range sum {
			VPDPBUSD(b, p[r], sum[r][i])
		}
	}
}

// dotBitPairs takes digits out of I2 by shifts and masks.
type dotBitPairs struct{ *bitPairs }

// shape: a register of weights takes this many cycles with n tokens (llvm-mca,
// alderlake), bound by the two units and by the latency on a sum; 2n of them are
// VPDPBUSD:
//
//	n          1     2     3     4     5     6     7
//	registers  8     4     2     2     1     1     1
//	sums       8     8     12    8     10    12    14
//	cycles     3.7   5.9   7.1   10.0  11.3  13.1  16.4
func (k *dotBitPairs) shape(n int) (registers int, odd bool) {
	switch n {
	case 1:
		return 8, false
	case 2:
		return 4, false
	case 3:
		return 2, true
	case 4:
		return 2, false
	}
	return 1, true
}

func (k *dotBitPairs) load(n int) {
	if k.three = nil; n != 7 { // whose 14 sums leave no register for the mask
		k.three = LoadY(k.threes)
	}
}

func (k *dotBitPairs) multiply(w, act Mem, even, odd [][]reg.VecVirtual) {
	n := len(even[0])
	quad := func(j int) Mem { return act.Offset(4 * j * n) }
	switch {
	case odd != nil:
		k.halves(w, quad, even, odd)
	case n <= 2:
		k.stream(w, quad, even)
	default:
		x, p := make([]reg.VecVirtual, len(even)), make([]reg.VecVirtual, len(even))
		for r := range x {
			x[r], p[r] = LoadY(w.Offset(32*r)), YMM()
		}
		for j := range 4 {
			for r := range x {
				if j > 0 {
					VPSRLW(Imm(2), x[r], x[r])
				}
				VPAND(k.three, x[r], p[r])
			}
			dots(quad(j), p, even)
		}
	}
}

// halves multiplies digits 0 and 2 as they are and 1 and 3 as 4 times what
// they are. Weights are loaded anew for each, for want of registers.
func (k *dotBitPairs) halves(w Mem, quad func(int) Mem, even, odd [][]reg.VecVirtual) {
	for j := range 4 {
		p, sum := make([]reg.VecVirtual, len(even)), even
		var mask Op = k.twelves
		if j%2 == 1 {
			sum = odd
		} else if mask = k.threes; k.three != nil {
			mask = k.three
		}
		for r := range p {
			p[r] = LoadY(w.Offset(32 * r))
			if j >= 2 {
				VPSRLW(Imm(4), p[r], p[r])
			}
			VPAND(mask, p[r], p[r])
		}
		dots(quad(j), p, sum)
	}
}

// stream multiplies with one or two tokens, whose quads it keeps: rows are
// taken in the order they lie in.
func (k *dotBitPairs) stream(w Mem, quad func(int) Mem, sum [][]reg.VecVirtual) {
	n := len(sum[0])
	take := func(js []int, x, p reg.VecVirtual, b [][]reg.VecVirtual, r int) {
		for _, j := range js {
			if j > 0 {
				VPSRLW(Imm(2), x, x)
			}
			VPAND(k.three, x, p)
			for i := range n {
				VPDPBUSD(b[j][i], p, sum[r][i])
			}
		}
	}
	broadcast := func(js ...int) [][]reg.VecVirtual {
		b := make([][]reg.VecVirtual, 4)
		for _, j := range js {
			for i := range n {
				v := YMM()
				VPBROADCASTD(quad(j).Offset(4*i), v)
				b[j] = append(b[j], v)
			}
		}
		return b
	}
	if n == 1 {
		b := broadcast(0, 1, 2, 3)
		for r := range sum {
			take([]int{0, 1, 2, 3}, LoadY(w.Offset(32*r)), YMM(), b, r)
		}
		return
	}
	x := make([]reg.VecVirtual, len(sum))
	for r := range x {
		x[r] = LoadY(w.Offset(32 * r))
	}
	for j := range 4 {
		b := broadcast(j)
		for r := range x {
			take([]int{j}, x[r], YMM(), b, r)
		}
	}
}

// dotBase3 takes digits out of I1, as base3 does.
type dotBase3 struct {
	*base3
	odd Mem
}

// shape: a register of weights takes this many cycles with n tokens, about 20
// instructions for its digits among them (llvm-mca, alderlake):
//
//	n          1     2     3     4     5     6     7     8
//	registers  8     4     2     2     2     2     1     1
//	cycles     8.1   10.1  12.6  14.1  17.1  18.2  25.2  25.2
func (k *dotBase3) shape(n int) (registers int, odd bool) {
	switch {
	case n == 1:
		return 8, false
	case n == 2:
		return 4, false
	case n <= 6:
		return 2, false
	}
	return 1, false
}

func (k *dotBase3) load(n int) {
	registers, _ := k.shape(n)
	free := min(16-4-n*registers, len(k.tables))
	for i := range k.tables {
		k.held[i] = nil
		if i < free {
			k.held[i] = LoadY(k.tables[i])
		}
	}
}

func (k *dotBase3) look(table int, idx, p reg.VecVirtual) {
	t := k.held[table]
	if t == nil {
		t = p
		VMOVDQU(k.tables[table], p)
	}
	VPSHUFB(idx, t, p)
}

func (k *dotBase3) multiply(w, act Mem, sum, _ [][]reg.VecVirtual) {
	n := len(sum[0])
	for r := range sum {
		use := func(j int, p reg.VecVirtual) { dots(act.Offset(4*j*n), []reg.VecVirtual{p}, sum[r:r+1]) }
		lo, hi, p := LoadY(w.Offset(32*r)), YMM(), YMM()
		Comment("32 indices: divide by 27, look digits up, multiply")
		// Quotients of odd bytes come out in place over what is dropped, those of even bytes from a second product.
		VPAND(k.even, lo, p)
		VPAND(k.odd, lo, hi)
		VPMULHUW(k.by27, hi, hi)
		VPMULHUW(k.by27, p, p)
		VPAND(k.odd, hi, hi)
		VPOR(p, hi, hi)
		k.look(twentySevens, hi, p)
		VPSUBB(p, lo, lo)
		k.look(units, hi, p)
		use(3, p)
		k.look(threes, hi, p)
		use(4, p)
		Comment("lo is 0..26 now; its ninths are counted by comparing")
		VPCMPGTB(k.eight, lo, hi)
		VPCMPGTB(k.seventeen, lo, p)
		VPADDB(p, hi, hi)
		VPABSB(hi, hi)
		k.look(nines, hi, p)
		VPSUBB(p, lo, lo)
		use(2, hi)
		k.look(units, lo, p)
		use(0, p)
		k.look(threes, lo, p)
		use(1, p)
	}
}
