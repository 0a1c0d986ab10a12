package gguf

import (
	"encoding/binary"
	"math"
)

// scaleHalves holds where in a block the binary16 numbers stand that the codes are
// multiplied by, or added to.
var scaleHalves = map[Type][]int{
	Q4_0: {0}, Q4_1: {0, 2}, Q5_0: {0}, Q5_1: {0, 2}, Q8_0: {0}, IQ4_NL: {0}, TQ1_0: {52}, TQ2_0: {64},
	Q1_0: {0}, Q1_0_G32: {0}, Q4_Z32: {0}, Q4_Z64: {0}, Q4_Z128: {0}, Q2_0: {0}, Q2_0C: {0}, PQ2_0: {0}, PTQ1_0: {26}, STQ1_0: {40},
	IQ1_S: {0}, IQ2_XXS: {0}, IQ2_XS: {0}, IQ2_S: {0}, IQ3_XXS: {0}, IQ3_S: {0}, IQ4_XS: {0},
	Q2_K: {80, 82}, Q3_K: {108}, Q4_K: {0, 2}, Q5_K: {0, 2}, Q6_K: {208},
}

// Finite reports whether rows [lo, hi) of a tensor in memory hold finite values
// alone, and where not, the first row with another one. It looks at numbers and
// scales as they are stored: only these can be infinite or NaN.
func (t *Tensor) Finite(lo, hi int) (row int, ok bool) {
	tr := t.Type.traits()
	if tr.tail > 0 && !finite32(t.Data[len(t.Data)-tr.tail:][:4]) {
		return lo, false
	}
	size := t.Cols() / tr.blockLen * tr.blockBytes
	for r := lo; r < hi; r++ {
		if !t.Type.finiteRow(t.Data[r*size:(r+1)*size], tr.blockBytes) {
			return r, false
		}
	}
	return hi, true
}

func (t Type) finiteRow(raw []byte, block int) bool {
	switch t {
	case F32:
		for ; len(raw) > 0; raw = raw[4:] {
			if !finite32(raw) {
				return false
			}
		}
		return true
	case F16:
		return finite16(raw, 0x7c00)
	case BF16:
		return finite16(raw, 0x7f80)
	case IQ1_M:
		for ; len(raw) > 0; raw = raw[block:] {
			if scaleBitsIQ1M(raw)&0x7c00 == 0x7c00 {
				return false
			}
		}
		return true
	case MXFP4:
		for ; len(raw) > 0; raw = raw[block:] {
			if raw[0] > mostMXFP4 {
				return false
			}
		}
		return true
	}
	for _, at := range scaleHalves[t] {
		for b := at; b < len(raw); b += block {
			if binary.LittleEndian.Uint16(raw[b:])&0x7c00 == 0x7c00 {
				return false
			}
		}
	}
	return true
}

func finite32(b []byte) bool {
	x := math.Float32frombits(binary.LittleEndian.Uint32(b))
	return x-x == 0
}

// finite16 reports whether no number of 16 bits has all bits of its exponent set.
func finite16(raw []byte, exponent uint16) bool {
	const ones = 0x0001000100010001
	mask := uint64(exponent) * ones
	for ; len(raw) >= 8; raw = raw[8:] {
		clear := ^binary.LittleEndian.Uint64(raw) & mask // zero in 16 bits: their exponent is full
		if (clear-ones)&^clear&(ones<<15) != 0 {
			return false
		}
	}
	for ; len(raw) > 0; raw = raw[2:] {
		if binary.LittleEndian.Uint16(raw)&exponent == exponent {
			return false
		}
	}
	return true
}
