package grouped

import (
	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Packers of one- and two-bit block formats with a scale a block.

// PackQ1_0 packs Q1_0: blocks of 128 columns in 18 bytes,
//
//	d f16 · bits[16], column k in bit k%8 of bits[k/8]
//
// where a weight is d for a 1 and -d for a 0.
func PackQ1_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packLow("Q1_0", matrix.Q1G128, rows, cols, raw, 18, row.put1, func(b []byte, codes *[128]byte) {
		for k := range codes {
			codes[k] = b[2+k/8] >> (k % 8) & 1
		}
	})
}

// PackQ2_0 packs Q2_0: blocks of 64 columns in 18 bytes,
//
//	d f16 · qs[16], column k in bits 2(k%4), 2(k%4)+1 of qs[k/4]
//
// where a weight is d·(q-1).
func PackQ2_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packLow("Q2_0", matrix.Q2G64, rows, cols, raw, 18, row.put2, pairsOfBits)
}

// PackPQ2_0 packs PQ2_0: as Q2_0 with blocks of 128 columns in 34 bytes.
func PackPQ2_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	return packLow("PQ2_0", matrix.Q2G128, rows, cols, raw, 34, row.put2, pairsOfBits)
}

// pairsOfBits reads the codes of a block of Q2_0 or PQ2_0.
func pairsOfBits(b []byte, codes *[128]byte) {
	for i, v := range b[2:] {
		for f := range 4 {
			codes[4*i+f] = v >> (2 * f) & 3
		}
	}
}

// packLow packs blocks of size bytes, a scale unit of p each, their scale first. read sets the codes of a block, put packs those of a group.
func packLow(format string, p matrix.Packing, rows, cols int, raw []byte, size int, put func(row, int, *words), read func(b []byte, codes *[128]byte)) (*matrix.Matrix, error) {
	unit := UnitCols(p)
	if err := matrix.Check(format, rows, cols, unit, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(p, rows, cols, func(r int, w row) {
		var codes [128]byte
		for u := range cols / unit {
			b := raw[(r*(cols/unit)+u)*size:][:size]
			w.putHalf(u, 0, b)
			read(b, &codes)
			for g := range unit / acts.GroupCols {
				var s words
				for k, c := range codes[g*acts.GroupCols:][:acts.GroupCols] {
					s[k/4] |= uint32(c) << (k % 4 * 8)
				}
				put(w, u*(unit/acts.GroupCols)+g, &s)
			}
		}
	}), nil
}
