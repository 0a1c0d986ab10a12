package ternary

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// bitPairs takes digits out of I2 by shifts and masks.
type bitPairs struct {
	threes, twelves Mem
	three           reg.VecVirtual
}

func newBitPairs() *bitPairs {
	return &bitPairs{threes: emit.Table("crumb0", emit.Fill(32, func(int) byte { return 3 })), twelves: emit.Table("crumb1", emit.Fill(32, func(int) byte { return 12 }))}
}

func (k *bitPairs) registers(n int) int {
	switch {
	case n == 1:
		return 8
	case n == 2:
		return 4
	}
	return 2
}

func (k *bitPairs) load(n int) {
	if !k.full(n) {
		k.three = LoadY(k.threes)
	}
}

// full reports whether the sums of n tokens leave no register for the mask.
func (k *bitPairs) full(n int) bool { return n == 2 || n == 5 }

func (k *bitPairs) mask(n int, x, p reg.VecVirtual) {
	if k.full(n) {
		VPAND(k.threes, x, p)
	} else {
		VPAND(k.three, x, p)
	}
}

func (k *bitPairs) multiply(w, act Mem, tokens int, sum [][]reg.VecVirtual) {
	n := len(sum[0])
	switch n {
	case 1:
		k.stream(w, act, sum)
		return
	case 2:
		k.pair(w, act, sum)
		return
	}
	x, p := make([]reg.VecVirtual, len(sum)), make([]reg.VecVirtual, len(sum))
	for r := range sum {
		x[r], p[r] = LoadY(w.Offset(32*r)), YMM()
	}
	for j := range 4 {
		for r := range sum {
			if j > 0 {
				VPSRLW(Imm(2), x[r], x[r])
			}
			k.mask(n, x[r], p[r])
		}
		for i := range n {
			b := YMM()
			VPBROADCASTD(act.Offset(4*(j*tokens+i)), b)
			for r := range sum {
				m := b
				if r+1 < len(sum) {
					m = YMM()
				}
				VPMADDUBSW(b, p[r], m)
				VPADDW(m, sum[r][i], sum[r][i])
			}
		}
	}
}

// pair multiplies with two tokens: it keeps their quads, for more rows at a time
// than there are registers for digits.
func (k *bitPairs) pair(w, act Mem, sum [][]reg.VecVirtual) {
	x := make([]reg.VecVirtual, len(sum))
	for r := range sum {
		x[r] = LoadY(w.Offset(32 * r))
	}
	for j := range 4 {
		b, c := YMM(), YMM()
		VPBROADCASTD(act.Offset(8*j), b)
		VPBROADCASTD(act.Offset(8*j+4), c)
		for r := range sum {
			p, m := YMM(), YMM()
			if j > 0 {
				VPSRLW(Imm(2), x[r], x[r])
			}
			k.mask(2, x[r], p)
			VPMADDUBSW(b, p, m)
			VPADDW(m, sum[r][0], sum[r][0])
			VPMADDUBSW(c, p, p)
			VPADDW(p, sum[r][1], sum[r][1])
		}
	}
}

// stream multiplies with one token: all rows at once, so that weights are read
// in order. Digits 1 and 3 are multiplied where they stand, as 4 times what they
// are, which saves a shift: 4·4·127 for both of a pair fit int16.
func (k *bitPairs) stream(w, act Mem, sum [][]reg.VecVirtual) {
	var b [4]reg.VecVirtual
	for j := range b {
		b[j] = YMM()
		VPBROADCASTD(act.Offset(4*j), b[j])
	}
	for r := range sum {
		s := sum[r][0]
		x, p, q := LoadY(w.Offset(32*r)), YMM(), YMM()
		VPAND(k.three, x, p)
		VPMADDUBSW(b[0], p, p)
		VPADDW(p, s, s)
		VPAND(k.twelves, x, q)
		VPMADDUBSW(b[1], q, q)
		VPSRLW(Imm(4), x, x)
		VPAND(k.three, x, p)
		VPMADDUBSW(b[2], p, p)
		VPADDW(p, s, s)
		VPAND(k.twelves, x, x)
		VPMADDUBSW(b[3], x, x)
		VPADDW(x, q, q)
		VPSRAW(Imm(2), q, q)
		VPADDW(q, s, s)
	}
}

// base3 takes digits out of I1. Bytes have no multiply: each half of a 16-bit
// lane is divided by 27 as the high part of a 16-bit product, and VPSHUFB tables
// over 0..8 give two digits each.
type base3 struct {
	by27, even, eight, seventeen Mem
	tables                       [4]Mem // by what a lookup is for
	even16                       reg.VecVirtual
	held                         [4]reg.VecVirtual // tables in registers, as far as there are some
}

// The tables of base3, the most used first.
const (
	units = iota
	threes
	nines
	twentySevens
)

func newBase3() *base3 {
	t := func(name string, f func(i int) int) Mem {
		return emit.Table(name, emit.Repeat16(emit.Fill(16, func(i int) byte {
			if i > 8 {
				return 0
			}
			return byte(f(i))
		})))
	}
	return &base3{
		by27:      emit.Table("by27", emit.Words(16, 2428)), // x·2428>>16 = x/27 for x <= 242
		even:      emit.Table("even", emit.Words(16, 0x00ff)),
		eight:     emit.Table("eight", emit.Fill(32, func(int) byte { return 8 })),
		seventeen: emit.Table("seventeen", emit.Fill(32, func(int) byte { return 17 })),
		tables: [4]Mem{
			t("units", func(i int) int { return i % 3 }),
			t("threes", func(i int) int { return i / 3 }),
			t("nines", func(i int) int { return 9 * i }),
			t("twentySevens", func(i int) int { return 27 * i }),
		},
	}
}

func (k *base3) registers(n int) int {
	switch {
	case n == 1:
		return 8
	case n == 2:
		return 4
	case n <= 4:
		return 2
	}
	return 1
}

func (k *base3) load(n int) {
	k.even16 = LoadY(k.even)
	free := min(16-1-4-n*k.registers(n), len(k.tables))
	for i := range k.tables {
		k.held[i] = nil
		if i < free {
			k.held[i] = LoadY(k.tables[i])
		}
	}
}

// look sets p to the entries of a table at idx, which may be p.
func (k *base3) look(table int, idx, p reg.VecVirtual) {
	t := k.held[table]
	if t == nil {
		t = LoadY(k.tables[table])
	}
	VPSHUFB(idx, t, p)
}

func (k *base3) multiply(w, act Mem, _ int, sum [][]reg.VecVirtual) {
	n := len(sum[0])
	for r := range sum {
		lo, hi, p := LoadY(w.Offset(32*r)), YMM(), YMM()
		use := func(j int, p reg.VecVirtual) {
			for i := range n {
				add(act.Offset(4*(j*n+i)), p, sum[r][i])
			}
		}
		Comment("32 indices: divide, look digits up, multiply")
		// The quotients of odd bytes come out in place, those of even bytes from a second product.
		VPAND(k.even16, lo, p)
		VPANDN(lo, k.even16, hi)
		VPMULHUW(k.by27, hi, hi)
		VPMULHUW(k.by27, p, p)
		VPBLENDVB(k.even16, p, hi, hi)
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
