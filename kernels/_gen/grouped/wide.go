package grouped

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// wide generates an AVX-512 VNNI tile of one token: a register is a band, products add up
// in int32. The float32 operations are those of the AVX2 tiles in the same
// order, so the bits agree.
func wide(p packing, isa string) {
	t := beginStream(p, isa, wideBands)
	if p.super() {
		t.wideQ6()
	} else {
		t.wideSums(map[string]func() func([]reg.VecVirtual){"Q4": t.wideQ4, "Q4M": t.wideQ4, "Q41": t.wideQ4, "Q8": t.wideQ8, "FP4": t.wideQ4}[p.name]())
	}
	emit.Done()
}

// wideSums runs group over all groups with the sums of y in registers.
func (t *tile) wideSums(group func([]reg.VecVirtual)) {
	sums := make([][]reg.VecVirtual, t.bands)
	for b := range sums {
		sums[b] = row(t.tokens)
		for i, v := range sums[b] {
			VMOVUPS(t.y.At(i, 64*b), v)
		}
	}
	t.loop(nil, func() { group(sums[t.band]) }, nil)
	for b := range sums {
		for i, v := range sums[b] {
			VMOVUPS(v, t.y.At(i, 64*b))
		}
	}
}

func row(tokens int) []reg.VecVirtual {
	r := make([]reg.VecVirtual, tokens)
	for i := range r {
		r[i] = ZMM()
	}
	return r
}

// dot adds the products of four columns, bytes at disp of the records.
func (t *tile) dot(sum []reg.VecVirtual, code reg.VecVirtual, disp int) {
	for i := range sum {
		VPDPBUSD_BCST(t.acts.At(i, disp), code, sum[i])
	}
}

func (t *tile) wideQ4() func(sums []reg.VecVirtual) {
	low := ZMM()
	emit.FillLanes(0x0f0f0f0f, low)
	level := t.levels(true)
	return func(sums []reg.VecVirtual) {
		sum := row(t.tokens)
		for i := range sum {
			if t.least() {
				emit.Zero(sum[i])
				continue
			}
			VPBROADCASTD(t.acts.At(i, acts.RecSum8), sum[i])
			if t.name == "FP4" {
				VPSLLD(Imm(1), sum[i], sum[i])
			}
		}
		for p := range 4 {
			raw, code := ZMM(), ZMM()
			VMOVDQU64(t.code(p*planeBytes), raw)
			VPANDD(low, raw, code)
			level(code)
			t.dot(sum, code, 4*p)
			VPSRLW(Imm(4), raw, raw)
			VPANDD(low, raw, raw)
			level(raw)
			t.dot(sum, raw, 16+4*p)
		}
		t.wideFinish(sums, sum, t.wideScale(sum))
	}
}

// wideScale multiplies the sums of a group of Q4M by its scales and gives its
// minimums, or those of Q41; nil where there are none.
func (t *tile) wideScale(sum []reg.VecVirtual) (least reg.VecVirtual) {
	switch t.name {
	case "Q41":
		least = ZMM()
		VCVTPH2PS(t.scaleAt(32), least)
		return least
	case "Q4M":
	default:
		return nil
	}
	sc, d := ZMM(), ZMM()
	VPMOVZXBD(t.smallAt(64), sc)
	for i := range sum {
		VPMULLD(sc, sum[i], sum[i])
	}
	least = ZMM()
	VPMOVZXBD(t.smallAt(80), least)
	VCVTDQ2PS(least, least)
	VCVTPH2PS(t.scaleAt(32), d)
	VMULPS(d, least, least)
	return least
}

// wideCodes loads the codes of superblocks, whole bands.
func (t *tile) wideCodes() superCodes {
	if t.raised > 0 {
		return t.levelCodes(64)
	}
	low, high := ZMM(), ZMM()
	emit.FillLanes(0x0f0f0f0f, low)
	emit.FillLanes(0x30303030, high)
	return superCodes{inOrder, func(h, p, _ int) reg.VecVirtual { return t.wideSixBits(h, p, low, high) }}
}

