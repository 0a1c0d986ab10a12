package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
)

// One token reads every weight once: memory is the limit. Its tiles therefore
// bring the bytes of the next tile into a cache while they multiply their own, in
// the order of addresses and scales as well as codes, a whole tile (tens of
// KiB) ahead. AVX2 tiles ask for L2 and not L1, because a core waits for 24 lines
// of L1 at a time, and they are taken up by what is multiplied now: on Zen 4 this
// reads memory 1.3 times as fast as asking for L1 or leaving it to the hardware.
// AVX-512 tiles ask for L1, which Zen 5 reads up to 1.17 times as fast: a line that
// is in L2 is waited for twice. Those for two ports ask for L2: Intel's cores have 48
// lines under way there and 16 in L1.

// streamSignature is the signature of tiles of one token; groups ≥ 1, whole scale units.
const streamSignature = "func(y *float32, codes *byte, scales *byte, stride int, acts *byte, groups int, next uintptr)"

// beginStream begins a tile of several bands and one token.
func beginStream(p packing, isa string, bands int) *tile {
	name := fmt.Sprintf("grouped%s%sx%dx1", p.name, isa, bands)
	emit.Text(name, p.signature(streamSignature))
	p.in(streamTables).Add(1, p.keys(isa)...)
	emit.Contract(fmt.Sprintf("%s adds to y[%d] the products of bands of %s that are stride bytes apart with a row of", name, bands*dense.BandRows, p.name),
		"activation records. It prefetches as many bytes at next, which need not be memory at all.")
	t := &tile{packing: p, bands: bands, tokens: 1, near: isa == "AVX512"}
	t.next = Load(Param("next"), GP64()).(reg.GPVirtual)
	t.parameters()
	return t
}

// fetch prefetches the current band's part of what a group has to.
func (t *tile) fetch() {
	group, lines := t.groupLines()
	t.fetchLines(t.band*lines/t.bands, (t.band+1)*lines/t.bands)
	if t.band != t.bands-1 {
		return
	}
	t.fetchNext(group)
}

// groupLines returns the bytes of a group that are prefetched, and how many lines they take.
func (t *tile) groupLines() (group, lines int) {
	bands, unit := max(t.bands, t.fetched), t.unit
	if unit == 0 {
		unit = 2 // of which a group has most bytes
	}
	group = bands * (t.codeBytes + t.unitBytes/unit)
	return group, (group + 63) / 64
}

// fetchLines prefetches lines [from, to) of a group.
func (t *tile) fetchLines(from, to int) {
	for line := from; line < to; line++ {
		if at := (Mem{Base: t.next, Disp: 64 * line}); t.near {
			PREFETCHT0(at)
		} else {
			PREFETCHT1(at)
		}
	}
}

// fetchNext moves next on by the bytes of a group.
func (t *tile) fetchNext(group int) {
	if t.unit > 0 {
		ADDQ(U32(uint32(group)), t.next)
		return
	}
	ADDQ(t.group, t.next)
}

// groupBytes sets the bytes that next moves on by in a group, where units are of 2 or 4.
func (t *tile) groupBytes() {
	bands := max(t.bands, t.fetched)
	t.group = GP64()
	MOVQ(t.groupsOfUnit(), t.group)
	XORQ(Imm(6), t.group) // 4 of units of 2, and 2 of units of 4
	IMUL3Q(U32(uint32(bands*t.unitBytes/8)), t.group, t.group)
	ADDQ(U32(uint32(bands*t.codeBytes)), t.group)
}
