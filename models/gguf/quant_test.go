package gguf

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantizeRefusesSizesThatDoNotBelongTogether(t *testing.T) {
	for typ, tr := range known() {
		if tr.quantize == nil {
			continue
		}
		n, size := 2*tr.blockLen, 2*tr.blockBytes
		for _, c := range [][2]int{{n, size - 1}, {n, size + 1}, {n, size + tr.blockBytes}, {n + tr.blockLen, size}} {
			if err := Quantize(typ, make([]byte, c[1]), make([]float32, c[0])); !errors.Is(err, ErrFormat) {
				t.Errorf("Quantize(%v) of %d values into %d bytes = %v, want ErrFormat", typ, c[0], c[1], err)
			}
		}
	}
	if err := Quantize(4, nil, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Quantize to an unknown type = %v, want ErrUnsupported", err)
	}
}

func TestTernaryValuesSurviveQuantisingExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, typ := range []Type{TQ1_0, TQ2_0, Q2_0, PQ2_0, PTQ1_0} {
		src := make([]float32, 8*256)
		for i := range src {
			if i >= 256 { // the first block stays zero
				src[i] = float32(r.IntN(3)-1) * 0.0625 * float32(1+i/256)
			}
		}
		if nmse := roundTrip(t, typ, src); nmse != 0 {
			t.Errorf("%v of ternary values has NMSE %g, want 0", typ, nmse)
		}
	}
}

func TestEveryTritPatternOfTQ1_0ReadsBack(t *testing.T) {
	for q := range 243 {
		src := make([]float32, 256)
		for n, digit := 4, q; n >= 0; n-- { // byte 0 holds values 0, 32, 64, 96, 128
			src[32*n] = float32(digit%3 - 1)
			digit /= 3
		}
		src[255] = 1 // keeps the scale at 1
		dst, got := make([]byte, 54), make([]float32, 256)
		if err := Quantize(TQ1_0, dst, src); err != nil {
			t.Fatal(err)
		}
		if err := dequantize(TQ1_0, got, dst); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, src) {
			t.Fatalf("pattern %d reads back as %v", q, got)
		}
	}
}

func TestQuantisingErrorOfGaussiansIsAsExpected(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	src := make([]float32, 64*256)
	for i := range src {
		src[i] = float32(r.NormFloat64())
	}
	for _, c := range []struct {
		t        Type
		low, top float64 // NMSE
	}{
		{F32, 0, 0}, {F16, 1e-8, 1e-7}, {BF16, 1e-6, 4e-6},
		{Q8_0, 2e-5, 4e-5}, {Q4_0, 6e-3, 9e-3}, {TQ1_0, 0.4, 1}, {TQ2_0, 0.4, 1},
		{Q1_0, 0.35, 0.38}, {Q2_0, 0.4, 0.55}, {PQ2_0, 0.4, 0.65}, {PTQ1_0, 0.4, 0.65},
	} {
		if got := roundTrip(t, c.t, src); got < c.low || got > c.top {
			t.Errorf("%v of Gaussian values has NMSE %g, want %g to %g", c.t, got, c.low, c.top)
		}
	}
}

// roundTrip is the NMSE of quantising v.
func roundTrip(t *testing.T, typ Type, v []float32) float64 {
	t.Helper()
	size, err := typ.Size([]int{len(v)})
	if err != nil {
		t.Fatal(err)
	}
	blocks, back := make([]byte, size), make([]float32, len(v))
	if err := Quantize(typ, blocks, v); err != nil {
		t.Fatal(err)
	}
	if err := dequantize(typ, back, blocks); err != nil {
		t.Fatal(err)
	}
	return nmse(back, v)
}

func TestExtremesQuantiseWithoutFault(t *testing.T) {
	for _, typ := range []Type{Q8_0, Q4_0, TQ1_0, TQ2_0, Q1_0, Q2_0, PQ2_0, PTQ1_0} {
		src := make([]float32, 256)
		size, _ := typ.Size([]int{256})
		for _, v := range []float32{0, math.SmallestNonzeroFloat32, 1e-39, 65504, math.MaxFloat32} {
			src[0], src[255] = v, -v
			if err := Quantize(typ, make([]byte, size), src); err != nil {
				t.Errorf("Quantize(%v) of ±%g = %v", typ, v, err)
			}
		}
		for _, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
			src[7] = float32(v)
			if err := Quantize(typ, make([]byte, size), src); !errors.Is(err, ErrFormat) {
				t.Errorf("Quantize(%v) of %g = %v, want ErrFormat", typ, v, err)
			}
		}
	}
	if err := Quantize(Q6_K, make([]byte, 210), make([]float32, 256)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Quantize(Q6_K) = %v, want ErrUnsupported", err)
	}
}
