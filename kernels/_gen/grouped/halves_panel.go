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

// A panel of halves is some groups of one band whose levels are unfolded once for many tokens.
// Half a group is planes of 64 bytes and then the scales f32[16], which the routines of unfold.go
// write. Planes are
//
//	of large levels  int16, eight: of word w columns 4w and 4w+2 in plane 2w, 4w+1 and 4w+3 in
//	                 plane 2w+1
//	of small ones    16 above what they are, as bytes, four: of a word each
//
// A half, vector and token take 8 multiplications of pairs of int16 and 7 additions, where a tile
// over nibbles, which splits levels, has 8 of each, widens two sums and takes off what is too
// much. Of small levels they take 4 and 4, and widen one.
const (
	largePlanes   = 8
	smallPlanes   = 4
	halfPanelMost = 6 // tokens of a tile: what the registers hold
)

// halfPanel is the layout of one kind of levels.
type halfPanel struct {
	small  bool
	planes int
	record int // bytes of half an activation record
}

func (h halfPanel) name(what string) string { return what + narrowISA(h.small) }

// scales is where they are in half a group.
func (h halfPanel) scales() int { return h.planes * planeBytes }

func (h halfPanel) bytes() int { return h.scales() + halfScales }

// halvesPanels emits what unfolds and multiplies panels.
func halvesPanels() {
	for _, h := range []halfPanel{{false, largePlanes, acts.WideHalf}, {true, smallPlanes, halfRecord}} {
		h.writer()
		for _, t := range emit.Widths(3, halfPanelMost) {
			h.tile(t)
		}
	}
}

func (h halfPanel) writer() {
	name := h.name("panelHalves")
	emit.Text(name, "func(panel *byte, codes *byte, levels *int8, halves int)")
	halfWriters.Add(0, families[narrowISA(h.small)])
	emit.Contract(name + " unfolds halves ≥ 1 halves of groups of a band into a panel, but for their scales.")
	panel, codes, table, low := emit.Arg("panel"), emit.Arg("codes"), YMM(), YMM()
	VBROADCASTI128(Mem{Base: emit.Arg("levels")}, table)
	emit.FillLanes(0x0f0f0f0f, low)
	one := grid(1)[0] // of each pair of bytes the first or the second
	if h.small {
		emit.FillLanes(0x10101010, one[0])
		VPADDB(one[0], table, table)
	} else {
		emit.FillLanes(0x00010001, one[0])
		emit.FillLanes(0x01000100, one[1])
	}
	halves := emit.Arg("halves")
	Label("half")
	for p := range 2 {
		for v := range vectors {
			first, second := YMM(), YMM()
			VMOVDQU(Mem{Base: codes, Disp: p*planeBytes + v*32}, first)
			VPSRLW(Imm(4), first, second)
			for i, c := range []reg.VecVirtual{first, second} {
				word := p + 2*i
				VPAND(low, c, c)
				VPSHUFB(c, table, c)
				if h.small {
					VMOVDQU(c, Mem{Base: panel, Disp: word*planeBytes + v*32})
					continue
				}
				for j := range one {
					level := YMM()
					VPMADDUBSW(c, one[j], level)
					VMOVDQU(level, Mem{Base: panel, Disp: (2*word+j)*planeBytes + v*32})
				}
			}
		}
	}
	ADDQ(U32(halfBytes), codes)
	ADDQ(U32(uint32(h.bytes())), panel)
	DECQ(halves)
	JNE(LabelRef("half"))
	emit.Done()
}

func (h halfPanel) tile(tokens int) {
	name := fmt.Sprintf("%sx%d", h.name("halvesPanel"), tokens)
	records := map[bool]string{false: "wide records", true: "half records"}[h.small]
	emit.Text(name, "func(y *float32, ld int, panel *byte, acts *byte, lda int, fetch uintptr, lines int, halves int)")
	halfPanels.Add(tokens, families[narrowISA(h.small)])
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of halves ≥ 1 halves of a panel", name, tokens, dense.BandRows),
		"with rows of "+records+" that are lda bytes apart. It prefetches lines ≥ 1 lines of 64",
		"bytes a half from fetch on, which need not be memory at all.")
	t := &tile{bands: 1, tokens: tokens}
	t.codes = Load(Param("panel"), GP64()).(reg.GPVirtual)
	t.acts = emit.NewRows("acts", "lda", 0, tokens)
	t.y = emit.NewRows("y", "ld", 2, tokens)
	fetch := Load(Param("fetch"), GP64()).(reg.GPVirtual)
	halves := Load(Param("halves"), GP64())
	prefetch := prefetchLines(fetch)
	Label("half")
	prefetch()
	sum, scale := grid(tokens), halfScale
	if h.small {
		t.start(sum, halfStart)
		for word := range h.planes {
			t.addWord(sum, 4*word, false, t.panelCode(word))
		}
		ones := YMM()
		VMOVDQU(weight(1), ones)
		t.each(func(i, v int) { VPMADDWD(ones, sum[i][v], sum[i][v]) })
	} else {
		scale = acts.WideScale
		for plane := range h.planes {
			t.addPairs(sum, plane/2*4+plane%2*acts.WideOdd, plane == 0, t.panelPair(plane*planeBytes))
		}
	}
	d := t.panelPair(h.scales())
	for i := range tokens {
		a := YMM()
		VBROADCASTSS(t.acts.At(i, scale), a)
		for v, s := range sum[i] {
			VCVTDQ2PS(s, s)
			VMULPS(d[v], s, s)
			VFMADD213PS(t.y.At(i, v*32), a, s)
			VMOVUPS(s, t.y.At(i, v*32))
		}
	}
	ADDQ(U32(uint32(h.bytes())), t.codes)
	t.acts.Advance(h.record)
	DECQ(halves)
	JNE(LabelRef("half"))
	emit.Done()
}

// addPairs adds the products of two columns, int16 at disp of the records, to int32 sums, or sets
// these to them.
func (t *tile) addPairs(sum [][]reg.VecVirtual, disp int, fresh bool, levels []reg.VecVirtual) {
	for i, s := range sum {
		if fresh {
			VPBROADCASTD(t.acts.At(i, disp), s[1])
			VPMADDWD(s[1], levels[0], s[0])
			VPMADDWD(s[1], levels[1], s[1])
			continue
		}
		a, first := YMM(), YMM()
		VPBROADCASTD(t.acts.At(i, disp), a)
		VPMADDWD(a, levels[0], first)
		VPMADDWD(a, levels[1], a)
		VPADDD(first, s[0], s[0])
		VPADDD(a, s[1], s[1])
	}
}
