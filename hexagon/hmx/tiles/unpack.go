package tiles

import (
	"encoding/binary"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// Codes is the number of values that a row has: one for each code of four bits.
const Codes = 16

// Lengths of bit-serial codes: a line is one plane of 8 columns of 128 rows.
const (
	lineBytes  = 128
	planeBytes = 8 * lineBytes
)

// Unpack makes a tile of codes in bit planes and of what they mean in each row.
// lines begins with the 32 bytes of the tile's rows in the first line of the highest
// of bits planes: 1, 2 or 4. The layout is hexagon/layout's.
func Unpack(dst *[Size]uint16, lines []byte, values *[Side][Codes]uint16, bits int) {
	_ = lines[(bits-1)*planeBytes+3*lineBytes+Side-1]
	if !unpackFast(dst, lines, values, bits) {
		unpackGeneric(dst, lines, values, bits)
	}
}

// ScaleValues makes values[row] = fp16(fp16(v·scales[row]) + offsets[row]), in fp16
// without infinities; nothing is added without offsets.
func ScaleValues(values [][Codes]uint16, v *[Codes]float32, scales, offsets []float32) {
	scales = scales[:len(values)]
	if offsets != nil {
		offsets = offsets[:len(values)]
	}
	if len(values) > 0 && !scaleValuesFast(values, v, scales, offsets) {
		scaleValuesGeneric(values, v, scales, offsets)
	}
}

// Sizes of a super-group: 8 scales in fp16, and 256 codes of four bits.
const (
	superGroup      = 256
	superGroupBytes = 8*2 + superGroup/2
)

// SuperGroups makes dst = fp16(v·scale) of super-groups, as hexagon/layout has them.
func SuperGroups(dst []uint16, src []byte, v *[Codes]float32) {
	n := len(dst) / superGroup
	src = src[:n*superGroupBytes]
	if n > 0 && !superGroupsFast(dst, src, v, n) {
		superGroupsGeneric(dst, src, v, n)
	}
}

func superGroupsGeneric(dst []uint16, src []byte, v *[Codes]float32, n int) {
	for ; n > 0; n, dst, src = n-1, dst[superGroup:], src[superGroupBytes:] {
		var values [8][Codes]uint16
		var scales [8]float32
		for g := range scales {
			scales[g] = vector.FromF16(binary.LittleEndian.Uint16(src[2*g:]))
		}
		scaleValuesGeneric(values[:], v, scales[:], nil)
		for i, c := range src[16:superGroupBytes] {
			e := i/2 + i&1*64
			dst[e] = values[e/32][c&15]
			dst[e+128] = values[e/32+4][c>>4]
		}
	}
}

// Narrow makes a tile of fp16(scale · s), at most ±65504.
func (s *Sums) Narrow(dst *[Size]uint16, scale float32) {
	if !s.narrowFast(dst, scale) {
		s.narrowGeneric(dst, scale)
	}
}

func narrow(f float32) uint16 { return vector.ToF16(max(-65504, min(f, 65504))) }

func (s *Sums) narrowGeneric(dst *[Size]uint16, scale float32) {
	for i, f := range s {
		y, x := i/Side, i%Side
		dst[y>>1<<6|x<<1|y&1] = narrow(f * scale)
	}
}

func scaleValuesGeneric(values [][Codes]uint16, v *[Codes]float32, scales, offsets []float32) {
	for row := range values {
		for q, f := range v {
			h := narrow(f * scales[row])
			if offsets != nil {
				h = narrow(vector.FromF16(h) + offsets[row])
			}
			values[row][q] = h
		}
	}
}

// spread has bit i of a byte in byte i.
var spread = func() (t [256]uint64) {
	for b := range t {
		for i := range 8 {
			t[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return
}()

func unpackGeneric(dst *[Size]uint16, lines []byte, values *[Side][Codes]uint16, bits int) {
	for row := 0; row < Side; row += 2 {
		out := (*[2 * Side]uint16)(dst[row*Side:])
		even, odd := &values[row], &values[row+1]
		for pair := range 4 {
			var e, o uint64 // a code a byte
			// Bytes of four rows stand in the order 0, 2, 1, 3.
			at := pair*lineBytes + row&^3 + row>>1&1
			for range bits {
				e, o = e<<1|spread[lines[at]], o<<1|spread[lines[at+2]]
				at += planeBytes
			}
			// The codes belong to columns 4·pair, 16 + 4·pair, 4·pair + 1, ...
			lo, hi := (*[8]uint16)(out[8*pair:]), (*[8]uint16)(out[Side+8*pair:])
			for i := range 4 {
				lo[2*i], lo[2*i+1] = even[e&15], odd[o&15]
				hi[2*i], hi[2*i+1] = even[e>>8&15], odd[o>>8&15]
				e, o = e>>16, o>>16
			}
		}
	}
}
