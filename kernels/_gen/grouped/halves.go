package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
	"github.com/lutra-lm/lutra/kernels/_gen/ternary"
)

// Codes that name levels are multiplied by halves of a group: 16 columns of a band are two
// planes of nibbles, plane p with word p in the low halves of its bytes and word p+2 in the
// high ones, and have a scale a row. Tiles read these scales as float32, which unfold.go makes
// of any packing's, and the levels from a table, so that one set of tiles does for all.
//
// Operations of a half and a band for each token, on vectors of 256 bits with AVX2 (levels are
// signed: VPSIGNB, VPABSB), of 512 with AVX-512 (128 above what they are): 38 and 7, and 28 and
// 10 for all tokens together.

const (
	halfBytes  = 2 * planeBytes // codes of a half
	halfScales = 4 * dense.BandRows
)

// Offsets in the record of a half, kernels/acts/halves.go.
const (
	halfRecord = 32
	halfScale  = 16
	halfLess   = 20 // -128·Σq
)

const halfSignature = "func(y *float32, ld int, codes *byte, stride int, scales *float32, levels *int8, acts *byte, lda int, halves int)"

// halves is a tile under construction.
type halves struct {
	*tile
	n          int                  // bands
	bytes      int                  // of a vector
	table, low reg.VecVirtual       // of levels; the mask of nibbles
	yRegs      [][][]reg.VecVirtual // [band][token][vector]; nil: y stays in memory
}

// halvesDotTokens are the most tokens of an AVX-VNNI tile, which takes both vectors together.
const halvesDotTokens = 4

// Halves emits the tiles and what unfolds for them.
func Halves() {
	unfold()
	halvesNarrow(streamBands, 1)
	for t := 1; t <= avx2Tokens; t++ {
		halvesNarrow(1, t)
	}
	halvesVNNI(emit.VexSuffix, 32, streamBands, 1)
	for t := 1; t <= halvesDotTokens; t++ {
		halvesVNNI(emit.VexSuffix, 32, 1, t)
	}
	halvesVNNI("AVX512", 64, 4, 1)
	for t := 1; t <= wideTokens; t++ {
		halvesVNNI("AVX512", 64, 1, t)
	}
	for t := 2; t <= pairTokens; t++ {
		halvesVNNI("AVX512", 64, 2, t)
	}
}

func beginHalves(isa string, bands, tokens, bytes int, signed bool) *halves {
	name := fmt.Sprintf("halves%sx%dx%d", isa, bands, tokens)
	emit.Text(name, halfSignature)
	emit.Contract(fmt.Sprintf("%s adds to y[%d][%d] (ld values a token) the products of halves ≥ 1 halves of groups,", name, tokens, bands*dense.BandRows),
		"codes of bands stride bytes apart and scales [half][bands·16], with rows of half records that",
		"are lda bytes apart. levels are what the 16 codes stand for.")
	h := &halves{tile: &tile{bands: 1, tokens: tokens}, n: bands, bytes: bytes}
	h.codes = Load(Param("codes"), GP64()).(reg.GPVirtual)
	h.scales = Load(Param("scales"), GP64()).(reg.GPVirtual)
	if bands > 1 {
		h.stride = Load(Param("stride"), GP64()).(reg.GPVirtual)
	}
	if bands > 3 {
		h.stride3 = GP64()
		LEAQ(Mem{Base: h.stride, Index: h.stride, Scale: 2}, h.stride3)
	}
	h.acts = emit.NewRows("acts", "lda", 0, tokens)
	h.y = emit.NewRows("y", "ld", 2, tokens)
	h.lookup(signed)
	return h
}

// vec makes a register.
func (h *halves) vec() reg.VecVirtual {
	if h.bytes == 64 {
		return ZMM()
	}
	return YMM()
}

// lookup loads the table of levels, signed or 128 above them, and the mask.
func (h *halves) lookup(signed bool) {
	levels := Mem{Base: Load(Param("levels"), GP64())}
	h.table, h.low = h.vec(), h.vec()
	if h.bytes == 64 {
		VBROADCASTI32X4(levels, h.table)
	} else {
		VBROADCASTI128(levels, h.table)
	}
	if !signed {
		emit.FillLanes(0x80808080, h.low)
		if h.bytes == 64 {
			VPXORD(h.low, h.table, h.table)
		} else {
			VPXOR(h.low, h.table, h.table)
		}
	}
	emit.FillLanes(0x0f0f0f0f, h.low)
}

// loop runs half over all halves, with the sums of y in registers if they are to stay there.
func (h *halves) loop(held bool, half func()) {
	if held {
		for b := range h.n {
			h.yRegs = append(h.yRegs, h.grid())
			h.eachY(b, func(r reg.VecVirtual, m Mem) { VMOVUPS(m, r) })
		}
	}
	left := Load(Param("halves"), GP64())
	Label("half")
	half()
	ADDQ(U32(halfBytes), h.codes)
	ADDQ(U32(uint32(h.n*halfScales)), h.scales)
	h.acts.Advance(halfRecord)
	DECQ(left)
	JNE(LabelRef("half"))
	for b := range h.yRegs {
		h.eachY(b, func(r reg.VecVirtual, m Mem) { VMOVUPS(r, m) })
	}
	emit.Done()
}

