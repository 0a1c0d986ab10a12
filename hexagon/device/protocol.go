// Package device is how the host speaks to a Hexagon NPU: memory that both sides
// see, and packets that name an operation and where in that memory its operands
// lie. Every device computes the same bits: the comments here define an operation,
// and hexagon/ref is the definition in Go.
package device

import (
	"github.com/lutra-lm/lutra/hexagon/hmx"
	"github.com/lutra-lm/lutra/hexagon/layout"
)

//go:generate go run ./operands

// Packet is one operation. Offsets are bytes from the start of the shared memory,
// multiples of Align unless an operation says otherwise. Its wire form is 16
// little-endian words: Op, then Args.
type Packet struct {
	Op   Op
	Args [15]uint32
}

// Op is an operation of the device.
type Op uint32

// Tiles have 32×32 fp16 numbers; element (r, c) of a tile is number
// (r/2)·64 + 2c + r%2. "fp16" is IEEE binary16 without infinities and NaN: what is
// too large becomes ±65504; all rounding is to nearest even. Of two zeros -0 is less.
//
// Int32 arithmetic wraps.
//
// Weights are w[m][k] = R[m]·(S[m][g]·v(q) + O[m][g]): codes q of Bits bits in the
// bit-serial layout of hexagon/layout; v(q) = A·q - B in integers; S and O are int16
// of one scale and, optionally, one offset a group g of Group columns, in units of
// 2⁻¹⁵ and 2⁻¹²; R is float32 and stays on the host. With Group == K there are no S
// and O on the device: w = R·v(q). A is 1 or 2, B at most 255.
//
// Codes of 8 bits, with v(q) = q - 128, and codes of 4 whose values are no line of A and B
// stand in bytes instead (layout.ByteCode), in groups of 32, 64 or 128.
//
// What an operation writes must not overlap what it reads, unless it says "in
// place". The bits of an fp16 operand that is infinite or NaN have no meaning: the
// results are then some numbers.
//
// M is a multiple of 128 (a strip), K of 256. Scales and offsets stand as
// [strip][K/Group][128]int16, where number 2j+i of the first 64 is row 4j+i of the
// strip and number 64+2j+i is row 4j+2+i (i = 0, 1).
const (
	// OpPing does nothing. Every device answers it.
	OpPing Op = iota + 1

	// OpCopy moves n bytes, a multiple of Align: what DMA does between DDR and TCM, the
	// first TCMBytes of the memory. The host must neither read nor write TCM, which on a
	// chip it cannot see, and which holds nothing that means anything when a run begins:
	// between runs others may have it. An operand lies wholly in TCM or wholly behind it, and in
	// one of the mappings of MappingBytes. What DMA or the tile unit writes shares no byte with what the packet reads.
	//
	//	dst, src, n
	OpCopy

	// OpPrecompute makes the lookup tables of n rows of activations, and their sums:
	// of each x[K]int16, |x| ≤ MaxActivation, tables [K/256][2048 bytes] and, behind them, sums
	// [K/32]int32, TableStride bytes from one row's to the next. n is at most MaxRows.
	// The table of quad q (layout.QuadColumn) of 32-column half h = 0..7 has 16 entries
	// of int16, wrapping: number n sums the columns of n's bits. It is number
	// layout.TableIndex(h, q, n) of the 1024 of its 256 columns.
	//
	// With form 1 tables are bytes [2K] in their place, for weights in bytes: of each four
	// columns the low bytes, then the high ones.
	//
	//	tables, n, x [n][K], K, form 0|1
	OpPrecompute

	// OpGEMV multiplies n rows of activations by table lookup, those in bytes as bytes, exactly; of each:
	//
	//	t(m,g) = Σ q·x over the group's columns;  b(m,g) = A·t - B·Σx    in int32
	//	y[m]   = Σ over g of (b·S + 2¹⁴)>>15 + ((Σx<<3)·O + 2¹⁴)>>15    products in int64
	//	y[m]   = b(m,0) when Group == K; scales and offsets are ignored
	//
	//	y [n][M]int32, weights, tables, n, scales, offsets (0: none), M, K, bits 1|2|4|8, group 32|64|128|K, A, B, scratch,
	//	tiles (strips | (workers-1)<<16), cols
	//
	// With 8 bits A is 1 and B 128. With 4 bits and A = 0, B is the offset of 16 bytes:
	// v(q) is number q of them, less 128. Both read bytes for tables.
	//
	// Weights, scales and offsets lie in DDR, tables in TCM, and so does scratch, a multiple of Page: sums of n times M rows,
	// then for each of workers (at most MaxWorkers), which take rows of tiles in parts, GEMVBuffers, to which DMA brings tiles
	// of strips (at most MaxStrips) times 128 rows and cols columns (a multiple of 256), two while one is looked up
	// (T-MAN §4.3, §5), for all n rows: more of them move no more weights. GEMVScratch has its size. Results depend
	// neither on tiles, nor on how many workers there are, nor on n.
	OpGEMV

	// OpDequant makes tiles of blocks [first, first+n), of 64 columns, of strips strip to strip+more, by
	// two lookups (T-MAN §4.1). Element = fp16(fp16(v(q)·s) + o) with s = fp16(S·2⁻¹⁵),
	// o = fp16(O·2⁻¹²); v(q) alone when Group == K; no addition without offsets. v is a
	// table of 2^bits fp16 numbers.
	//
	//	tiles [1+more][4][2n], weights, scales, offsets (0: none), v, strip, first, n, K, bits, group, form 0|1, more
	//
	// form 1 is codes of 4 bits in bytes. With 8 bits there is no v: v(q) = q - 128.
	//
	// weights, scales and offsets are the whole matrix's, of which strips 0 to strip+more
	// must lie in the memory. Scales and offsets are ignored when Group == K.
	OpDequant

	// OpVLUT16 makes n·256 fp16 numbers, in the order of tiles, of n super-groups of
	// 144 bytes (8 fp16 scales, 256 four-bit codes): fp16(v[q]·scale). v has 16 numbers.
	//
	//	dst, supergroups (aligned to 16), n, v
	OpVLUT16

	// OpTileMul is the tile unit (HMX). Two runs of products, the second optional:
	//
	//	acc(r,c) = Σ over the runs, their tiles, k = 0..31 in order: acc + a(r,k)·w(k,c)   in float32
	//	out(r,c) = fp16(acc·scale)
	//
	//	out [rows][cols], act0 [rows][k0], wgt0 [cols][k0], k0, act1, wgt1, k1, rows, cols, scale (fp16 bits, finite),
	//	columns
	//
	// All counts are of tiles; k1 = 0 is no second run. Operands lie in TCM, tiles at
	// multiples of their size. columns is scratch for the unit's scales, ColumnsBytes at a
	// multiple of that.
	OpTileMul

	// OpExpTable fills 32768 fp16 numbers: 2⁻ˣ of the fp16 x with these bits, 0 for
	// those that are none. The table is aligned to 64 KiB and lies in TCM.
	//
	//	table
	OpExpTable

	// OpSoftmax is one step of the online softmax, base 2, over tiles of scores
	// s [rows][keys] tiles, in place:
	//
	//	m' = max(m, scores of the row's first valid keys); p = 2^(s-m') by the table, 0 beyond valid
	//	e = 2^(m-m') by the table;  sum = Σ p in units of 2⁻²⁴;  diag(r,r) = e, 0 elsewhere
	//
	// states [rows·32] of 6 words: m (fp16 bits; 0xfbff to start), valid, and out: e (fp16
	// bits), low and high word of sum, 0. diag [rows] tiles. s-m' is an fp16 subtraction.
	// The word m becomes m'. A valid beyond keys·32 means all. The table is read at the
	// bits of a difference without its sign; p of a table that OpExpTable did not make
	// is unspecified. s, table and diag lie in TCM.
	//
	//	s, table, states, diag, rows, keys
	OpSoftmax

	// OpCollect copies n pieces that lie apart: piece i, of bytes bytes, from table[i] + add
	// to dst + i·stride. It is how keys and values of a context that grew in pieces come to
	// TCM. Pieces lie in one mapping. table [n]uint32 and the pieces lie in DDR, and the device writes neither; bytes,
	// stride and all offsets are multiples of Align, n at most MaxTiles, stride at least bytes.
	//
	//	dst, table, n, bytes, add, stride
	OpCollect

	// The operations below are a layer's between its products and attention, so that
	// activations stay in the device's memory. Rows are float32, to and from bytes from one
	// to the next: multiples of Align, at most MaxStride, and no less than a row. Arithmetic is
	// IEEE's, each operation rounded to nearest even by itself; the bits of operands that are
	// infinite or NaN have no meaning. There are 1 to MaxRows rows; widths are multiples of 32.
	// dst may be src. hexagon/ref/rows.go has the order of operations, and so do vectors of 32.

	// OpRMSNorm norms each of the parts of rows, width numbers each: x·(Σx²·inverse + eps)^-½·weight.
	// inverse, which is 1/width, and eps are the bits of float32.
	//
	//	dst, src, weight (0: none), n, parts, width, to, from, inverse, eps
	OpRMSNorm

	// OpQuantize makes integers of rows, as OpPrecompute wants them, with a scale each: the
	// largest magnitude becomes MaxActivation. dst [n][K]int16 has zeros from width on.
	//
	//	dst, scales [n]float32, src, n, K, width, from
	OpQuantize

	// OpScale makes rows of the sums of OpGEMV, int32: sum·(scale·R) + bias.
	//
	//	dst, sums, scales [n], R [width], bias [width] (0: none), n, width, to, from
	OpScale

	// OpAdd adds rows, times a factor (float32 bits), to others.
	//
	//	dst, src, n, width, to, from, factor
	OpAdd

	// OpRope rotates, in place, the first numbers of parts of rows, rotated of each: x[k]·cos[k] +
	// x[partner]·sin[k], partners standing distance apart: 1 of neighbours, half of rotated of
	// halves. It is a power of two below 32, or a multiple of 32 and half of rotated. angles
	// [n][2][rotated] float32 are cosines, and sines with their sign.
	//
	//	x, angles, n, parts, width, rotated, distance, to
	OpRope

	// OpGLU multiplies act(gate) by up; unit 0 is SiLU, 1 GELU in its tanh form, 2 ReLU², 4 the sigmoid. Unit 3 is
	// g·sigmoid(alpha·g)·(u + plus) of g = min(gate, limit) and u = up within ±limit: GLU_SWIGLU_OAI with
	// 7, 1.702 and 1. limit, not negative, alpha and plus are bits of finite float32. Unit 5 is GELU in its
	// exact form, and 6 the same of gate alone: up is not read, though it has to be there.
	//
	//	dst, gate, up, n, width, to, from, unit, limit, alpha, plus
	OpGLU

	// OpToTiles sets rows first to first+n of tiles to rows, times a factor (float32 bits), in fp16;
	// with across, columns. It leaves the other elements. Part p has width/32 tiles at p·step bytes.
	//
	//	dst, src, n, parts, width, from, step, first, across, factor
	OpToTiles

	// OpFromTiles sets rows to the rows of width/32 tiles from first on, with across to columns,
	// divided by their sums. A number that is as large as fp16 allows makes word k%32 of saturated
	// all ones.
	//
	//	dst, tiles, sums [32]float32, n, width, to, first, saturated [32]uint32, across
	OpFromTiles

	// OpFold adds the sums of 32 states of OpSoftmax to sums, which decay by its e first, or
	// with begins are nothing yet. The states of the next keys, if given, get m'.
	//
	//	sums [32]float32, states, next (0: none), begins
	OpFold

	// OpSoftCap replaces the fp16 numbers of tiles, in place, by the entries of a table of 32768 at their
	// bits without the sign, which they keep: an odd function of scores, such as limit·tanh(s/limit).
	// Tiles and table lie in TCM, the table aligned to 64 KiB.
	//
	//	s, table, tiles
	OpSoftCap

	// OpLayerNorm norms rows: (x - mean)·(Σ(x - mean)²·inverse + eps)^-½·weight + bias. inverse and
	// eps are as in OpRMSNorm.
	//
	//	dst, src, weight, bias, n, width, to, from, inverse, eps
	OpLayerNorm

	// OpRowsToTiles makes tiles of n rows, as many as there are, for the tile unit to multiply: a row in
	// each column, zeros from width on and behind the last row. Each row is divided by its scale, the
	// least power of two, of 2^-126 to 2^126, that is more than its largest magnitude. K is a multiple of 64.
	//
	//	dst [(n+31)/32][K/32], scales [n]float32, src, n, K, width, from
	OpRowsToTiles

	// OpTilesToRows makes rows of what the tile unit has made of these: number·R·(scale·factor) + bias; with
	// more it is added to what dst has. width is a multiple of 64.
	//
	//	dst, tiles [width/32][(n+31)/32], scales [n], R [width], bias [width] (0: none), n, width, to, factor, more 0|1
	OpTilesToRows

	// OpMul multiplies rows by rows, number by number. dst may be a or b.
	//
	//	dst, a, b, n, width, to, fromA, fromB
	OpMul

	// OpConv convolves each column of rows with taps weights [taps][width], 2 to 8, of which the last is a
	// row's own and the first belongs to the row taps-1 before it. state [taps-1][width] has the rows before
	// the first, and gets the last rows, for the next call. With silu results are SiLUs.
	//
	//	dst, src, weights, state, n, width, to, from, taps, silu 0|1
	OpConv

	// Tiles of bytes: of codes 64 rows by 32 columns, element (r, k) byte 32r + k; of activations,
	// int8, 32 columns by 32 lanes, element (k, c) byte 128·(k/4) + 4c + k%4.

	// OpByteTiles makes tiles [2][2n] of codes of a strip's n blocks of 64 columns, as they stand.
	//
	//	tiles, codes, n, bits 1|2|4
	OpByteTiles

	// OpTileMulBytes is the tile unit with bytes. Sums are exact, and their lowest 24 bits are kept:
	//
	//	acc(r,c) = Σ over k: a(r,k)·w(k,c)    a uint8, w int8
	//
	// The lowest bytes of a tile's sums stand in the first of its planes of 64×32 bytes, in the order of
	// codes. All counts are of tiles. Operands lie in TCM, tiles and planes at multiples of their size.
	// columns is scratch for the unit's scales, ByteColumnsBytes at a multiple of that.
	//
	//	out [rows][cols][BytePlanes] planes, act [rows][k], wgt [cols][k], k, rows, cols, columns
	OpTileMulBytes

	// OpGates makes what recurrent states decay by, and gates, of rows: e^-|a·softplus(s·x + d)| of each column,
	// whose s, d and a are weights [3][width]. That is exp(a·softplus(x + d)) of a negative a (Gu and Dao 2023,
	// "Mamba", §3.6), with s = a = -1 and d = 0 the sigmoid.
	//
	//	dst, src, weights, n, width, to, from
	OpGates

	// OpDelta takes rows through the states of heads by the gated delta rule (Yang et al. 2024, "Gated Delta
	// Networks", eq. 10), one row after the other, each:
	//
	//	d = beta·(v - decay·stateᵀk);  state = decay·state + k·dᵀ;  dst = stateᵀq
	//
	// Rows of x are q and k [keys][width], then v [keys·share][width]. Head h of values reads with head h mod keys,
	// grouped h/share. Rows of gates have decays and betas, one a head of values, from column decay and from
	// column beta on. States are [keys·share][width/32] panels [width][32]: the columns of 32 values. They
	// come from one place, 0 for zeros, and go to another or the same. There are at most 4096 heads of values.
	//
	//	dst, x, gates, states (0: zeros), next, n, keys, share, width, to, from, fromGates, decay, beta, grouped 0|1
	OpDelta

	numOps
)

