package weights

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// stored quantises row-major values to a tensor of that type.
func stored(t testing.TB, typ gguf.Type, rows, cols int, values []float32) *gguf.Tensor {
	t.Helper()
	x := &gguf.Tensor{Name: "w", Type: typ, Dims: []int{cols, rows}}
	size, err := typ.Size(x.Dims)
	if err != nil {
		t.Fatal(err)
	}
	x.Data = make([]byte, size)
	if err := gguf.Quantize(typ, x.Data, values); err != nil {
		t.Fatal(err)
	}
	return x
}

// trits are random ternary rows times scale(r); row 0 is all zero.
func trits(rows, cols int, scale func(r int) float32) []float32 {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	v := make([]float32, rows*cols)
	for i := range v {
		if i >= cols {
			v[i] = float32(r.IntN(3)-1) * scale(i/cols)
		}
	}
	return v
}

// holds fails unless w has exactly the values that t stores.
func holds(t *testing.T, w *matrix.Matrix, x *gguf.Tensor) {
	t.Helper()
	if w.Rows != x.Rows() || w.Cols != x.Cols() {
		t.Fatalf("packed as %d x %d, want %d x %d", w.Rows, w.Cols, x.Rows(), x.Cols())
	}
	want, got := make([]float32, x.Cols()), make([]float32, x.Cols())
	for r := range x.Rows() {
		if err := x.Dequantize(want, r*x.Cols()); err != nil {
			t.Fatal(err)
		}
		matrices.Row(got, w, r)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%v as %v: row %d, column %d is %v, want %v", x.Type, w.Packing, r, i, got[i], want[i])
			}
		}
	}
}

func TestEveryStorageTypeKeepsItsValuesWhenPacked(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for typ, want := range map[gguf.Type]matrix.Packing{
		gguf.F32: matrix.F32, gguf.F16: matrix.F16, gguf.BF16: matrix.BF16,
		gguf.Q8_0: matrix.Q8, gguf.Q4_0: matrix.Q4, gguf.Q4_1: matrix.Q41, gguf.Q4_K: matrix.Q4M, gguf.Q6_K: matrix.Q6,
		gguf.Q5_0: matrix.Q8, gguf.MXFP4: matrix.FP4, gguf.NVFP4: matrix.NVFP4,
		gguf.IQ4_NL: matrix.NL4, gguf.IQ4_XS: matrix.NL4K, gguf.Q3_K: matrix.NL3K, gguf.IQ3_S: matrix.NL4S, gguf.IQ3_XXS: matrix.NL4S,
		gguf.IQ2_S: matrix.NL3K, gguf.IQ2_XS: matrix.NL3K, gguf.IQ2_XXS: matrix.NL3K, gguf.IQ1_M: matrix.NL3K, gguf.IQ1_S: matrix.NL3K,
		gguf.STQ1_0: matrix.Q2G128, gguf.TQ1_0: matrix.Q2G128, gguf.TQ2_0: matrix.Q2G128,
		gguf.Q1_0: matrix.Q1G128, gguf.Q2_0: matrix.Q2G64, gguf.PQ2_0: matrix.Q2G128, gguf.PTQ1_0: matrix.Q2G128, gguf.Q1_0_G32: matrix.Q4,
	} {
		x := &gguf.Tensor{Name: "w", Type: typ, Dims: []int{512, 33}}
		size, err := typ.Size(x.Dims)
		if err != nil {
			t.Fatal(err)
		}
		x.Data = make([]byte, size)
		for i := range x.Data {
			x.Data[i] = byte(r.Uint32()) & 0xbf // no exponent of all ones: finite scales
			if typ == gguf.MXFP4 && i%17 == 0 {
				x.Data[i] = 104 + x.Data[i]%40 // scales of 2^-24 to 2^15
			}
		}
		w, err := Pack(x, 1, Form{})
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		if w.Packing != want {
			t.Errorf("%v is packed as %v, want %v", typ, w.Packing, want)
		}
		holds(t, w, x)
		exact, err := Pack(x, 1, Form{Exact: true})
		if err != nil || exact.Packing != matrix.F32 {
			t.Fatalf("%v: exact packing is %v, %v", typ, exact, err)
		}
		holds(t, exact, x)
	}
}

