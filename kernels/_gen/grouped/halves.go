package grouped

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/lutra-lm/lutra/kernels/_gen/dense"
	"github.com/lutra-lm/lutra/kernels/_gen/emit"
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
	halfRecord    = 32
	halfScale     = 16
	halfLess      = 20 // -128·Σq
	halfLessSmall = 24 // -16·Σq
	halfStart     = 28 // the same modulo 2¹⁶, as one int16 of a pair
)

const halfSignature = "func(y *float32, ld int, codes *byte, stride int, scales *float32, levels *int8, acts *byte, lda int, halves int)"

// halves is a tile under construction.
type halves struct {
	*tile
	n     int                  // bands
	bytes int                  // of a vector
	low   reg.VecVirtual       // the mask of nibbles
	less  int                  // of a record: what sums begin with or are added to at last
	yRegs [][][]reg.VecVirtual // [band][token][vector]; nil: y stays in memory
}

// halvesDotTokens are the most tokens of an AVX-VNNI tile, which takes both vectors together.
const halvesDotTokens = 4

// Halves emits the tiles and what unfolds for them.
func Halves() {
	unfold()
	for _, small := range []bool{false, true} {
		halvesOne(streamBands, small)
		halvesOne(1, small)
		halvesNarrow(2, small)
	}
	halvesPanels()
	halvesVNNI(emit.VexSuffix, 32, streamBands, 1)
	for t := 1; t <= halvesDotTokens; t++ {
		halvesVNNI(emit.VexSuffix, 32, 1, t)
	}
	halvesVNNI("AVX512", 64, wideBands, 1)
	for _, t := range emit.Widths(2, pairTokens) {
		halvesVNNI("AVX512", 64, 2, t)
	}
}

func beginHalves(isa string, bands, tokens, bytes int) *halves {
	name := fmt.Sprintf("halves%sx%dx%d", isa, bands, tokens)
	emit.Text(name, halfSignature)
	switch {
	case bands > 1 && tokens == 1:
		halfStreams.Add(1, families[isa])
	case bands > 1:
		halfPairs.Add(tokens, families[isa])
	default:
		halfTiles.Add(tokens, families[isa])
	}
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
	return h
}

// vec makes a register.
func (h *halves) vec() reg.VecVirtual {
	if h.bytes == 64 {
		return ZMM()
	}
	return YMM()
}