// Bounds of packets. A device refuses what is beyond them; Check is the rule.
const (
	Align         = 128
	TCMBytes      = 8 << 20 // the first bytes of the memory: see OpCopy
	MappingBytes  = 1 << 30 // of the memory that are mapped at once; no operand lies in two mappings
	MaxActivation = layout.MaxActivation
	MaxDim        = 1 << 17 // of M and K
	MaxB          = 255
	MaxTiles      = TCMBytes / 2048
	MaxStrips     = 64      // of a tile of OpGEMV
	GEMVBuffers   = 3       // of each worker of OpGEMV
	MaxWorkers    = 8       // threads of the vector unit, in all
	Page          = 1 << 16 // scratch of OpGEMV, and each buffer in it, begins at a multiple
	ColumnsBytes  = 256
	MaxRows       = 1 << 10
	MaxStride     = 1 << 22
	MaxTaps       = 8

	// Of OpTileMulBytes: its scratch, and bytes of a tile of activations; one of codes has TileBytes,
	// and so has a plane.
	ByteColumnsBytes = 512
	ByteLanesBytes   = hmx.LanesBytes
	BytePlanes       = hmx.Planes
)

// TableBytes returns what OpPrecompute makes of k activations, without the sums.
func TableBytes(k int, bytes bool) int { return int(tableBytes(uint64(k), bytes)) }