func TestTypesWithOffsetsKeepTheirValuesWhenPacked(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for typ, packing := range map[gguf.Type]matrix.Packing{gguf.Q5_1: matrix.Q8, gguf.Q2_K: matrix.NL3K, gguf.Q5_K: matrix.Q6, gguf.Q2_0C: matrix.Q2G128, gguf.Q4_Z32: matrix.Q4, gguf.Q4_Z128: matrix.Q4} {
		const rows, cols = 20, 512
		x := &gguf.Tensor{Name: "w", Type: typ, Dims: []int{cols, rows}}
		size, err := typ.Size(x.Dims)
		if err != nil {
			t.Fatal(err)
		}
		x.Data = make([]byte, size)
		for i := range x.Data {
			x.Data[i] = byte(r.Uint32()) & 0xb7 // halves below 2: no overflow
		}
		w, err := Pack(x, 1, Form{})
		if err != nil || w.Packing != packing || w.Offsets == nil {
			t.Fatalf("%v: %v as %v, want %v with offsets", typ, err, w.Packing, packing)
		}
		want, got := make([]float32, cols), make([]float32, cols)
		for row := range rows {
			if err := x.Dequantize(want, row*cols); err != nil {
				t.Fatal(err)
			}
			matrices.Row(got, w, row)
			most := float64(vector.AbsMax(want))
			for i := range want {
				if math.Abs(float64(got[i]-want[i])) > 0x1p-22*most { // roundings of float32
					t.Fatalf("%v: row %d, column %d is %v, want %v", typ, row, i, got[i], want[i])
				}
			}
		}
	}
}

func TestTernaryMatricesCanKeepThePrecisionOfTheirStorageType(t *testing.T) {
	shared := func(int) float32 { return 0.75 }
	for typ, want := range map[gguf.Type]matrix.Packing{
		gguf.F32: matrix.F32, gguf.F16: matrix.F16, gguf.BF16: matrix.BF16, gguf.Q8_0: matrix.Q8, gguf.TQ1_0: matrix.Q2G128, gguf.TQ2_0: matrix.Q2G128, gguf.Q2_0: matrix.Q2G64,
	} {
		x := stored(t, typ, 70, 256, trits(70, 256, shared))
		w, err := Pack(x, 1, Form{Packing: PackingStored})
		if err != nil || w.Packing != want {
			t.Fatalf("%v: %v, %v, want %v", typ, w, err, want)
		}
		holds(t, w, x)
	}
	for scale, want := range map[float32]matrix.Packing{0: matrix.Q2G128, 0.75: matrix.Q2G128, -3: matrix.Q2G128, 1e-5: matrix.F32, 7e4: matrix.F32} {
		x := &gguf.Tensor{Name: "w", Type: gguf.I2_S, Dims: []int{128, 3}, Data: make([]byte, 3*32+32)}
		for i := range 96 {
			x.Data[i] = []byte{0x15, 0x26, 0x40, 0x8a}[i%4]
		}
		binary.LittleEndian.PutUint32(x.Data[96:], math.Float32bits(scale))
		w, err := Pack(x, 1, Form{Packing: PackingStored})
		if err != nil || w.Packing != want {
			t.Fatalf("I2_S times %v: %v, %v, want %v", scale, w, err, want)
		}
		holds(t, w, x)
	}
}

func TestTernaryRowsOfAnyStorageTypeBecomeTrits(t *testing.T) {
	perRow := func(r int) float32 { return 0.25 * float32(1+r%7) }
	shared := func(int) float32 { return 0.75 }
	for _, typ := range []gguf.Type{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.TQ1_0, gguf.TQ2_0} {
		for name, packing := range map[string]matrix.Packing{"": matrix.I2, "auto": matrix.I2, "i2": matrix.I2, "i1": matrix.I1} {
			for scales, scale := range map[int]func(int) float32{1: shared, 70: perRow} {
				x := stored(t, typ, 70, 256, trits(70, 256, scale))
				w, err := Pack(x, 1, Form{Packing: name})
				if err != nil {
					t.Fatal(err)
				}
				if w.Packing != packing || len(w.Scale) != scales {
					t.Errorf("%v, packing %q: %v with %d scales, want %v with %d", typ, name, w.Packing, len(w.Scale), packing, scales)
				}
				holds(t, w, x)
			}
		}
	}
}

