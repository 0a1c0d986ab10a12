package attention

import (
	"encoding/binary"
	"math"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Keys and values of 4 bits have a float16 scale each 32 elements, a part, and lie in groups of eight like the others:
//
//	keys    [d/8][8]{4 bytes}   byte i of 8 dimensions: dimension i in the low half, i+4 in the high one; codes 0 to 15 are -8 to 7
//	        [d/32][8]           scales
//	values  [8][d/32]{16 bytes} byte i of 32 columns: column i in the low half, i+16 in the high one; two's complement
//	        [8][d/32]           scales
//
// Scores are integer products with queries of 8 bits.

// PartQ4 is the number of elements that share a scale.
const PartQ4 = 32

// queryPart is the size of 32 elements of a packed query:
//
//	 0  int8[32]  codes
//	32  float32   scale
//	36  int32     -8·sum of the codes, for keys' codes are 8 too large
const queryPart = PartQ4 + 8

// QueryBytesQ4 returns the size of a packed query of d elements.
func QueryBytesQ4(d int) int { return d / PartQ4 * queryPart }

// PackQueriesQ4 packs queries q[g][d], d a multiple of 32, into dst, each in QueryBytesQ4(d) bytes.
func PackQueriesQ4(dst []byte, q []float32) {
	var codes [PartQ4]int8
	for ; len(q) > 0; q, dst = q[PartQ4:], dst[queryPart:] {
		part, to := q[:PartQ4], dst[:queryPart]
		top, scale, sum := vector.AbsMax(part), float32(0), int32(0)
		clear(codes[:])
		if top >= vector.MinAbsMax && top <= math.MaxFloat32 {
			scale, sum = top/127, vector.RoundInt8(codes[:], part, 127/top)
		}
		for i, c := range codes {
			to[i] = byte(c)
		}
		binary.LittleEndian.PutUint32(to[PartQ4:], math.Float32bits(scale))
		binary.LittleEndian.PutUint32(to[PartQ4+4:], uint32(8*sum))
	}
}

// quantizeQ4 rounds 32 elements to -8 to 7 times a float16 scale, which it returns. Scales that put the element of most
// weight near -8 are candidates, as llama.cpp has them for weights. Those codes are taken that have the least squared
// error at the scale that suits them best.
func quantizeQ4(codes *[PartQ4]int8, x []float32) (scale uint16) {
	clear(codes[:])
	least, most := x[0], x[0]
	for _, v := range x {
		least, most = min(least, v), max(most, v)
	}
	if -least > most {
		most = least
	}
	if d := most - most; d != 0 {
		return notANumber // so that whoever reads it sees that something was not finite
	}
	if max(most, -most) < vector.MinAbsMax {
		return 0
	}
	// Codes c of the least error have Σxc/Σc² for a scale, and then the largest (Σxc)²/Σc².
	unit, gain := float32(0), float32(-1)
	for _, place := range [...]float32{-8, -8.8, -7.4} { // of most
		product, square := roundQ4(codes, x, place/most)
		if product /= most; product*product > gain*square {
			unit, gain = product/square, product*product/square
		}
	}
	scale = vector.ToF16(max(-largestF16, min(largestF16, unit*most)))
	s := vector.FromF16(scale)
	if s == 0 {
		clear(codes[:])
		return 0
	}
	roundQ4(codes, x, 1/s)
	return scale
}

// roundQ4 rounds x·inv to codes c, and returns Σxc and Σc².
func roundQ4(codes *[PartQ4]int8, x []float32, inv float32) (product, square float32) {
	var even, odd float32 // chains of additions of their own
	squares := int32(0)
	x = x[:PartQ4]
	for i := 0; i < PartQ4; i += 2 {
		c, d := codeQ4(x[i], inv), codeQ4(x[i+1], inv)
		codes[i], codes[i+1] = int8(c), int8(d)
		squares += c*c + d*d
		even += float32(x[i] * float32(c)) // the conversion forbids a fused multiply-add
		odd += float32(x[i+1] * float32(d))
	}
	return even + odd, float32(squares)
}

// codeQ4 rounds x·inv half to even, within -8 and 7.
func codeQ4(x, inv float32) int32 {
	const magic, bits = 0x1.8p23, 0x4b400000 // adding it leaves the rounded integer in the low bits
	y := float32(x * inv)
	if y > 7 {
		y = 7
	}
	if y < -8 {
		y = -8
	}
	return int32(math.Float32bits(y+magic)) - bits
}

// Numbers of float16: the largest finite one, and the bits of none.
const (
	largestF16 = 65504
	notANumber = 0x7e00
)

// StoreKeyQ4 puts a key x[d] at place j of a group of keys, and its scales among the group's.
func StoreKeyQ4(group []byte, scales []uint16, j int, x []float32) {
	var codes [PartQ4]int8
	for part := range len(x) / PartQ4 {
		scales[part*KeyGroup+j] = quantizeQ4(&codes, x[part*PartQ4:(part+1)*PartQ4])
		for unit := range PartQ4 / 8 {
			c, to := codes[8*unit:], group[((part*4+unit)*KeyGroup+j)*4:]
			for i := range 4 {
				to[i] = byte(c[i]+8) | byte(c[i+4]+8)<<4
			}
		}
	}
}

// StoreValueQ4 packs a value x[d] into d/2 bytes and its scales.
func StoreValueQ4(value []byte, scales []uint16, x []float32) {
	var codes [PartQ4]int8
	for part := range len(x) / PartQ4 {
		scales[part] = quantizeQ4(&codes, x[part*PartQ4:(part+1)*PartQ4])
		to := value[part*16 : part*16+16]
		for i := range to {
			to[i] = byte(codes[i])&15 | byte(codes[i+16])<<4
		}
	}
}

// LoadKeyQ4 sets x[d] to the key at place j of a group of keys with their scales.
func LoadKeyQ4(x []float32, group []byte, scales []uint16, j int) {
	for i := range x {
		b := group[(i/8*KeyGroup+j)*4+i%4] >> (i / 4 % 2 * 4) & 15
		x[i] = vector.FromF16(scales[i/PartQ4*KeyGroup+j]) * float32(int(b)-8)
	}
}

// LoadValueQ4 sets x[d] to a value with its scales.
func LoadValueQ4(x []float32, value []byte, scales []uint16) {
	for i := range x {
		b := value[i/PartQ4*16+i%16] >> (i / 16 % 2 * 4)
		x[i] = vector.FromF16(scales[i/PartQ4]) * float32(int8(b<<4)>>4)
	}
}

// ScoresQ4 does as ScoresF16 for keys of 4 bits and packed queries of d elements, a multiple of 32.
func ScoresQ4(dst []float32, ld int, q, k []byte, scale []uint16, at []int32, g, t, d int, next Ahead[byte]) {
	if g == 0 || t == 0 {
		return
	}
	n := checkKeys(len(dst), 2*len(k), ld, at, g, t, d)
	_ = q[:g*QueryBytesQ4(d)]
	checkGroups(PartQ4*len(scale), at, KeyGroup, d)
	if scoresQ4Fast(dst, ld, q, k, scale, at, g, n, d, next) {
		return
	}
	parts := d / PartQ4
	for i := range g {
		for j, first := range at[:n] {
			row := dst[i*ld+j*KeyGroup:][:KeyGroup]
			clear(row)
			for part := range parts {
				query := q[(i*parts+part)*queryPart:][:queryPart]
				keys := k[(int(first)*parts+part*KeyGroup)*16:][:KeyGroup*16]
				scales := scale[int(first)*parts+part*KeyGroup:][:KeyGroup]
				s, offset := math.Float32frombits(binary.LittleEndian.Uint32(query[PartQ4:])), int32(binary.LittleEndian.Uint32(query[PartQ4+4:]))
				for l := range row {
					sum := offset
					for c, code := range query[:PartQ4] {
						sum += int32(int8(code)) * int32(keys[(c/8*KeyGroup+l)*4+c%4]>>(c/4%2*4)&15)
					}
					row[l] += float32(sum) * float32(vector.FromF16(scales[l])*s)
				}
			}
		}
	}
}

// AccumQ4 does as AccumF16 for values of 4 bits of d elements, a multiple of 32.
func AccumQ4(acc []float32, p []float32, ld int, v []byte, scale []uint16, at []int32, g, t, d int, next Ahead[byte]) {
	if g == 0 || t == 0 {
		return
	}
	_, _ = p[(g-1)*ld+t-1], acc[:g*d]
	at = checkValues(2*len(v), at, t, d)
	checkValues(PartQ4*len(scale), at, t, d)
	if accumQ4Fast(acc, p, ld, v, scale, at, g, t, d, next) {
		return
	}
	var part [PartQ4]float32
	for j := range t {
		n := int(at[j/KeyGroup]) + j%KeyGroup
		for c := 0; c < d; c += PartQ4 {
			k := (n*d + c) / PartQ4
			LoadValueQ4(part[:], v[16*k:], scale[k:])
			for i := range g {
				row, w := acc[i*d+c:][:PartQ4], p[i*ld+j]
				for l, x := range part {
					row[l] += w * x
				}
			}
		}
	}
}
