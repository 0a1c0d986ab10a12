package grouped

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Packers of one- and two-bit block formats with a scale a block.

// PackQ1_0 packs Q1_0: blocks of 128 columns in 18 bytes,
//
//	d f16 · bits[16], column k in bit k%8 of bits[k/8]
//
// where a weight is d for a 1 and -d for a 0.
func PackQ1_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packLow("Q1_0", matrix.Q1G128, rows, cols, raw, &bitsOf)
}

// PackQ2_0 packs Q2_0: blocks of 64 columns in 18 bytes,
//
//	d f16 · qs[16], column k in bits 2(k%4), 2(k%4)+1 of qs[k/4]
//
// where a weight is d·(q-1).
func PackQ2_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packLow("Q2_0", matrix.Q2G64, rows, cols, raw, &pairsOf)
}

// PackPQ2_0 packs PQ2_0: as Q2_0 with blocks of 128 columns in 34 bytes.
func PackPQ2_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packLow("PQ2_0", matrix.Q2G128, rows, cols, raw, &pairsOf)
}

// packLow packs blocks of a scale unit of p each: f16, then the codes as they follow one
// another. spread tells where the codes of a byte stand in a plane's word.
func packLow(format string, p matrix.Packing, rows, cols int, raw []byte, spread *[256]uint32) (*matrix.Matrix, error) {
	f, unit := &formats[p], UnitCols(p)
	size := 2 + 4*f.unit*f.codeBytes/planeBytes
	if err := matrix.Check(format, rows, cols, unit, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(p, rows, cols, func(w *row, r, u int) {
		b := raw[(r*(cols/unit)+u)*size:][:size]
		w.putHalf(u, 0, b)
		w.putLow(u, b[2:], spread)
	}), nil
}

// putLow writes the codes of unit u as they follow one another.
func (w *row) putLow(u int, codes []byte, spread *[256]uint32) {
	f := w.format
	out := w.codes[u*f.unit*f.codeBytes+w.inBand*4:]
	for i := range f.unit * f.codeBytes / planeBytes {
		q := (*[4]byte)(codes[4*i:])
		v := spread[q[0]] | spread[q[1]]<<2 | spread[q[2]]<<4 | spread[q[3]]<<6
		binary.LittleEndian.PutUint32(out[i*planeBytes:], v)
	}
}

// Four bytes of codes are a word of a plane: column 4j+c of theirs belongs into byte c,
// there into bits j (one-bit codes) or 2j and 2j+1 (pairs). The tables have the bits of
// the first byte; the bits of each further one stand two places higher.
var (
	bitsOf  = spreadOf(1)
	pairsOf = spreadOf(2)
)

func spreadOf(bits int) (spread [256]uint32) {
	for q := range spread {
		for k := range 8 / bits { // the byte's columns
			code := uint32(q) >> (bits * k) & (1<<bits - 1)
			spread[q] |= code << (8*(k%4) + k/4*bits)
		}
	}
	return spread
}