func TestOneValueThatIsNoTritKeepsTheMatrixDense(t *testing.T) {
	for _, at := range []int{0, 256, 69*256 + 255} {
		v := trits(70, 256, func(int) float32 { return 1 })
		v[1], v[257], v[69*256] = 1, 1, 1
		v[at] = 0.5
		x := stored(t, gguf.F16, 70, 256, v)
		w, err := Pack(x, 1, Form{})
		if err != nil || w.Packing != matrix.F16 {
			t.Fatalf("a value of 0.5 at %d: %v, %v, want F16", at, w.Packing, err)
		}
		holds(t, w, x)
	}
}

func TestATernaryTypeWhoseScaleChangesInARowStaysExact(t *testing.T) {
	for _, typ := range []gguf.Type{gguf.TQ1_0, gguf.TQ2_0} {
		v := trits(20, 512, func(int) float32 { return 1 })
		v[3*512], v[3*512+1], v[3*512+300] = 1, -1, 1
		for i := 256; i < 512; i++ {
			v[3*512+i] *= 1.5
		}
		x := stored(t, typ, 20, 512, v)
		w, err := Pack(x, 1, Form{})
		if err != nil || w.Packing != matrix.Q2G128 {
			t.Fatalf("%v with two scales in a row: %v, %v, want Q4", typ, w.Packing, err)
		}
		holds(t, w, x)
	}
}

func TestTernaryBlocksOfOddScalesKeepTheirValues(t *testing.T) {
	// Halves of the scale at the end of a block: negative, zero, infinite; and
	// a second block that is all zeros under another scale.
	for name, c := range map[string]struct {
		first, second byte // high bytes of the two scales
		packing       matrix.Packing
	}{
		"negative":         {0xbc, 0xbc, matrix.I2},
		"opposite":         {0x3c, 0xbc, matrix.I2},
		"zero":             {0, 0, matrix.I2},
		"zeros in between": {0x3c, 0x40, matrix.I2},
		"infinite":         {0x7c, 0x7c, matrix.Q2G128},
	} {
		v := trits(1, 512, nil)
		x := stored(t, gguf.TQ2_0, 1, 512, v)
		for i := range 64 {
			x.Data[i] = 0x64 // codes 0, 1, 2, 1: −1, 0, +1, 0
			if name == "opposite" || name == "negative" {
				x.Data[66+i] = 0x64
			}
		}
		x.Data[65], x.Data[131] = c.first, c.second
		w, err := Pack(x, 1, Form{})
		if err != nil || w.Packing != c.packing {
			t.Errorf("%s scales: %v, %v, want %v", name, w.Packing, err, c.packing)
			continue
		}
		if name != "infinite" {
			holds(t, w, x)
		}
	}
}

func TestTheUnusedCodeOfTQ2_0IsReadAsTwo(t *testing.T) {
	x := stored(t, gguf.TQ2_0, 2, 256, trits(2, 256, func(int) float32 { return 1 }))
	x.Data[66] |= 3
	w, err := Pack(x, 1, Form{})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, w, x)
	row := make([]float32, 256)
	if matrices.Row(row, w, 1); row[0] != 2 {
		t.Errorf("code 3 reads as %v, want 2", row[0])
	}
}

func TestTernaryWeightsOfBitnetCppBecomeTrits(t *testing.T) {
	x := &gguf.Tensor{Name: "w", Type: gguf.I2_S, Dims: []int{128, 3}, Data: make([]byte, 3*32+32)}
	for i := range 3 * 32 {
		x.Data[i] = []byte{0x15, 0x26, 0x40, 0x8a}[i%4]
	}
	x.Data[3*32+2], x.Data[3*32+3] = 0x40, 0x3f // 0.75
	w, err := Pack(x, 1, Form{})
	if err != nil || w.Packing != matrix.I2 || w.Scale[0] != 0.75 {
		t.Fatalf("I2_S becomes %v, %v, want I2 with scale 0.75", w, err)
	}
	holds(t, w, x)
}

