package gguf

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// groupBlocks are blocks worked out by hand from the layouts, each with the
// scale 0.5, and some of their values by index.
var groupBlocks = []struct {
	typ  Type
	src  []byte
	want map[int]float32
}{
	{Q1_0, join(0x00, 0x38, 0x01, 0x80, fill(13, 0), 0xfe),
		map[int]float32{0: 0.5, 1: -0.5, 7: -0.5, 8: -0.5, 15: 0.5, 16: -0.5, 120: -0.5, 121: 0.5, 127: 0.5}},
	{Q1_0_G32, join(0x00, 0x38, 0x01, 0x80, 0, 0xfe),
		map[int]float32{0: 0.5, 1: -0.5, 15: 0.5, 16: -0.5, 24: -0.5, 25: 0.5, 31: 0.5}},
	{Q2_0, join(0x00, 0x38, 0xe4, 0x1b, fill(13, 0x55), 0x02),
		map[int]float32{0: -0.5, 1: 0, 2: 0.5, 3: 1, 4: 1, 5: 0.5, 6: 0, 7: -0.5, 8: 0, 59: 0, 60: 0.5, 61: -0.5, 63: -0.5}},
	{PQ2_0, join(0x00, 0x38, 0xe4, 0x1b, fill(29, 0x55), 0x02),
		map[int]float32{0: -0.5, 1: 0, 2: 0.5, 3: 1, 4: 1, 7: -0.5, 8: 0, 64: 0, 123: 0, 124: 0.5, 125: -0.5, 127: -0.5}},
	// ceil(256/243 · Σ digits·3^(4-n)): 255 is 22222, 253 is 2222, 128 is 11111, 0 is 00000, 86 is 10000.
	{PTQ1_0, join(255, 128, 0, 86, fill(12, 128), 86, fill(7, 255), 253, 0, 0x00, 0x38),
		map[int]float32{
			0: 0.5, 16: 0.5, 64: 0.5, 1: 0, 65: 0, 2: -0.5, 66: -0.5, 3: 0, 19: -0.5, 67: -0.5, 15: 0,
			80: 0, 88: -0.5, 112: -0.5, 81: 0.5, 119: 0.5,
			120: 0.5, 122: 0.5, 126: 0.5, 121: -0.5, 127: -0.5,
		}},
}

// join is the bytes of ints and byte slices.
func join(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = append(b, byte(p))
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func fill(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }

func TestBlocksOfGroupTypesReadAsWorkedOutByHand(t *testing.T) {
	for _, c := range groupBlocks {
		got := make([]float32, c.typ.BlockLen())
		if err := dequantize(c.typ, got, c.src); err != nil {
			t.Fatal(err)
		}
		for i, want := range c.want {
			if got[i] != want {
				t.Errorf("%v: value %d is %v, want %v", c.typ, i, got[i], want)
			}
		}
	}
}

func TestBlocksOfGroupTypesAreWrittenAsTheyWereRead(t *testing.T) {
	for _, c := range groupBlocks {
		values, got := make([]float32, c.typ.BlockLen()), make([]byte, c.typ.BlockBytes())
		if err := dequantize(c.typ, values, c.src); err != nil {
			t.Fatal(err)
		}
		if c.typ == Q1_0_G32 || slices.Contains(values, 1) { // not written at all; code 3
			continue
		}
		if err := Quantize(c.typ, got, values); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, c.src) {
			t.Errorf("%v: the values are written as %x, want %x", c.typ, got, c.src)
		}
	}
}

