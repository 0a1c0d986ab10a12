package main

import "strings"

// An operation says what a packet's arguments mean: bounds of counts, and where operands lie.
// Expressions are Go's over the names of arguments, in 64 bits.
type operation struct {
	name     string // Op and this is the constant's
	args     string // as the contract has them: a name, and what more there is to say
	lets     []let
	numbers  string // what must hold of arguments, or the packet is refused with StatusNumber
	sizes    string // with StatusSize
	operands []operand
}

// A let is a name for an expression.
type let struct{ name, is string }

// An operand is a part of the memory.
type operand struct {
	arg    string // its offset
	bytes  string // of it; of each of its rows
	rows   string // "": it is one
	stride string // bytes from one row to the next
	floats bool   // whether the stride is an argument, with the bounds of protocol.go
	when   string // "": always
	align  string // "": Align
	rules  string // what rules add, such as | Writes
}

// Rules of operands.
const (
	writes  = " | Writes"           // what is only read has none
	scratch = " | Writes | Scratch" // what is left there means nothing
	inTCM   = " | InTCM"
	inDDR   = " | InDDR"
	apart   = " | Apart"  // it shares no byte with the first operand
	keeps   = " | Keeps"  // with writes: what was there matters
	words   = " | Words"  // of shards each writes words of its own, not vectors
	mapped  = " | Mapped" // it lies in any number of mappings

	// DMA reads it past the DSP's caches, which never have it.
	streamed = " | Streamed"

	// An engine carries out transfers in their order, and the tile unit products. So a transfer does not wait for
	// another one, nor a product for a product, that has such an operand where this one is.
	inOrder = " | InOrder"
)

func reads(arg, bytes, rules string) operand { return operand{arg: arg, bytes: bytes, rules: rules} }
func write(arg, bytes, rules string) operand {
	return operand{arg: arg, bytes: bytes, rules: writes + rules}
}

// floats are rows of float32, stride bytes apart.
func floats(arg, rows, numbers, stride, rules string) operand {
	return operand{arg: arg, rows: rows, bytes: "4 * " + numbers, stride: stride, floats: true, rules: strings.Replace(rules, writes, writes+keeps, 1)} // what is between rows stays
}

// spread are rows that are stride bytes apart, by the operation's own rule.
func spread(arg, rows, bytes, stride, rules string) operand {
	return operand{arg: arg, rows: rows, bytes: bytes, stride: stride, rules: rules}
}

func (o operand) aligned(to string) operand { o.align = to; return o }
func (o operand) only(when string) operand  { o.when = when; return o }
func (o operand) orNone() operand           { o.when = o.arg + " != 0"; return o }

// within says that a count has bounds. dim says it of a count of rows or columns, and rows of the counts of rows, of
// their parts and of a part's numbers. Products of counts that pass fit 64 bits.
func within(n, least, most string) string {
	if least == "0" {
		return n + " <= " + most
	}
	return n + " >= " + least + " && " + n + " <= " + most
}
func dim(n, multiple string) string {
	return n + " > 0 && " + n + " <= MaxDim && " + n + "%" + multiple + " == 0"
}
func rows(n, parts, width string) string {
	if parts == "1" {
		return all(within(n, "1", "MaxRows"), dim(width, "32"))
	}
	return all(within(n, "1", "MaxRows"), within(parts, "1", "MaxDim / 32"), dim(width, "32"))
}

func all(conditions ...string) string {
	out := ""
	for _, c := range conditions {
		if c == "" {
			continue
		}
		if out != "" {
			out += " && "
		}
		out += "(" + c + ")"
	}
	return out
}

// codes says that an operation knows codes of so many bits, in groups, of which one may be a row.
const codes = "(bits == 1 || bits == 2 || bits == 4 || bits == 8) && (group == 32 || group == 64 || group == 128 || group == K && !inBytes)"

// ofTile says that rows first to first+n are a tile's.
const ofTile = "n >= 1 && n <= 32 && first <= 32 - n"

// weights are the first m rows of a matrix: codes, and of groups scales and offsets.
func weights(m, rules string) []operand {
	numbers := "groups(" + m + "*K, group) * 2"
	return []operand{reads("weights", m+"*K/8*bits", rules), reads("scales", numbers, rules).only("group != K"), reads("offsets", numbers, rules).only("group != K && offsets != 0")}
}

