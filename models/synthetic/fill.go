package synthetic

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/lutra-lm/lutra/models/gguf"
)

// filler makes a function that fills one block of type t with random weights of standard deviation std. They are
// uniform over {-1, 0, 1} for the ternary types, over all codes for the others.
func filler(t gguf.Type, std float64) (func(block []byte, r *rand.PCG), error) {
	ternary := std * math.Sqrt(1.5)  // of {-a, 0, a}, a third each: a·√(2/3)
	uniform := std * math.Sqrt(12.0) // of a range a: a/√12
	switch t {
	case gguf.F32, gguf.F16, gguf.BF16:
		return levels(t, uniform)
	case gguf.Q8_0:
		return codes(2, 34, 0, uniform/256), nil
	case gguf.Q4_0:
		return codes(2, 18, 0, uniform/16), nil
	case gguf.MXFP4:
		return powersOfTwo(std / math.Sqrt(34.25)), nil // the mean square of its levels
	case gguf.Q4_K:
		ones := []byte{1, 1, 1, 1, 1, 1, 1, 1, 0x11, 0x11, 0x11, 0x11}
		fill, offset := codes(16, 144, 0, uniform/16), half(uniform/16*7.5) // codes 0 to 15 around 0
		return func(block []byte, r *rand.PCG) {
			fill(block, r)
			binary.LittleEndian.PutUint16(block[2:], offset)
			copy(block[4:16], ones) // every scale and offset within the block
		}, nil
	case gguf.Q6_K:
		fill := codes(0, 192, 208, uniform/64)
		return func(block []byte, r *rand.PCG) {
			fill(block, r)
			for i := range block[192:208] {
				block[192+i] = 1 // the scales within the block
			}
		}, nil
	case gguf.TQ1_0:
		five, four, scale := base3(5), base3(4), half(ternary)
		return func(block []byte, r *rand.PCG) {
			five.fill(block[:48], r)
			four.fill(block[48:52], r)
			binary.LittleEndian.PutUint16(block[52:], scale)
		}, nil
	case gguf.TQ2_0:
		table, scale := bitPairs(), half(ternary)
		return func(block []byte, r *rand.PCG) {
			table.fill(block[:64], r)
			binary.LittleEndian.PutUint16(block[64:], scale)
		}, nil
	case gguf.NVFP4:
		return smallFloats(std / math.Sqrt(8.5625)), nil // the mean square of its levels
	case gguf.STQ1_0:
		return codes(0, 40, 40, ternary), nil
	case gguf.Q1_0:
		return twoScales(codes(2, 18, 0, 0), 0, std), nil
	case gguf.Q2_0, gguf.PQ2_0:
		table := bitPairs()
		return twoScales(func(block []byte, r *rand.PCG) { table.fill(block[2:], r) }, 0, ternary), nil
	case gguf.PTQ1_0:
		five, four := base3(5), base3(4)
		return twoScales(func(block []byte, r *rand.PCG) {
			five.fill(block[:24], r)
			four.fill(block[24:26], r)
		}, 26, ternary), nil
	}
	if at, ok := scaleAt[t]; ok {
		return anyCodes(t, at, std)
	}
	return nil, fmt.Errorf("%w: no random weights in %v", ErrOptions, t)
}

// scalePlace is the byte of a block where its scale stands, and what the number behind it is
// relative to it; 0: there is none.
type scalePlace struct {
	byte   int
	offset float64
}

// scaleAt is of further types, all other bytes of whose blocks may be anything.
var scaleAt = map[gguf.Type]scalePlace{
	gguf.Q4_1: {0, -7.5}, gguf.Q5_0: {0, 0}, gguf.Q5_1: {0, -15.5}, gguf.IQ4_NL: {0, 0}, gguf.IQ4_XS: {0, 0},
	gguf.Q2_K: {80, 1.5}, gguf.Q3_K: {108, 0}, gguf.Q5_K: {0, 15.5},
	gguf.IQ1_S: {0, 0}, gguf.IQ2_XXS: {0, 0}, gguf.IQ2_XS: {0, 0}, gguf.IQ2_S: {0, 0}, gguf.IQ3_XXS: {0, 0}, gguf.IQ3_S: {0, 0},
}

// anyCodes fills blocks with random bytes, and gives them the scale with which such blocks
// have the deviation std.
func anyCodes(t gguf.Type, at scalePlace, std float64) (func([]byte, *rand.PCG), error) {
	const sample = 256
	fill := func(d float64) func([]byte, *rand.PCG) {
		random, offset := codes(0, t.BlockBytes(), at.byte, d), half(d*at.offset)
		return func(block []byte, r *rand.PCG) {
			random(block, r)
			if at.offset != 0 {
				binary.LittleEndian.PutUint16(block[at.byte+2:], offset)
			}
		}
	}
	x := gguf.Tensor{Type: t, Dims: []int{t.BlockLen(), sample}, Data: make([]byte, sample*t.BlockBytes())}
	r, unit := rand.NewPCG(1, 1), fill(1)
	for b := x.Data; len(b) > 0; b = b[t.BlockBytes():] {
		unit(b[:t.BlockBytes()], r)
	}
	values, squares := make([]float32, x.Len()), 0.0
	err := x.Dequantize(values, 0)
	for _, v := range values {
		squares += float64(v) * float64(v)
	}
	return fill(std / math.Sqrt(squares/float64(len(values)))), err
}