func tableBytes(k uint64, bytes bool) uint64 {
	if bytes {
		return 2 * k
	}
	return 8 * k
}

// GEMVTiles returns the argument of OpGEMV for tiles of so many strips, and buffers for so many
// workers.
func GEMVTiles(strips, workers int) uint32 { return uint32(strips | (workers-1)<<16) }

// GEMVTiles returns what an OpGEMV has by that argument.
func (p *Packet) GEMVTiles() (strips, workers int) {
	return int(p.Args[13] & 0xffff), int(p.Args[13]>>16) + 1
}

// TableStride returns what OpPrecompute makes of a row of k activations, sums included.
func TableStride(k int, bytes bool) int { return int(tableStride(uint64(k), bytes)) }

func tableStride(k uint64, bytes bool) uint64 {
	return tableBytes(k, bytes) + (k/8+Align-1)&^(Align-1)
}

// GEMVScratch returns the scratch of an OpGEMV of n rows of activations with m rows and k
// columns in TCM, in bytes.
func GEMVScratch(n, m, k, bits, group int, offsets bool, strips, cols, workers int) int {
	of := uint64(0)
	if offsets {
		of = 1
	}
	return int(gemvScratch(uint64(n)*uint64(m), uint64(k), uint64(bits), uint64(group), of, uint64(strips), uint64(cols), uint64(workers)))
}

