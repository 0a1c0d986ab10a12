package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/acts"
	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// A byte of bits is two nibbles, and VPERMB looks up 64 of them at once where
// unpacking takes two operations for each VPDPBUSD. A table register holds the sums
// of four columns that 16 nibbles name, for each of the four bytes of a word: byte
// 4·nibble + byte of the word. A sum has two bytes, of which VPDPBUSD adds one 16
// times.
//
// Tables are made in registers from nibble records, 16 operations a group for all bands:
// tables that come from memory (320 bytes a group) crowd the weights out of L1, and
// then one token was no faster than with unpacking. A band and a group take 14
// operations and a share of those 16, not 27.

// nibbleTables are registers [half of a group][low, high] and what makes them.
type nibbleTables struct {
	sums [2][2]reg.VecVirtual
	base reg.VecVirtual
	has  [4]reg.Register // the nibbles with a bit
}

func newNibbleTables() *nibbleTables {
	n := &nibbleTables{base: ZMM()}
	Comment("high parts of a nibble start at 8 for each bit that it has not")
	VMOVDQU64(emit.Table("nibbleBase", emit.Fill(64, func(i int) byte {
		bits := 0
		for b := range 4 {
			bits += i / 4 >> b & 1
		}
		return byte(8 * (4 - bits))
	})), n.base)
	t := GP32()
	for i, m := range []uint32{0xaaaa, 0xcccc, 0xf0f0, 0xff00} {
		k := K()
		MOVL(U32(m), t)
		KMOVW(t, k)
		n.has[i] = k
	}
	return n
}

// make makes the tables of a group. Entries are below 128, so adding dwords adds
// bytes.
func (n *nibbleTables) make(t *tile) {
	for h := range n.sums {
		low, high := ZMM(), ZMM()
		word := func(i int) Mem { return t.acts.At(0, 16*h+4*i) }
		VPBROADCASTD_Z(word(0), n.has[0], low)
		VMOVDQA64(n.base, high)
		for i, k := range n.has {
			if i > 0 {
				VPADDD_BCST(word(i), low, k, low)
			}
			VPADDD_BCST(word(i).Offset(acts.NibbleHigh), high, k, high)
		}
		n.sums[h] = [2]reg.VecVirtual{low, high}
	}
}

// lowNibbles generates the AVX-512 tile of one token and bits.
func lowNibbles(p packing, bands int) {
	name := fmt.Sprintf("grouped%sNibblesAVX512x%dx1", p.name, bands)
	emit.Text(name, streamSignature)
	p.in(streamTables).Add(1, p.keys("AVX512")...)
	emit.Contract(fmt.Sprintf("%s adds to y[%d] the products of bands of %s that are stride bytes apart with", name, bands*dense.BandRows, p.name),
		"nibble records. It prefetches as many bytes at next, which need not be memory at all.")
	t := &tile{packing: p, bands: bands, tokens: 1, record: acts.NibbleRecord, near: true}
	t.next = Load(Param("next"), GP64()).(reg.GPVirtual)
	t.parameters()
	tables := newNibbleTables()
	field, place := ZMM(), ZMM()
	emit.FillLanes(0x3c3c3c3c, field)
	emit.FillLanes(0x03020100, place)
	weights := [2]reg.VecVirtual{ZMM(), ZMM()} // of low and high sums
	emit.FillLanes(0x02020202, weights[0])
	emit.FillLanes(0x20202020, weights[1])
	super := make([]*superSums, bands)
	for b := range super {
		super[b] = t.superRegisters(b, columns(row(1)))
	}
	var start reg.VecVirtual
	t.loop(func() { super[t.band].begin() }, func() {
		if t.band == 0 {
			tables.make(t)
			start = ZMM()
			VPBROADCASTD(t.acts.At(0, acts.NibbleStart), start)
		}
		var index [2]reg.VecVirtual
		raw := ZMM()
		VMOVDQU64(t.code(0), raw)
		for h := range index {
			index[h] = ZMM()
			if h == 0 {
				VPSLLW(Imm(2), raw, index[h])
			} else {
				VPSRLW(Imm(2), raw, index[h])
			}
			VPTERNLOGD(Imm(0xe4), field, place, index[h]) // field ? index : place
		}
		sum := ZMM()
		VMOVDQA64(start, sum)
		for h, x := range index {
			for i, w := range weights {
				entry := ZMM()
				VPERMB(tables.sums[h][i], x, entry)
				VPDPBUSD(w, entry, sum)
			}
		}
		VCVTDQ2PS(sum, sum)
		VFMADD231PS_BCST(t.acts.At(0, acts.NibbleScale), sum, super[t.band].regs[0][0])
	}, func() { super[t.band].end(lowD(t.wideScales())) })
	emit.Done()
}
