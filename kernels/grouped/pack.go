package grouped

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// Packers of ggml's block formats. A row is cols/block blocks, rows follow one
// another; raw is exactly that. Scales are IEEE binary16, little endian.

// PackQ4_0 packs Q4_0: blocks of 32 columns in 18 bytes,
//
//	d f16 · qs[16], column k in the low half of qs[k], k+16 in the high
//
// where a weight is d·(q-8).
func PackQ4_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 18
	if err := matrix.Check("Q4_0", rows, cols, acts.GroupCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(matrix.Q4, rows, cols, func(w *row, r, g int) {
		b := (*[size]byte)(raw[(r*(cols/acts.GroupCols)+g)*size:])
		w.putHalf(g, 0, b[:])
		low, high := binary.LittleEndian.Uint64(b[2:]), binary.LittleEndian.Uint64(b[10:])
		w.put4(g, &words{low, high, low >> 4, high >> 4})
	}), nil
}

// PackQ8_0 packs Q8_0: blocks of 32 columns in 34 bytes,
//
//	d f16 · qs int8[32]
//
// where a weight is d·q.
func PackQ8_0(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 34
	if err := matrix.Check("Q8_0", rows, cols, acts.GroupCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(matrix.Q8, rows, cols, func(w *row, r, g int) {
		b := (*[size]byte)(raw[(r*(cols/acts.GroupCols)+g)*size:])
		w.putHalf(g, 0, b[:])
		var codes words
		for i := range codes {
			codes[i] = binary.LittleEndian.Uint64(b[2+8*i:])
		}
		w.put8(g, &codes)
	}), nil
}

// superCols is the number of columns of a K-quant superblock.
const superCols = superGroups * acts.GroupCols

// PackQ4_K packs Q4_K: superblocks of 256 columns in 144 bytes,
//
//	d f16 · dmin f16 · scales[12] · qs[128]
//
// with eight groups of 32: a weight is d·sc·q - dmin·m. scales holds a six-bit
// sc and m for each group: bytes 0-3 and 4-7 those of groups 0-3 in their low
// six bits, bytes 8-11 the low nibbles of groups 4-7 (sc low half, m high
// half), whose top two bits are the top two of bytes 0-3 and 4-7. 32 bytes of
// qs hold group 2i in the low halves and 2i+1 in the high.
func PackQ4_K(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 144
	if err := matrix.Check("Q4_K", rows, cols, superCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(matrix.Q4M, rows, cols, func(w *row, r, u int) {
		b := (*[size]byte)(raw[(r*(cols/superCols)+u)*size:])
		w.putHalf(u, 0, b[:])
		w.putHalf(u, 1, b[2:])
		for i := range superGroups {
			*w.small(u, 2, 2*i), *w.small(u, 2, 2*i+1) = sixBitPair(b[4:16], i)
		}
		for i := range superGroups / 2 {
			var low, high words
			for j := range low {
				v := binary.LittleEndian.Uint64(b[16+32*i+8*j:])
				low[j], high[j] = v, v>>4
			}
			w.put4(u*superGroups+2*i, &low)
			w.put4(u*superGroups+2*i+1, &high)
		}
	}), nil
}

// sixBitPair reads scale and minimum i of the twelve bytes of Q4_K.
func sixBitPair(b []byte, i int) (sc, m byte) {
	if i < 4 {
		return b[i] & 63, b[i+4] & 63
	}
	return b[i+4]&15 | b[i-4]>>6<<4, b[i+4]>>4 | b[i]>>6<<4
}

// PackQ6_K packs Q6_K: superblocks of 256 columns in 210 bytes,
//
//	ql[128] · qh[64] · scales int8[16] · d f16
//
// where a weight is d·scales[k/16]·(q-32). Each half of 128 columns has 64
// bytes of ql and 32 of qh: column k of it takes the half k/64 of ql[k%64] as
// its low bits and bits 2(k/32), 2(k/32)+1 of qh[k%32] as its high ones.
func PackQ6_K(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 210
	if err := matrix.Check("Q6_K", rows, cols, superCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(matrix.Q6, rows, cols, func(w *row, r, u int) {
		b := (*[size]byte)(raw[(r*(cols/superCols)+u)*size:])
		w.putHalf(u, 0, b[208:])
		for i, v := range b[192:208] {
			*w.small(u, 1, i) = v
		}
		for g := range superGroups {
			ql, qh := (*[32]byte)(b[g/4*64+g%2*32:]), (*[32]byte)(b[128+g/4*32:])
			var codes words
			for j := range codes {
				low := binary.LittleEndian.Uint64(ql[8*j:]) >> (g / 2 % 2 * 4)
				high := binary.LittleEndian.Uint64(qh[8*j:]) >> (g % 4 * 2)
				codes[j] = low&lowNibbles | high&lowPairs<<4
			}
			w.put6(u*superGroups+g, &codes)
		}
	}), nil
}
