package gguf

import (
	"encoding/binary"
	"math"
)

// Codes of two bits, one above the trit that they stand for, in the order of columns:
// column k is bits 2(k%4) of byte k/4. So PQ2_0 stores them, and other types become it.

// pairCodes says how the blocks of a type hold such codes.
type pairCodes struct {
	cols, size int
	scale      int // where a block has its f16 scale; below 0 the tensor has one at its end
	read       func(codes, block []byte)
}

var pairsOf = map[Type]pairCodes{
	I2_S:   {128, 32, -1, pairsI2S},
	TQ1_0:  {256, 54, 52, pairsTQ1},
	TQ2_0:  {256, 66, 64, pairsTQ2},
	PTQ1_0: {128, 28, 26, pairsPTQ1},
	STQ1_0: {256, 42, 40, pairsSTQ1},
	Q2_0:   {64, 18, 0, pairsQ2},
	PQ2_0:  {128, 34, 0, pairsQ2},
}

func dequantizeI2_S(dst []float32, src []byte)   { pairsOf[I2_S].dequantize(dst, src) }
func dequantizeTQ1_0(dst []float32, src []byte)  { pairsOf[TQ1_0].dequantize(dst, src) }
func dequantizeTQ2_0(dst []float32, src []byte)  { pairsOf[TQ2_0].dequantize(dst, src) }
func dequantizePTQ1_0(dst []float32, src []byte) { pairsOf[PTQ1_0].dequantize(dst, src) }
func dequantizeSTQ1_0(dst []float32, src []byte) { pairsOf[STQ1_0].dequantize(dst, src) }
func dequantizeQ2_0(dst []float32, src []byte)   { pairsOf[Q2_0].dequantize(dst, src) }
func dequantizePQ2_0(dst []float32, src []byte)  { pairsOf[PQ2_0].dequantize(dst, src) }

// dequantize sets dst to the values of blocks. Code 3 reads as +2.
func (p pairCodes) dequantize(dst []float32, src []byte) {
	var codes [64]byte
	for len(dst) > 0 {
		d := float32(1) // the tensor's scale multiplies the values later
		if p.scale >= 0 {
			d = half(src[p.scale:])
		}
		p.read(codes[:p.cols/4], src[:p.size])
		for i := range dst[:p.cols] {
			dst[i] = float32(int(codes[i/4]>>(i%4*2)&3)-1) * d
		}
		dst, src = dst[p.cols:], src[p.size:]
	}
}

// Pairs sets dst, a quarter of a row long, to the codes of row r, so that its weights are scale·(code-1). It reports false
// if the row's blocks have several scales, or one that is 0 or not finite, or if the type has no codes of two bits. A
// code may be 3.
func (t *Tensor) Pairs(dst []byte, r int) (scale float32, ok bool) {
	p, ok := pairsOf[t.Type]
	if !ok {
		return 0, false
	}
	size := t.Cols() / p.cols * p.size
	raw := t.Data[r*size : (r+1)*size]
	if p.scale < 0 {
		scale = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[len(t.Data)-t.Type.traits().tail:]))
	} else {
		scale = half(raw[p.scale:])
	}
	if scale == 0 || scale-scale != 0 {
		return 0, false
	}
	for ; len(raw) > 0; dst, raw = dst[p.cols/4:], raw[p.size:] {
		if p.scale >= 0 && half(raw[p.scale:]) != scale {
			return 0, false
		}
		p.read(dst, raw[:p.size])
	}
	return scale, true
}

// pairsQ2 reads Q2_0 and PQ2_0, which have the codes after the scale as they are.
func pairsQ2(dst, block []byte) { copy(dst, block[2:]) }

// pairsTQ1 reads TQ1_0: trits in base 3, 5 a byte (32 bytes, then 16) and 4 a byte (4),
// f16 scale.
func pairsTQ1(dst, block []byte) {
	spread(dst, block[:32], &tritsOf, 5)
	spread(dst[40:], block[32:48], &tritsOf, 5)
	spread(dst[60:], block[48:52], &tritsOf, 4)
}

// pairsTQ2 reads TQ2_0: two halves of 32 bytes, bits 2l of byte i are code 32·l+i of
// the half; f16 scale.
func pairsTQ2(dst, block []byte) {
	spread(dst, block[:32], &fromLow, 4)
	spread(dst[32:], block[32:64], &fromLow, 4)
}

// pairsI2S reads I2_S (bitnet.cpp): 32 bytes, code i in the top bits of byte i, and so
// on down. The scale follows the last block of the tensor.
func pairsI2S(dst, block []byte) { spread(dst, block[:32], &fromHigh, 4) }

// pairsPTQ1 reads PTQ1_0: trits in base 3, 16 bytes and 8 of five, 2 of four, f16 scale.
func pairsPTQ1(dst, block []byte) {
	spread(dst, block[:16], &tritsOf, 5)
	spread(dst[20:], block[16:24], &tritsOf, 5)
	// The last two bytes hold four trits each: columns 120 and 121, 122 and 123 ...
	v := tritsOf[block[24]] | tritsOf[block[25]]<<2
	dst[30], dst[31] = byte(v)|byte(v>>8)<<4, byte(v>>16)|byte(v>>24)<<4
}

// spread sets dst to the n codes, 4 or 5, of each byte of src, the first codes of all
// bytes before the second ones. len(src) is a multiple of 4.
func spread(dst, src []byte, codes *[256]uint64, n int) {
	first := dst[:len(src)/4] // of each length, so that no index below is checked
	second := dst[len(first):][:len(first)]
	third := dst[2*len(first):][:len(first)]
	fourth := dst[3*len(first):][:len(first)]
	fifth := dst[4*len(first)*(n/5):][:len(first)] // with 4 codes the first ones, set last
	for i := range first {
		b := src[:4]
		v := codes[b[0]] | codes[b[1]]<<2 | codes[b[2]]<<4 | codes[b[3]]<<6
		fifth[i] = byte(v >> 32)
		first[i], second[i], third[i], fourth[i] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		src = src[4:]
	}
}

// The codes of a byte of src, the first one in the lowest byte of a word.
var (
	// tritsOf reads base-3 digits. A byte is their fraction scaled to 256, so digit k
	// is the integer part of 3 × frac(q·3ᵏ).
	tritsOf = codesOfBytes(func(q byte, k int) byte {
		for range k {
			q *= 3
		}
		return byte(uint16(q) * 3 >> 8)
	}, 5)
	fromLow  = codesOfBytes(func(q byte, k int) byte { return q >> (2 * k) & 3 }, 4)
	fromHigh = codesOfBytes(func(q byte, k int) byte { return q >> (6 - 2*k) & 3 }, 4)
)

// codesOfBytes tabulates the first n codes of every byte.
func codesOfBytes(code func(q byte, k int) byte, n int) (codes [256]uint64) {
	for q := range codes {
		for k := range n {
			codes[q] |= uint64(code(byte(q), k)) << (8 * k)
		}
	}
	return codes
}
