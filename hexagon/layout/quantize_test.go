package layout

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models/embedded"
)

// trained is the embedding of an embedded model: real weights that are no codes.
func trained(t testing.TB) Rows {
	f, err := embedded.Open(embedded.Default)
	if err != nil {
		t.Fatal(err)
	}
	e := f.Tensor("token_embd.weight")
	w := make([]float32, e.Len())
	if err := e.Dequantize(w, 0); err != nil {
		t.Fatal(err)
	}
	return dense(e.Rows(), e.Cols(), w)
}

func dense(rows, cols int, w []float32) Rows {
	return Rows{rows, cols, func(m int, dst []float32) { copy(dst, w[m*cols:]) }}
}

// What both papers ask of accuracy (T-MAN and TTS, Table 4 of each), as errors of
// real weights.
func TestErrorsOfFormatsOnTrainedWeights(t *testing.T) {
	sweep.NoEmulator(t)
	rows := trained(t)
	quantize := func(f Format) float64 {
		w, err := Quantize(rows, f)
		if err != nil {
			t.Fatal(err)
		}
		return RelativeError(rows, w)
	}
	values := Q4_0
	conventional, tiles := quantize(values), RelativeError(rows, QuantizeTiles(rows, Q4Values[:]))
	t.Logf("Q4_0: groups of 1×32 %.4f, of 2×16 in tiles %.4f", conventional, tiles)
	if math.Abs(tiles/conventional-1) > 0.03 {
		t.Error("groups in the order of tiles cost accuracy")
	}
	last := 0.0
	for _, bits := range []int{4, 2} {
		var of [5]float64
		for i, group := range []int{32, 64, 128, 0} {
			of[i] = quantize(Format{Bits: bits, A: 2, B: 1<<bits - 1, Group: group})
		}
		of[4] = quantize(Format{Bits: bits, A: 1, Group: 32, Offsets: true})
		t.Logf("W%d: groups of 32 %.4f, 64 %.4f, 128 %.4f, whole rows %.4f; groups of 32 with offsets %.4f", bits, of[0], of[1], of[2], of[3], of[4])
		for i, e := range of[:4] {
			if e < last {
				t.Errorf("W%d: the %dth format has a smaller error than a finer one", bits, i)
			}
			last = e
		}
		if of[4] > of[0]*1.02 {
			t.Errorf("W%d: offsets cost accuracy", bits)
		}
	}
	if ternary := quantize(Ternary); ternary < last || ternary > 0.6 {
		t.Errorf("ternary: %.4f", ternary)
	}
}

func TestTheNearestValueIsTheOneOfAWalkThroughAll(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, w := range []Format{
		{Bits: 2, A: 1, B: 1}, {Bits: 2, A: 2, B: 3}, {Bits: 4, A: 1, B: 8}, {Bits: 4, A: -2, B: 15}, {Bits: 1, A: 2, B: 1}, {Bits: 2}, // all zero
		{Bits: 4, Values: []float32{-1, -0.7, -0.52, -0.4, -0.28, -0.18, -0.09, 0, 0.08, 0.16, 0.25, 0.34, 0.44, 0.56, 0.72, 1}},
		{Bits: 2, Values: []float32{0, 0, 0, 3}},
	} {
		s := newValueSet(&Weights{Format: w})
		tried := []float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32}
		for i, v := range s.values {
			tried = append(tried, v, (v+s.values[max(i-1, 0)])/2) // and as near to two
		}
		for range 2000 {
			tried = append(tried, float32(r.NormFloat64())*s.largest)
		}
		for _, f := range tried {
			want := 0
			for i := 1; i < len(s.values) && f-s.values[want] > s.values[i]-f; i++ {
				want = i
			}
			if got := s.nearest(f); got != want {
				t.Fatalf("nearest(%v) of %v = %d, want %d", f, s.values, got, want)
			}
		}
	}
}

func TestCodesQuantizeToThemselves(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	const rows, cols = 40, 96
	w := make([]float32, rows*cols)
	for i := range w {
		w[i] = float32(r.IntN(3)-1) * 0.375
	}
	ternary, err := Quantize(dense(rows, cols, w), Ternary)
	if err != nil {
		t.Fatal(err)
	}
	if e := RelativeError(dense(rows, cols, w), ternary); e > 1e-6 {
		t.Errorf("ternary weights have an error of %v", e)
	}
	for i := range w {
		w[i] = float32(1 - 2*r.IntN(2))
	}
	binary, err := Quantize(dense(rows, cols, w), Binary)
	if err != nil {
		t.Fatal(err)
	}
	if e := RelativeError(dense(rows, cols, w), binary); e > 1e-6 {
		t.Errorf("signs have an error of %v", e)
	}
	for _, constant := range []float32{0, 0.25} {
		for i := range w {
			w[i] = constant
		}
		line, err := Quantize(dense(rows, cols, w), Format{Bits: 2, A: 1, Group: 32, Offsets: true})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, cols)
		if line.Dequantize(got, 7); math.Abs(float64(got[5]-constant)) > 1e-4 {
			t.Errorf("a row of %v becomes %v", constant, got[5])
		}
		if got := QuantizeTiles(dense(rows, cols, w), Q4Values[:]); RelativeError(dense(rows, cols, w), got) > 1e-3 {
			t.Errorf("tiles of %v have an error", constant)
		}
	}
	if _, err := Quantize(Rows{1, 32, func(_ int, dst []float32) { dst[0] = float32(math.Inf(1)) }}, Q4_0); err == nil {
		t.Error("an infinity is quantised")
	}
}