// powersOfTwo makes blocks of MXFP4 whose scales are the powers of two on either side
// of d, by such chances that their mean square is d².
func powersOfTwo(d float64) func([]byte, *rand.PCG) {
	below := math.Floor(math.Log2(d))
	ratio := d / math.Exp2(below)
	above := uint64((ratio*ratio - 1) / 3 * math.MaxUint32)
	return func(block []byte, r *rand.PCG) {
		block[0] = byte(128 + below)
		if r.Uint64()>>32 < above {
			block[0]++
		}
		binary.LittleEndian.PutUint64(block[1:], r.Uint64())
		binary.LittleEndian.PutUint64(block[9:], r.Uint64())
	}
}

// smallFloats fills blocks of NVFP4, whose four scales are one of the two numbers of E4M3 about d, so
// that their mean square is d².
func smallFloats(d float64) func([]byte, *rand.PCG) {
	value := func(scale byte) float64 {
		if scale < 8 {
			return math.Ldexp(float64(scale), -9)
		}
		return math.Ldexp(float64(8+scale%8), int(scale/8)-10)
	}
	scale := byte(0)
	for scale < 0x7d && value(scale+1) <= d {
		scale++
	}
	least, next := value(scale), value(scale+1)
	above := uint64(min(1, (d*d-least*least)/(next*next-least*least)) * math.MaxUint32)
	return func(block []byte, r *rand.PCG) {
		for i := range 4 {
			block[i] = scale
			if r.Uint64()>>32 < above {
				block[i]++
			}
		}
		for i := 4; i < len(block); i += 8 {
			binary.LittleEndian.PutUint64(block[i:], r.Uint64())
		}
	}
}

// twoScales gives the blocks that fill makes one of two scales, at byte at, by
// chance. A row with a single scale would be packed as types without groups are.
// The mean square of the scales is d².
func twoScales(fill func([]byte, *rand.PCG), at int, d float64) func([]byte, *rand.PCG) {
	scales := [2]uint16{half(d * math.Sqrt(0.5)), half(d * math.Sqrt(1.5))}
	return func(block []byte, r *rand.PCG) {
		fill(block, r)
		binary.LittleEndian.PutUint16(block[at:], scales[r.Uint64()>>63])
	}
}

// half returns the binary16 of x.
func half(x float64) uint16 {
	var b [2]byte
	if err := gguf.Quantize(gguf.F16, b[:], []float32{float32(x)}); err != nil {
		panic(err) // one value into two bytes always fits
	}
	return binary.LittleEndian.Uint16(b[:])
}

// codes fills bytes [lo, hi) of a block at random and puts the scale d at byte
// scaleAt.
func codes(lo, hi, scaleAt int, d float64) func([]byte, *rand.PCG) {
	scale := half(d)
	return func(block []byte, r *rand.PCG) {
		var word [8]byte
		for i := lo; i < hi; i += 8 {
			binary.LittleEndian.PutUint64(word[:], r.Uint64())
			copy(block[i:hi], word[:])
		}
		binary.LittleEndian.PutUint16(block[scaleAt:], scale)
	}
}

// levels draws values of a plain type from 256 levels across the range.
func levels(t gguf.Type, width float64) (func([]byte, *rand.PCG), error) {
	values := make([]float32, 256)
	for i := range values {
		values[i] = float32((float64(i) - 127.5) / 256 * width)
	}
	size := t.BlockBytes()
	table := make([]byte, 256*size)
	if err := gguf.Quantize(t, table, values); err != nil {
		return nil, err
	}
	return func(block []byte, r *rand.PCG) {
		i := int(r.Uint64()>>56) * size
		copy(block, table[i:i+size])
	}, nil
}

// bytesTable lists the bytes that hold trits.
type bytesTable []byte

// fill draws bytes from the table, each with the same chance (to 1 in 65536/n).
func (t bytesTable) fill(dst []byte, r *rand.PCG) {
	n := uint64(len(t))
	for i := 0; i < len(dst); i += 4 {
		x := r.Uint64()
		for k := range min(4, len(dst)-i) {
			dst[i+k] = t[x&0xffff*n>>16]
			x >>= 16
		}
	}
}

// base3 lists the bytes of n trits: base-3 fractions scaled to 256,
// rounded up.
func base3(n int) bytesTable {
	var t bytesTable
	last := 1 // trits that the byte has room for but does not hold are 0
	for range 5 - n {
		last *= 3
	}
	for q := 0; q < 243; q += last {
		t = append(t, byte((q*256+242)/243))
	}
	return t
}

// bitPairs lists the bytes of four 2-bit codes of 0 to 2.
func bitPairs() bytesTable {
	var t bytesTable
	for b := range 256 {
		if b&(b>>1)&0x55 == 0 { // no pair is 3
			t = append(t, byte(b))
		}
	}
	return t
}