func gemvScratch(sums, k, bits, group, offsets, strips, cols, workers uint64) uint64 {
	pages := func(n uint64) uint64 { return (n + Page - 1) &^ (Page - 1) }
	weights := strips * layout.Strip * cols
	tile := weights / 8 * bits
	if group != k && group > 0 {
		numbers := uint64(1)
		if offsets != 0 {
			numbers = 2
		}
		tile += weights / group * 2 * numbers
	}
	return pages(4*sums) + workers*GEMVBuffers*pages(tile)
}

// Status is a device's answer to a packet. All but StatusOK are the host's mistakes.
type Status uint32

// What devices answer.
const (
	StatusOK     Status = iota
	StatusOp            // no such operation
	StatusSize          // a count or size is zero, too large or not a multiple
	StatusRange         // an operand is not aligned, or reaches beyond the memory or TCM
	StatusNumber        // bits, group, A or B are none that the operation knows
)

// Counts holds the counts of an emulator. Zero where nothing counts.
type Counts struct {
	Packets, Instructions, Vector uint64 // packets are bundles of instructions; Vector counts HVX instructions
	Transfers, Moved              uint64 // of DMA, and their bytes
	Flying                        uint64 // transfers of an engine under way at once, at most
	Gathers, Exposed              uint64 // of HVX, and packets that waited for them
	// Lines of 128 bytes that OpGEMV read of weights, and of sums that it spilled; in DDR, in TCM.
	WeightsDDR, WeightsTCM, SumsDDR, SumsTCM uint64
	// Packets of each operation's longest shard, and operations that several workers shared.
	Longest, Barriers uint64
	// Products of the tile unit, and how many were in its queue at once, at most.
	Products, Queued uint64
	// Packets that ran beside DMA, of the dispatcher's engine, and beside the tile unit: from when it had work to when
	// the last of that was waited for.
	HidesDMA, HidesTiles uint64
}
