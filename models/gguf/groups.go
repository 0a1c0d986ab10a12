package gguf

// Types of one f16 scale and 1-bit, 2-bit or ternary codes. Q1_0 and Q2_0 are of ggml-common.h, PQ2_0 and
// PTQ1_0 of PrismML's llama.cpp; their quantisers are quantize_row_*_ref of either ggml-quants.c. Q2_0C is
// of pull request 19357 of ggml-org/llama.cpp.
//
//	Q1_0, Q1_0_G32   | d | bits ...        |  weight j is bit j mod 8 of byte j/8
//	Q2_0, PQ2_0      | d | pairs ...       |  weight j is bits 2(j mod 4) of byte j/4
//	Q2_0C            | d | pairs ...       |  the same, of 512: code c is (2c-3)d
//	PTQ1_0           | digits ...      | d |  16 bytes and 8 of five trits, 2 of four

func dequantizeQ1_0(dst []float32, src []byte)     { dequantizeSigns(dst, src, 128) }
func dequantizeQ1_0_G32(dst []float32, src []byte) { dequantizeSigns(dst, src, 32) }

// dequantizeSigns reads bits of groups of n: 1 is +d, 0 is -d.
func dequantizeSigns(dst []float32, src []byte, n int) {
	for len(dst) > 0 {
		d := half(src)
		for i := range n {
			dst[i] = -d
			if src[2+i/8]>>(i%8)&1 != 0 {
				dst[i] = d
			}
		}
		dst, src = dst[n:], src[2+n/8:]
	}
}

func dequantizeQ2_0C(dst []float32, src []byte) {
	for len(dst) > 0 {
		d := half(src)
		for i := range dst[:512] {
			dst[i] = float32(2*int(src[2+i/4]>>(i%4*2)&3)-3) * d
		}
		dst, src = dst[512:], src[130:]
	}
}

// quantizeQ1_0 keeps the signs, and the mean magnitude as their scale. The sum
// is taken in order, in float32: that decides the scale's last bit.
func quantizeQ1_0(dst []byte, src []float32) {
	for len(src) > 0 {
		sum := float32(0)
		clear(dst[2:18])
		for i, v := range src[:128] {
			sum += abs(v)
			if v >= 0 {
				dst[2+i/8] |= 1 << (i % 8)
			}
		}
		putHalf(dst, sum/128)
		dst, src = dst[18:], src[128:]
	}
}

func quantizeQ2_0(dst []byte, src []float32)  { quantizePairs(dst, src, 64) }
func quantizePQ2_0(dst []byte, src []float32) { quantizePairs(dst, src, 128) }

// quantizePairs scales groups of n by their largest magnitude. No value rounds
// to +2, so code 3 is never written.
func quantizePairs(dst []byte, src []float32, n int) {
	for len(src) > 0 {
		d := abs(largest(src[:n]))
		id := inverse(d)
		putHalf(dst, d)
		for i := range n / 4 {
			q := uint(0)
			for k := range 4 {
				q |= trit(src[4*i+k], id) << (2 * k)
			}
			dst[2+i] = byte(q)
		}
		dst, src = dst[2+n/4:], src[n:]
	}
}

func quantizePTQ1_0(dst []byte, src []float32) {
	for len(src) > 0 {
		d := abs(largest(src[:128]))
		id := inverse(d)
		packDigits(dst[:16], src, 5, id)
		packDigits(dst[16:24], src[80:], 5, id)
		packDigits(dst[24:26], src[120:], 4, id)
		putHalf(dst[26:], d)
		dst, src = dst[28:], src[128:]
	}
}

// recodeSigns writes a block of Q1_0_G32 as one of Q4_0, whose code is 8 above its
// value.
func recodeSigns(dst, src []byte) {
	copy(dst, src[:2])
	for i := range 16 {
		low, high := src[2+i/8]>>(i%8)&1, src[4+i/8]>>(i%8)&1
		dst[2+i] = 7 + 2*low | (7+2*high)<<4
	}
}
