package quantize

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// superLen is the length of the blocks of the K types, whose groups have scales of 6 bits.
const superLen = 256

// affineK has the differences between Q4_K and Q5_K.
type affineK struct {
	top             int // the largest code
	plain, weighted search
	size            int
}

var (
	q4K = affineK{15, search{-1, 0.1, 20}, search{-0.9, 0.05, 36}, 144}
	q5K = affineK{31, search{-0.5, 0.1, 15}, search{-0.9, 0.05, 36}, 176}
)

// encode writes the blocks of whole rows; columns are the importances of one row, nil: all
// the same.
func (k affineK) encode(dst []byte, src, columns []float32) {
	for at := 0; at < len(src); at += superLen {
		block := dst[at/superLen*k.size:][:k.size]
		clear(block)
		k.block(block, src[at:at+superLen], rowPart(columns, at, superLen))
	}
}

// rowPart returns the importances of the n columns at element i of rows.
func rowPart(columns []float32, i, n int) []float32 {
	if columns == nil {
		return nil
	}
	return columns[i%len(columns):][:n]
}

func (k affineK) block(dst []byte, src, columns []float32) {
	var (
		codes                    [8][32]byte
		scales, offsets, weights [8]float32
	)
	meanSquare := 2 * sumSquares(src) / superLen
	for g := range codes {
		x := (*[32]float32)(src[32*g:])
		var w [32]float32
		how := k.plain
		if columns != nil {
			how = k.weighted
			importance(w[:], x[:], columns[32*g:], meanSquare)
			for _, v := range w {
				weights[g] += v
			}
		} else {
			mean := sqrt(sumSquares(x[:]) / 32)
			for i, v := range x {
				w[i] = mean + abs(v)
			}
		}
		scales[g], offsets[g] = fitAffine(&codes[g], x, &w, k.top, how)
	}
	var scale6, offset6 [8]byte
	var d, m float32
	if columns != nil {
		d = fitPositive(scale6[:], scales[:], weights[:], 63)
		m = fitPositive(offset6[:], offsets[:], weights[:], 63)
	} else {
		d, m = nearest63(&scale6, &scales), nearest63(&offset6, &offsets)
	}
	putHalf(dst, d)
	putHalf(dst[2:], m)
	packScales(dst[4:16], &scale6, &offset6)
	for g := range codes {
		d, m := float32(half(dst)*float32(scale6[g]&63)), float32(half(dst[2:])*float32(offset6[g]&63))
		if d == 0 {
			continue
		}
		for i, v := range src[32*g : 32*g+32] {
			codes[g][i] = byte(max(0, min(k.top, round((v+m)/d))))
		}
	}
	k.packCodes(dst[16:], &codes)
}

// nearest63 rounds values that are not negative to 63rds of the largest.
func nearest63(codes *[8]byte, x *[8]float32) (scale float32) {
	most := float32(0)
	for _, v := range x {
		most = max(most, v)
	}
	if most > 0 {
		inverse := 63 / most
		for i, v := range x {
			codes[i] = min(63, byte(round(float32(inverse*v))))
		}
	}
	return most / 63
}

// packScales writes eight pairs of 6 bits. Groups 0 to 3 are bytes, whose upper bits belong to groups 4 to 7.
func packScales(dst []byte, scales, offsets *[8]byte) {
	for g := range 4 {
		s, o := scales[4+g], offsets[4+g]
		dst[g] = scales[g] | s>>4<<6
		dst[4+g] = offsets[g] | o>>4<<6
		dst[8+g] = s&15 | o<<4
	}
}

// packCodes writes nibbles, of 64 codes in 32 bytes, after the fifth bits of Q5_K.
func (k affineK) packCodes(dst []byte, codes *[8][32]byte) {
	if k.top > 15 {
		for g := range codes {
			for i, c := range codes[g] {
				dst[i] |= c >> 4 << g
			}
		}
		dst = dst[32:]
	}
	for g := 0; g < 8; g += 2 {
		for i := range 32 {
			dst[16*g+i] = codes[g][i]&15 | codes[g+1][i]<<4
		}
	}
}

// encodeQ6K writes 6-bit codes with a scale of 8 bits each 16 values.
func encodeQ6K(dst []byte, src, columns []float32) {
	const size = 210
	for at := 0; at < len(src); at += superLen {
		blockQ6K(dst[at/superLen*size:][:size], src[at:at+superLen], rowPart(columns, at, superLen))
	}
}

func blockQ6K(dst []byte, src, columns []float32) {
	var codes [superLen]byte
	var scales [16]float32
	most := float32(0)
	for g := range scales {
		scales[g] = fitSymmetric(codes[16*g:][:16], src[16*g:][:16], rowPart(columns, 16*g, 16), 32)
		if abs(scales[g]) > abs(most) {
			most = scales[g]
		}
	}
	clear(dst)
	if abs(most) < tiny {
		return
	}
	inverse := -128 / most
	putHalf(dst[208:], 1/inverse)
	for g, s := range scales {
		c := int8(min(127, round(float32(inverse*s))))
		dst[192+g] = byte(c)
		d := half(dst[208:]) * float32(c)
		if d == 0 {
			continue
		}
		for i, v := range src[16*g : 16*g+16] {
			codes[16*g+i] = byte(code(v/d, 32) + 32)
		}
	}
	for h := range 2 { // as dequantizeQ6_K of package gguf reads them
		low, high, c := dst[64*h:], dst[128+32*h:], codes[128*h:]
		for i := range 32 {
			low[i] = c[i]&15 | c[i+64]<<4
			low[32+i] = c[i+32]&15 | c[i+96]<<4
			high[i] = c[i]>>4 | c[i+32]>>4<<2 | c[i+64]>>4<<4 | c[i+96]>>4<<6
		}
	}
}

func half(b []byte) float32       { return vector.FromF16(binary.LittleEndian.Uint16(b)) }
func putHalf(b []byte, v float32) { binary.LittleEndian.PutUint16(b, vector.ToF16(v)) }