func TestWhatCannotBePackedIsAnError(t *testing.T) {
	q81 := &gguf.Tensor{Name: "w", Type: 9, Dims: []int{32, 1}, Data: make([]byte, 36)}
	for _, exact := range []bool{false, true} {
		if w, err := Pack(q81, 1, Form{Exact: exact}); w != nil || !errors.Is(err, gguf.ErrUnsupported) {
			t.Errorf("packing Q8_1 = %v, %v, want ErrUnsupported", w, err)
		}
	}
	if w, err := Pack(stored(t, gguf.F32, 1, 1, []float32{1}), 1, Form{Packing: "i3"}); w != nil || err == nil {
		t.Errorf("packing i3 = %v, %v, want an error", w, err)
	}
}

// BenchmarkPackMatrix packs blocks of random bytes, and ternary weights, in memory that was packed into before, as a Loader does;
// MB/s count the file's bytes.
func BenchmarkPackMatrix(b *testing.B) {
	const rows, cols = 512, 2048
	var all []*gguf.Tensor
	for _, typ := range []gguf.Type{gguf.TQ1_0, gguf.TQ2_0, gguf.PQ2_0, gguf.F16} {
		all = append(all, stored(b, typ, rows, cols, trits(rows, cols, func(int) float32 { return 1 })))
	}
	for typ := range storages {
		x := &gguf.Tensor{Name: "w", Type: typ, Dims: []int{cols, rows}}
		size, err := typ.Size(x.Dims)
		if err != nil {
			b.Fatal(err)
		}
		x.Data = make([]byte, size)
		r := rand.New(rand.NewPCG(1, uint64(typ)))
		for i := range x.Data {
			x.Data[i] = byte(r.Uint32()) & 0xbf // finite scales
			if typ == gguf.MXFP4 && i%17 == 0 {
				x.Data[i] = 110 + x.Data[i]%30
			}
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(x, y *gguf.Tensor) int { return cmp.Compare(x.Type, y.Type) })
	for _, x := range all {
		w, err := Pack(x, 1, Form{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(x.Type.String()+"/"+w.Packing.String(), func(b *testing.B) {
			b.SetBytes(int64(x.Bytes()))
			for b.Loop() {
				w, err := Pack(x, 1, Form{})
				if err != nil {
					b.Fatal(err)
				}
				matrix.Recycle(w)
			}
			b.ReportMetric(rows*cols*float64(b.N)/1e9/b.Elapsed().Seconds(), "Gweights/s")
		})
	}
}

func TestScalesThatHalvesDoNotHoldAreWidened(t *testing.T) {
	x := &gguf.Tensor{Name: "w", Type: gguf.MXFP4, Dims: []int{64, 3}, Data: make([]byte, 6*17)}
	for i := range x.Data {
		x.Data[i] = byte(37 * i)
	}
	for b := 0; b < len(x.Data); b += 17 {
		x.Data[b] = 127
	}
	copy(x.Data[17:], make([]byte, 17)) // zeros may have any scale
	x.Data[34] = 60                     // 2^-68
	w, err := Pack(x, 1, Form{})
	if err != nil || w.Packing != matrix.F32 {
		t.Fatalf("packed as %v, %v", w.Packing, err)
	}
	holds(t, w, x)
	x.Data[34] = 127
	if w, err = Pack(x, 1, Form{}); err != nil || w.Packing != matrix.FP4 {
		t.Fatalf("packed as %v, %v", w.Packing, err)
	}
	holds(t, w, x)
	for scale, want := range map[float32]matrix.Packing{32752: matrix.Q2G128, 32768: matrix.F32} { // half of the largest, and a little more
		x := &gguf.Tensor{Name: "w", Type: gguf.Q2_0C, Dims: []int{512, 2}, Data: make([]byte, 2*130)}
		for i := range x.Data {
			x.Data[i] = byte(37 * i)
		}
		binary.LittleEndian.PutUint16(x.Data, vector.ToF16(0.5))
		binary.LittleEndian.PutUint16(x.Data[130:], vector.ToF16(scale))
		if w, err := Pack(x, 1, Form{}); err != nil || w.Packing != want {
			t.Errorf("a scale of %v: packed as %v, %v, want %v", scale, w.Packing, err, want)
		}
	}
}