var operations = []operation{
	{name: "Ping"},
	{name: "Copy", args: "dst, src, n", sizes: "n > 0 && n%Align == 0",
		operands: []operand{write("dst", "n", inOrder), reads("src", "n", apart+inOrder)}},
	{name: "Precompute", args: "tables, n, x [n][K], K, form 0|1", numbers: "form <= 1", sizes: all(within("n", "1", "MaxRows"), dim("K", "256")),
		operands: []operand{spread("tables", "n", "tableBytes(K, form == 1) + K/8", "tableStride(K, form == 1)", writes+keeps), reads("x", "2*K*n", "")}},
	{name: "GEMV", args: "y [n][M]int32, weights, tables, n, scales, offsets (0: none), M, K, bits 1|2|4|8, group 32|64|128|K, A, B, scratch, tiles (strips | (workers-1)<<16), cols",
		lets:    []let{{"inBytes", "bits == 8 || bits == 4 && A == 0"}, {"strips", "tiles & 0xffff"}, {"workers", "tiles>>16 + 1"}},
		numbers: all(codes, "bits != 8 || A == 1 && B == ByteZero", "inBytes || (A == 1 || A == 2) && B <= MaxB"),
		sizes: all(within("n", "1", "MaxRows"), dim("M", "128"), dim("K", "256"), within("strips", "1", "MaxStrips"),
			within("workers", "1", "MaxWorkers"), dim("cols", "256")),
		operands: append([]operand{reads("scratch", "gemvScratch(n*M, K, bits, group, offsets, strips, cols, workers)", scratch+inTCM).aligned("Page"),
			write("y", "4*M*n", apart), spread("tables", "n", "tableBytes(K, inBytes) + K/8", "tableStride(K, inBytes)", inTCM+apart),
			reads("B", "16", "").only("inBytes && bits == 4")}, weights("M", inDDR+streamed)...)},
	{name: "Dequant", args: "tiles [1+more][4][2n], weights, scales, offsets (0: none), v, strip, first, n, K, bits, group, form 0|1, more",
		lets:    []let{{"inBytes", "bits == 8 || bits == 4 && form == 1"}},
		numbers: all(codes, "form == 0 || inBytes && form == 1"),
		sizes: all(dim("K", "256"), within("strip", "0", "MaxDim/128 - 1"), within("more", "0", "MaxDim/128 - 1"),
			within("n", "1", "MaxDim / 64"), "first+n <= K/64"),
		operands: append([]operand{write("tiles", "(more + 1) * n * 8 * TileBytes", ""), reads("v", "2 << (bits & 7)", "").only("bits != 8")},
			weights("(strip + more + 1) * 128", "")...)},
	{name: "VLUT16", args: "dst, supergroups (aligned to 16), n, v", sizes: "n >= 1",
		operands: []operand{write("dst", "n*512", ""), reads("supergroups", "n*144", "").aligned("16"), reads("v", "32", "")}},
	{name: "TileMul", args: "out [rows][cols], act0 [rows][k0], wgt0 [cols][k0], k0, act1, wgt1, k1, rows, cols, scale (fp16 bits, finite), columns",
		numbers: "scale>>16 == 0 && scale>>10&31 != 31", sizes: all(within("k0", "1", "MaxTiles"), within("k1", "0", "MaxTiles"), within("rows", "1", "MaxTiles"), within("cols", "1", "MaxTiles")),
		operands: []operand{write("out", "rows*cols*TileBytes", inTCM).aligned("TileBytes"), reads("columns", "ColumnsBytes", scratch+inTCM+apart+inOrder).aligned("ColumnsBytes"),
			reads("act0", "rows*k0*TileBytes", inTCM+apart).aligned("TileBytes"), reads("wgt0", "cols*k0*TileBytes", inTCM+apart).aligned("TileBytes"),
			reads("act1", "rows*k1*TileBytes", inTCM+apart).aligned("TileBytes").only("k1 > 0"), reads("wgt1", "cols*k1*TileBytes", inTCM+apart).aligned("TileBytes").only("k1 > 0")}},
	{name: "ExpTable", args: "table", operands: []operand{write("table", "ExpTableBytes", inTCM).aligned("ExpTableBytes")}},
	{name: "Softmax", args: "s, table, states, diag, rows, keys", sizes: all(within("rows", "1", "MaxTiles"), within("keys", "1", "MaxTiles")),
		operands: []operand{write("s", "rows*keys*TileBytes", inTCM+keeps), write("states", "rows*32*StateBytes", keeps+words), write("diag", "rows*TileBytes", inTCM),
			reads("table", "ExpTableBytes", inTCM).aligned("ExpTableBytes")}},
	{name: "Collect", args: "dst, table, n, bytes, add, stride",
		sizes: all(within("n", "1", "MaxTiles"), "bytes > 0 && bytes%Align == 0 && stride%Align == 0 && stride >= bytes && stride <= TCMBytes"),
		// Pieces are where the table says, which the thread reads itself.
		operands: []operand{write("dst", "n*stride", inOrder), reads("table", "4*n", inDDR+apart), reads("", "size - TCMBytes", inDDR+inOrder+mapped)}},
	{name: "RMSNorm", args: "dst, src, weight (0: none), n, parts, width, to, from, inverse, eps", sizes: rows("n", "parts", "width"),
		operands: []operand{floats("dst", "n", "parts*width", "to", writes), floats("src", "n", "parts*width", "from", ""), reads("weight", "4*width", "").orNone()}},
	{name: "Quantize", args: "dst, scales [n]float32, src, n, K, width, from", sizes: all(rows("n", "1", "width"), dim("K", "256"), "width <= K"),
		operands: []operand{write("dst", "2*K*n", ""), write("scales", "4*n", words), floats("src", "n", "width", "from", "")}},
	{name: "Scale", args: "dst, sums, scales [n], R [width], bias [width] (0: none), n, width, to, from", sizes: rows("n", "1", "width"),
		operands: []operand{floats("dst", "n", "width", "to", writes), floats("sums", "n", "width", "from", ""), reads("scales", "4*n", ""), reads("R", "4*width", ""), reads("bias", "4*width", "").orNone()}},
	{name: "Add", args: "dst, src, n, width, to, from, factor", sizes: rows("n", "1", "width"),
		operands: []operand{floats("dst", "n", "width", "to", writes), floats("src", "n", "width", "from", "")}},
	{name: "Rope", args: "x, angles, n, parts, width, rotated, distance, to",
		sizes: all(rows("n", "parts", "width"), dim("rotated", "32"), within("distance", "1", "MaxDim"),
			"distance < 32 && distance&(distance-1) == 0 || distance >= 32 && distance%32 == 0", "rotated <= width && (distance < 32 || rotated == 2*distance)"),
		operands: []operand{floats("x", "n", "parts*width", "to", writes), reads("angles", "8*rotated*n", "")}},
	{name: "GLU", args: "dst, gate, up, n, width, to, from, unit, limit, alpha, plus",
		numbers: "unit <= GLUErfAlone && (unit != GLUClamped || limit < 0x7f800000 && alpha&0x7fffffff < 0x7f800000 && plus&0x7fffffff < 0x7f800000)", sizes: rows("n", "1", "width"),
		operands: []operand{floats("dst", "n", "width", "to", writes), floats("gate", "n", "width", "from", ""), floats("up", "n", "width", "from", "")}},
	{name: "ToTiles", args: "dst, src, n, parts, width, from, step, first, across, factor",
		sizes:    all(rows("n", "parts", "width"), ofTile, "across <= 1", "step%Align == 0 && step <= MaxStride"),
		operands: []operand{spread("dst", "parts", "width/32*TileBytes", "step", writes+keeps), floats("src", "n", "parts*width", "from", "")}},
	{name: "FromTiles", args: "dst, tiles, sums [32]float32, n, width, to, first, saturated [32]uint32, across", sizes: all(rows("n", "1", "width"), ofTile, "across <= 1"),
		operands: []operand{floats("dst", "n", "width", "to", writes), write("saturated", "128", keeps), reads("tiles", "width/32*TileBytes", ""), reads("sums", "128", "")}},
	{name: "Fold", args: "sums [32]float32, states, next (0: none), begins", sizes: "begins <= 1",
		operands: []operand{write("sums", "128", keeps), write("next", "32*StateBytes", keeps).orNone(), reads("states", "32*StateBytes", "")}},
	{name: "SoftCap", args: "s, table, tiles", sizes: within("tiles", "1", "MaxTiles"),
		operands: []operand{write("s", "tiles*TileBytes", inTCM+keeps), reads("table", "ExpTableBytes", inTCM).aligned("ExpTableBytes")}},
	{name: "LayerNorm", args: "dst, src, weight, bias, n, width, to, from, inverse, eps", sizes: rows("n", "1", "width"),
		operands: []operand{floats("dst", "n", "width", "to", writes), floats("src", "n", "width", "from", ""), reads("weight", "4*width", ""), reads("bias", "4*width", "")}},
	{name: "RowsToTiles", args: "dst [(n+31)/32][K/32], scales [n]float32, src, n, K, width, from", sizes: all(rows("n", "1", "width"), dim("K", "64"), "width <= K"),
		operands: []operand{write("dst", "64*K*((n+31)/32)", ""), write("scales", "4*n", words), floats("src", "n", "width", "from", "")}},
	{name: "TilesToRows", args: "dst, tiles [width/32][(n+31)/32], scales [n], R [width], bias [width] (0: none), n, width, to, factor, more 0|1",
		sizes: all(rows("n", "1", "width"), dim("width", "64"), "more <= 1"),
		operands: []operand{floats("dst", "n", "width", "to", writes), reads("tiles", "width/32*((n+31)/32)*TileBytes", ""), reads("scales", "4*n", ""),
			reads("R", "4*width", ""), reads("bias", "4*width", "").orNone()}},
	{name: "Mul", args: "dst, a, b, n, width, to, fromA, fromB", sizes: rows("n", "1", "width"),
		operands: []operand{floats("dst", "n", "width", "to", writes), floats("a", "n", "width", "fromA", ""), floats("b", "n", "width", "fromB", "")}},
	{name: "Conv", args: "dst, src, weights, state, n, width, to, from, taps, silu 0|1", sizes: all(within("taps", "2", "MaxTaps"), rows("n", "1", "width"), "silu <= 1"),
		operands: []operand{floats("dst", "n", "width", "to", writes), write("state", "4*(taps-1)*width", keeps), floats("src", "n", "width", "from", ""), reads("weights", "4*taps*width", "")}},
	{name: "ByteTiles", args: "tiles, codes, n, bits 1|2|4", numbers: "bits == 1 || bits == 2 || bits == 4", sizes: within("n", "1", "MaxDim / 64"),
		operands: []operand{write("tiles", "n*4*TileBytes", ""), reads("codes", "n*1024*bits", "")}},
	{name: "TileMulBytes", args: "out [rows][cols][BytePlanes] planes, act [rows][k], wgt [cols][k], k, rows, cols, columns",
		sizes: all(within("k", "1", "MaxTiles"), within("rows", "1", "MaxTiles"), within("cols", "1", "MaxTiles")),
		operands: []operand{write("out", "rows*cols*BytePlanes*TileBytes", inTCM).aligned("TileBytes"), reads("columns", "ByteColumnsBytes", scratch+inTCM+apart+inOrder).aligned("ByteColumnsBytes"),
			reads("act", "rows*k*TileBytes", inTCM+apart).aligned("TileBytes"), reads("wgt", "cols*k*ByteLanesBytes", inTCM+apart).aligned("ByteLanesBytes")}},
	{name: "Gates", args: "dst, src, weights, n, width, to, from", sizes: rows("n", "1", "width"),
		operands: []operand{floats("dst", "n", "width", "to", writes), floats("src", "n", "width", "from", ""), reads("weights", "12*width", "")}},
	{name: "Delta", args: "dst, x, gates, states (0: zeros), next, n, keys, share, width, to, from, fromGates, decay, beta, grouped 0|1", lets: []let{{"heads", "keys * share"}},
		sizes: all(rows("n", "keys", "width"), within("share", "1", "MaxDim / 32"), within("heads", "1", "MaxDim / 32"),
			within("decay", "0", "MaxDim"), within("beta", "0", "MaxDim"), "grouped <= 1"),
		operands: []operand{floats("dst", "n", "heads*width", "to", writes), write("next", "4*heads*width*width", ""), floats("x", "n", "(2*keys+heads)*width", "from", ""),
			floats("gates", "n", "(max(decay, beta) + heads)", "fromGates", ""), reads("states", "4*heads*width*width", "").orNone()}},
}