func (t *tile) wideQ6() {
	codes := t.wideCodes()
	super := make([]*superSums, t.bands)
	for b := range super {
		sums := make([][]reg.VecVirtual, t.tokens)
		for i, v := range row(t.tokens) {
			sums[i] = []reg.VecVirtual{v}
		}
		super[b] = t.superRegisters(b, sums)
	}
	t.loop(func() { super[t.band].begin() }, func() {
		var first []reg.VecVirtual
		for h := range 2 {
			sum := row(t.tokens)
			for i := range sum {
				VPBROADCASTD(t.acts.At(i, acts.RecHalf32+4*h), sum[i])
				if t.doubled() > 0 {
					VPADDD(sum[i], sum[i], sum[i])
				}
			}
			for _, p := range codes.order {
				t.dot(sum, codes.word(h, p, 0), 16*h+4*p)
			}
			t.wideHalf(first, sum, h)
			first = sum
		}
		for i, v := range first {
			VCVTDQ2PS(v, v)
			VFMADD231PS_BCST(t.acts.At(i, acts.RecScale), v, super[t.band].regs[i][0])
		}
	}, func() { super[t.band].end(t.wideScales()) })
}

// wideScales gives d of the current band.
func (t *tile) wideScales() []reg.VecVirtual {
	d := ZMM()
	VCVTPH2PS(t.scaleAt(0), d)
	t.putFactor([]reg.VecVirtual{d})
	return []reg.VecVirtual{d}
}

// wideSixBits gives the 6-bit codes of word 4h+p.
func (t *tile) wideSixBits(h, p int, low, high reg.VecVirtual) reg.VecVirtual {
	code, pair := ZMM(), ZMM()
	VMOVDQU64(t.code(p*planeBytes), code)
	if h == 1 {
		VPSRLW(Imm(4), code, code)
	}
	VPANDD(low, code, code)
	VMOVDQU64(t.code(nibbleBytes+h*planeBytes), pair)
	switch p {
	case 0, 1:
		VPSLLW(Imm(uint64(4-2*p)), pair, pair)
	case 3:
		VPSRLW(Imm(2), pair, pair)
	}
	VPANDD(high, pair, pair)
	VPORD(pair, code, code)
	return code
}

// wideHalf scales the sums of half h of a group and adds those of the first.
func (t *tile) wideHalf(first, sum []reg.VecVirtual, h int) {
	sc := ZMM()
	VPMOVSXBD(t.smallAt(t.halfScales(h)), sc)
	for i := range sum {
		VPMULLD(sc, sum[i], sum[i])
		if h == 1 {
			VPADDD(first[i], sum[i], sum[i])
		}
	}
}

func (t *tile) wideQ8() func(sums []reg.VecVirtual) {
	offset := ZMM()
	emit.FillLanes(0x80808080, offset)
	return func(sums []reg.VecVirtual) {
		Comment("codes become unsigned by adding 128; sums start at -128 times those of the activations")
		sum := row(t.tokens)
		for i := range sum {
			VPBROADCASTD(t.acts.At(i, acts.RecSum8), sum[i])
			VPSLLD(Imm(4), sum[i], sum[i])
		}
		for j := range 8 {
			w := ZMM()
			VPXORD(t.code(j*planeBytes), offset, w)
			t.dot(sum, w, 4*j)
		}
		t.wideFinish(sums, sum, nil)
	}
}

// wideFinish does as finish, for whole bands.
func (t *tile) wideFinish(sums, sum []reg.VecVirtual, least reg.VecVirtual) {
	d := ZMM()
	VCVTPH2PS(t.scaleAt(0), d)
	for i := range sum {
		VCVTDQ2PS(sum[i], sum[i])
		VMULPS(d, sum[i], sum[i])
		if least != nil {
			VFNMADD231PS_BCST(t.acts.At(i, acts.RecSum), least, sum[i])
		}
		VFMADD231PS_BCST(t.acts.At(i, acts.RecScale), sum[i], sums[i])
	}
}