func TestGroupsOfAnyValuesAreRoundedAsByTheReference(t *testing.T) {
	// 0.26 and 0.24 of a largest magnitude of 0.5 are either side of one half;
	// one half itself rounds away from zero.
	values := make([]float32, 128)
	copy(values, []float32{-0.5, 0.26, 0.24, -0.26, -0.24, 0.25, -0.25})
	for _, c := range []struct {
		typ  Type
		want []byte
	}{
		// 2 for +1, 1 for 0 and 0 for -1, the first in the lowest bits.
		{Q2_0, join(0x00, 0x38, 0b00_01_10_00, 0b01_00_10_01, fill(14, 0x55), 0, 0, fill(16, 0x55))},
		{PQ2_0, join(0x00, 0x38, 0b00_01_10_00, 0b01_00_10_01, fill(30, 0x55))},
		// Bytes of four and five digits 1 are 11110 = 120 and 11111 = 121 of 243;
		// bytes 0 to 6 begin with other digits: 01111 = 40, 21111 = 202.
		{PTQ1_0, join(43, 213, 128, 43, 128, 213, 43, fill(9, 128), fill(8, 128), 127, 127, 0x00, 0x38)},
		// Zeros count as positive; the mean magnitude is 2/128.
		{Q1_0, join(0x00, 0x24, 0b1010_0110, fill(15, 0xff))},
	} {
		got := make([]byte, len(c.want))
		if err := Quantize(c.typ, got, values); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, c.want) {
			t.Errorf("%v: the values are written as %x, want %x", c.typ, got, c.want)
		}
	}
}

func TestEveryTritPatternOfPTQ1_0ReadsBack(t *testing.T) {
	for q := range 243 {
		src := make([]float32, 128)
		for n, digit := 4, q; n >= 0; n-- { // byte 1 holds values 1, 17, 33, 49, 65; byte 18 from 82 on; byte 25 from 121 on
			src[1+16*n], src[82+8*n] = float32(digit%3-1), float32(digit%3-1)
			if n < 4 {
				src[121+2*n] = float32(digit%3 - 1)
			}
			digit /= 3
		}
		src[0] = 1 // keeps the scale at 1
		dst, got := make([]byte, 28), make([]float32, 128)
		if err := Quantize(PTQ1_0, dst, src); err != nil {
			t.Fatal(err)
		}
		if err := dequantize(PTQ1_0, got, dst); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, src) {
			t.Fatalf("pattern %d reads back as %v", q, got)
		}
	}
}

// Bytes that no writer makes are read as ggml reads them: 3 × frac(b·3ⁿ).
func TestEveryByteOfPTQ1_0IsRead(t *testing.T) {
	for b := range 256 {
		got := make([]float32, 128)
		if err := dequantize(PTQ1_0, got, join(fill(26, byte(b)), 0x00, 0x3c)); err != nil {
			t.Fatal(err)
		}
		for n, pow := 0, 1; n < 5; n, pow = n+1, 3*pow {
			want := float32(b*pow%256*3/256 - 1)
			if got[16*n+15] != want || got[80+8*n+7] != want || n < 4 && got[120+2*n+1] != want {
				t.Fatalf("digit %d of byte %d reads as %v, %v, %v, want %v", n, b, got[16*n+15], got[80+8*n+7], got[min(127, 121+2*n)], want)
			}
		}
	}
}

// FuzzQuantizeGroups quantises any numbers to the types of groups. What is
// written keeps within its block, and writing what was read changes no value.
func FuzzQuantizeGroups(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 41))
	seed := make([]byte, 4*256)
	for i := range 256 {
		binary.LittleEndian.PutUint32(seed[4*i:], math.Float32bits(float32(r.NormFloat64())))
	}
	f.Add(seed)
	f.Add(make([]byte, 512))
	f.Add(fill(512, 0x7f))
	f.Fuzz(func(t *testing.T, raw []byte) {
		src := make([]float32, len(raw)/512*128)
		dequantizeF32(src, raw)
		for _, typ := range []Type{Q1_0, Q2_0, PQ2_0, PTQ1_0} {
			size := len(src) / typ.BlockLen() * typ.BlockBytes()
			guarded := append(make([]byte, size), 42)
			once, twice := make([]float32, len(src)), make([]float32, len(src))
			if err := Quantize(typ, guarded[:size:size], src); (err == nil) != finite(src) {
				t.Fatalf("Quantize(%v) = %v", typ, err)
			}
			if guarded[size] != 42 {
				t.Fatalf("Quantize(%v) wrote past its end", typ)
			}
			if err := dequantize(typ, once, guarded[:size]); err != nil {
				t.Fatal(err)
			}
			if !finite(src) || !finite(once) { // refused, or too large for binary16
				continue
			}
			if err := Quantize(typ, guarded[:size], once); err != nil {
				t.Fatal(err)
			}
			if err := dequantize(typ, twice, guarded[:size]); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(once, twice) {
				t.Fatalf("%v changes what it has read", typ)
			}
		}
	})
}