// grid makes a register for each token and vector of a band.
func (h *halves) grid() [][]reg.VecVirtual {
	g := make([][]reg.VecVirtual, h.tokens)
	for i := range g {
		for range dense.BandRows * 4 / h.bytes {
			g[i] = append(g[i], h.vec())
		}
	}
	return g
}

// eachY calls f with the registers of y of a band and their places.
func (h *halves) eachY(b int, f func(r reg.VecVirtual, m Mem)) {
	for i := range h.yRegs[b] {
		for v, r := range h.yRegs[b][i] {
			f(r, h.y.At(i, b*halfScales+v*h.bytes))
		}
	}
}

// finish adds the int32 sums of a band, times the scales and those of the activations.
func (h *halves) finish(b int, sum [][]reg.VecVirtual) {
	for v := range sum[0] {
		d := h.vec()
		VMOVUPS(Mem{Base: h.scales, Disp: b*halfScales + v*h.bytes}, d)
		for i := range sum {
			s, a := sum[i][v], h.vec()
			VCVTDQ2PS(s, s)
			VMULPS(d, s, s)
			VBROADCASTSS(h.acts.At(i, halfScale), a)
			if h.yRegs != nil {
				VFMADD231PS(a, s, h.yRegs[b][i][v])
				continue
			}
			y := h.y.At(i, b*halfScales+v*h.bytes)
			VFMADD213PS(y, a, s)
			VMOVUPS(s, y)
		}
	}
}

// halvesNarrow generates an AVX2 tile, which multiplies |level| with activations of its sign.
// A pair's sum is at most 2·127·127, so each is widened at once.
func halvesNarrow(bands, tokens int) {
	h := beginHalves("AVX2", bands, tokens, 32, true)
	ones := YMM()
	emit.FillLanes(0x00010001, ones)
	h.loop(tokens == 1, func() {
		for h.band = range bands {
			sum := h.grid()
			for p := range 2 {
				for v := range vectors {
					raw := ternary.LoadY(h.code(p*planeBytes + v*32))
					for high := range 2 {
						w, size := h.nibble(raw, high), YMM()
						VPABSB(w, size)
						for i := range tokens {
							a := YMM()
							VPBROADCASTD(h.acts.At(i, 4*p+8*high), a)
							VPSIGNB(w, a, a)
							VPMADDUBSW(a, size, a)
							if p+high == 0 {
								VPMADDWD(ones, a, sum[i][v])
								continue
							}
							VPMADDWD(ones, a, a)
							VPADDD(a, sum[i][v], sum[i][v])
						}
					}
				}
			}
			h.finish(h.band, sum)
		}
	})
}

// nibble gives the levels of the low or the high halves of raw, which it spoils at last.
func (h *halves) nibble(raw reg.VecVirtual, high int) reg.VecVirtual {
	w := raw
	if high == 1 {
		VPSRLW(Imm(4), w, w)
	} else {
		w = h.vec()
	}
	if h.bytes == 64 {
		VPANDD(h.low, raw, w)
	} else {
		VPAND(h.low, raw, w)
	}
	VPSHUFB(w, h.table, w)
	return w
}

// halvesVNNI generates a tile of VPDPBUSD, whose levels are 128 above what they are; so are
// the sums that it begins with below. An activation is broadcast once for all bands' vectors.
func halvesVNNI(isa string, bytes, bands, tokens int) {
	h := beginHalves(isa, bands, tokens, bytes, false)
	h.loop(bytes == 64 || tokens*bands == 1, func() { // VEX encodes 16 registers
		sums := make([][][]reg.VecVirtual, bands)
		for b := range sums {
			sums[b] = h.grid()
		}
		for i := range tokens {
			var first reg.VecVirtual
			for b := range sums {
				for _, s := range sums[b][i] {
					switch {
					case first == nil:
						first = s
						VPBROADCASTD(h.acts.At(i, halfLess), s)
					case bytes == 64:
						VMOVDQA64(first, s)
					default:
						VMOVDQA(first, s)
					}
				}
			}
		}
		for p := range 2 {
			raw := make([][]reg.VecVirtual, bands)
			for h.band = range bands {
				for v := range sums[h.band][0] {
					r := h.vec()
					if at := h.code(p*planeBytes + v*bytes); bytes == 64 {
						VMOVDQU64(at, r)
					} else {
						VMOVDQU(at, r)
					}
					raw[h.band] = append(raw[h.band], r)
				}
			}
			for high := range 2 {
				codes := make([][]reg.VecVirtual, bands)
				for b := range raw {
					for _, r := range raw[b] {
						codes[b] = append(codes[b], h.nibble(r, high))
					}
				}
				for i := range tokens {
					a := h.vec()
					VPBROADCASTD(h.acts.At(i, 4*p+8*high), a)
					for b := range codes {
						for v, c := range codes[b] {
							VPDPBUSD(a, c, sums[b][i][v])
						}
					}
				}
			}
		}
		for b := range sums {
			h.finish(b, sums[b])
		}
	})
}
