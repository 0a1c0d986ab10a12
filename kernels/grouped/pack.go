package grouped

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/acts"
	"github.com/lutra-lm/lutra/kernels/bands"
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
		put4x4(w.planes(g), b[2:])
	}), nil
}

// PackQ4_1 packs Q4_1: blocks of 32 columns in 20 bytes,
//
//	d f16 · m f16 · qs[16], as in Q4_0
//
// where a weight is d·q + m.
func PackQ4_1(rows, cols int, raw []byte) (*matrix.Matrix, error) {
	const size = 20
	if err := matrix.Check("Q4_1", rows, cols, acts.GroupCols, size, len(raw)); err != nil {
		return nil, err
	}
	return newMatrix(matrix.Q41, rows, cols, func(w *row, r, g int) {
		b := (*[size]byte)(raw[(r*(cols/acts.GroupCols)+g)*size:])
		w.putHalf(g, 0, b[:])
		w.putHalf(g, 1, []byte{b[2], b[3] ^ 0x80}) // what is taken off, not added
		put4x4(w.planes(g), b[4:])
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
		q := wordsOf((*[32]byte)(b[2:]))
		put8(w.planes(g), q[0], q[1], q[2], q[3])
	}), nil
}

// superCols is the number of columns of a K-quant superblock.
const superCols = superGroups * acts.GroupCols

// PackQ4_K packs Q4_K: superblocks of 256 columns in 144 bytes,
//
//	d f16 · dmin f16 · scales[12] · qs[128]
//
// with eight groups of 32: a weight is d·sc·q - dmin·m. scales holds a six-bit
// sc and m for each group: bytes 0-3 and 4-7 hold groups 0-3 in their low
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
		scales := w.smalls(u, 2)
		sc, m := sixBitPairs((*[12]byte)(b[4:]))
		for i := range superGroups {
			scales[2*i*bands.Rows], scales[(2*i+1)*bands.Rows] = byte(sc>>(8*i)), byte(m>>(8*i))
		}
		for i := range superGroups / 2 {
			q := wordsOf((*[32]byte)(b[16+32*i:]))
			put4(w.planes(u*superGroups+2*i), q[0], q[1], q[2], q[3])
			put4(w.planes(u*superGroups+2*i+1), q[0]>>4, q[1]>>4, q[2]>>4, q[3]>>4)
		}
	}), nil
}

// wordsOf reads 32 bytes.
func wordsOf(b *[32]byte) [4]uint64 {
	return [4]uint64{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])}
}

// sixBitPairs reads scales and minima of the twelve bytes of Q4_K, a byte each, the first lowest.
func sixBitPairs(b *[12]byte) (sc, m uint64) {
	const six, low, top = 0x3f3f3f3f, lowNibbles >> 32, lowPairs >> 32
	x, y, z := uint64(binary.LittleEndian.Uint32(b[:])), uint64(binary.LittleEndian.Uint32(b[4:])), uint64(binary.LittleEndian.Uint32(b[8:]))
	return x&six | (z&low|x>>6&top<<4)<<32, y&six | (z>>4&low|y>>6&top<<4)<<32
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
		scales := w.smalls(u, 1)
		for i, v := range b[192:208] {
			scales[i*bands.Rows] = v
		}
		for g := range superGroups {
			ql, qh := (*[32]byte)(b[g/4*64+g%2*32:]), (*[32]byte)(b[128+g/4*32:])
			codes := func(j int) uint64 {
				low, high := binary.LittleEndian.Uint64(ql[8*j:])>>(g/2%2*4), binary.LittleEndian.Uint64(qh[8*j:])>>(g%4*2)
				return low&lowNibbles | high&lowPairs<<4
			}
			put6(w.planes(u*superGroups+g), codes(0), codes(1), codes(2), codes(3))
		}
	}), nil
}