// tables loads the levels 128 above what they are, in one table or two: the five high bits and
// the three low ones. Small levels are 16 above in one. less is where records have what is too
// much.
func (h *halves) tables(small, split bool) (tables []reg.VecVirtual) {
	levels := Mem{Base: Load(Param("levels"), GP64())}
	table, mask := h.vec(), h.vec()
	emit.FillLanes(0x80808080, mask)
	h.low, h.less = h.vec(), halfLess
	emit.FillLanes(0x0f0f0f0f, h.low)
	if h.bytes == 64 {
		VBROADCASTI32X4(levels, table)
		VPXORD(mask, table, table)
		return []reg.VecVirtual{table}
	}
	VBROADCASTI128(levels, table)
	if small {
		emit.FillLanes(0x10101010, mask)
		VPADDB(mask, table, table)
		h.less = halfLessSmall
		return []reg.VecVirtual{table}
	}
	VPXOR(mask, table, table)
	if !split {
		return []reg.VecVirtual{table}
	}
	low := YMM()
	emit.FillLanes(0x07070707, mask)
	VPAND(mask, table, low)
	VPSRLW(Imm(3), table, table)
	emit.FillLanes(0x1f1f1f1f, mask)
	VPAND(mask, table, table)
	return []reg.VecVirtual{table, low}
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

// finish adds the int32 sums of vector v of a band, times the scales and those of the activations.
func (h *halves) finish(b, v int, sum [][]reg.VecVirtual) {
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

// narrowISA names tiles of AVX2, those of small levels apart.
func narrowISA(small bool) string {
	if small {
		return "SmallAVX2"
	}
	return "AVX2"
}

// halvesNarrow generates an AVX2 tile. A level is 8·(high-16) + low, of 5 and 3 bits, which have
// a table each: 8 products of 31·127 fit int16, so that sums are widened once. Levels of 4 bits
// and a sign are high-16 themselves.
func halvesNarrow(tokens int, small bool) {
	h := beginHalves(narrowISA(small), 1, tokens, 32)
	tables := h.tables(small, !small)
	weights := []Mem{weight(1)}
	if !small {
		weights = []Mem{weight(8), weight(1)}
	}
	h.loop(tokens <= heldTokens, func() {
		{
			sum := h.grid()
			for v := range vectors {
				parts := make([][]reg.VecVirtual, tokens)
				for word := range 4 {
					codes := make([]reg.VecVirtual, len(tables))
					index := YMM()
					h.index(h.code(word%2*planeBytes+v*32), word/2, index)
					for k, table := range tables {
						codes[k] = index
						if k < len(tables)-1 {
							codes[k] = YMM()
						}
						VPSHUFB(index, table, codes[k])
					}
					for i := range tokens {
						a := YMM()
						VPBROADCASTD(h.acts.At(i, 4*word), a)
						for k, c := range codes {
							m := a
							if k < len(codes)-1 || word == 0 {
								m = YMM()
							}
							VPMADDUBSW(a, c, m)
							if word == 0 {
								parts[i] = append(parts[i], m)
							} else {
								VPADDW(m, parts[i][k], parts[i][k])
							}
						}
					}
				}
				for i, part := range parts {
					for k, p := range part {
						VPMADDWD(weights[k], p, p)
						if k > 0 {
							VPADDD(part[0], p, p)
						}
					}
					less := YMM()
					VPBROADCASTD(h.acts.At(i, h.less), less)
					VPADDD(less, part[len(part)-1], part[len(part)-1])
					sum[i][v] = part[len(part)-1]
				}
				h.finish(0, v, sum)
			}
		}
	})
}

// halvesOne generates an AVX2 tile of one token, whose activations all bands share: |a| times the
// level with a's sign, of which a pair's sum is at most 2·127·127; sums of small levels are widened
// once, as those of more tokens are.
func halvesOne(bands int, small bool) {
	h := beginHalves(narrowISA(small), bands, 1, 32)
	levels := Mem{Base: Load(Param("levels"), GP64())}
	table := YMM()
	if small {
		table = h.tables(true, false)[0]
	} else {
		VBROADCASTI128(levels, table)
		h.low = YMM()
		emit.FillLanes(0x0f0f0f0f, h.low)
	}
	ones := weight(1)
	h.loop(true, func() {
		sums := make([][][]reg.VecVirtual, bands)
		for b := range sums {
			sums[b] = h.grid()
		}
		for word := range 4 {
			a, size := YMM(), YMM()
			VPBROADCASTD(h.acts.At(0, 4*word), a)
			if !small {
				VPABSB(a, size)
			}
			for h.band = range bands {
				for v, sum := range sums[h.band][0] {
					m := YMM()
					if small && word == 0 {
						m = sum
					}
					h.index(h.code(word%2*planeBytes+v*32), word/2, m)
					VPSHUFB(m, table, m)
					switch {
					case small && word == 0:
						VPMADDUBSW(a, m, m)
					case small:
						VPMADDUBSW(a, m, m)
						VPADDW(m, sum, sum)
					default:
						VPSIGNB(a, m, m)
						VPMADDUBSW(m, size, m)
						if word == 0 {
							VPMADDWD(ones, m, sum)
							continue
						}
						VPMADDWD(ones, m, m)
						VPADDD(m, sum, sum)
					}
				}
			}
		}
		if small {
			less := YMM()
			VPBROADCASTD(h.acts.At(0, h.less), less)
			for b := range sums {
				for _, sum := range sums[b][0] {
					VPMADDWD(ones, sum, sum)
					VPADDD(less, sum, sum)
				}
			}
		}
		for b := range sums {
			for v := range sums[b][0] {
				h.finish(b, v, sums[b])
			}
		}
	})
}

// weights are tables of 16 words of a value, by value.
var weights = map[uint16]Mem{}

// weight returns 16 words of w in memory.
func weight(w uint16) Mem {
	m, ok := weights[w]
	if !ok {
		m = emit.Table(fmt.Sprintf("halfWeight%d", w), emit.Words(16, w))
		weights[w] = m
	}
	return m
}

// index sets v to the low or the high nibbles at m.
func (h *halves) index(m Mem, high int, v reg.VecVirtual) {
	switch {
	case high == 0 && h.bytes == 64:
		VPANDD(m, h.low, v)
	case high == 0:
		VPAND(m, h.low, v)
	case h.bytes == 64:
		VMOVDQU64(m, v)
		VPSRLW(Imm(4), v, v)
		VPANDD(h.low, v, v)
	default:
		VMOVDQU(m, v)
		VPSRLW(Imm(4), v, v)
		VPAND(h.low, v, v)
	}
}

// halvesVNNI generates a tile of VPDPBUSD, whose levels are 128 above what they are; so are
// the sums that it begins with below. An activation is broadcast once for all bands' vectors.
func halvesVNNI(isa string, bytes, bands, tokens int) {
	h := beginHalves(isa, bands, tokens, bytes)
	table := h.tables(false, false)[0]
	h.loop(bytes == 64 || tokens*bands <= 2, func() { // VEX encodes 16 registers
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
						VPBROADCASTD(h.acts.At(i, h.less), s)
					case bytes == 64:
						VMOVDQA64(first, s)
					default:
						VMOVDQA(first, s)
					}
				}
			}
		}
		for word := range 4 {
			codes := make([][]reg.VecVirtual, bands)
			for h.band = range bands {
				for v := range sums[h.band][0] {
					c := h.vec()
					h.index(h.code(word%2*planeBytes+v*bytes), word/2, c)
					VPSHUFB(c, table, c)
					codes[h.band] = append(codes[h.band], c)
				}
			}
			for i := range tokens {
				a := h.vec()
				VPBROADCASTD(h.acts.At(i, 4*word), a)
				for b := range codes {
					for v, c := range codes[b] {
						VPDPBUSD(a, c, sums[b][i][v])
					}
				}
			}
		}
		for b := range sums {
			for v := range sums[b][0] {
				h.finish(b, v, sums[b])
			}
		}
	})
}
