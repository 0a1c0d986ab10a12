package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels/vector"
)

// The expected values below were worked out by hand from the layouts in
// ggml-common.h.

func TestDequantizeReadsBlocksWorkedOutByHand(t *testing.T) {
	bytesOf := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	fill := func(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }
	one := []byte{0x00, 0x3c}  // f16 1
	half := []byte{0x00, 0x38} // f16 0.5
	for _, c := range []struct {
		name string
		t    Type
		src  []byte
		want map[int]float32 // by index
		n    int
	}{
		{"F32", F32, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, map[int]float32{0: 1, 1: -2}, 2},
		{"F16", F16, []byte{0, 0x3c, 1, 0, 0xff, 0xfb}, map[int]float32{0: 1, 1: 0x1p-24, 2: -65504}, 3},
		{"BF16", BF16, []byte{0x80, 0x3f, 0xc0, 0xbf}, map[int]float32{0: 1, 1: -1.5}, 2},
		{"Q8_0", Q8_0, bytesOf(half, []byte{0x80, 0x7f, 0xff}, fill(29, 2)), map[int]float32{0: -64, 1: 63.5, 2: -0.5, 3: 1, 31: 1}, 32},
		{"Q4_0", Q4_0, bytesOf(half, []byte{0xf0, 0x19}, fill(14, 0x88)), map[int]float32{0: -4, 16: 3.5, 1: 0.5, 17: -3.5, 2: 0, 31: 0}, 32},
		// Sub-blocks 0 and 4: scale 0b01_0011 (4 low bits in byte 8, 2 high ones in byte 0), minimum 0b10_0001.
		{"Q4_K", Q4_K, bytesOf(one, half, []byte{0x45, 0, 0, 0, 0x86, 0, 0, 0, 0x13, 0, 0, 0}, fill(128, 0x7a)),
			map[int]float32{
				0:   5*10 - 0.5*6,                           // scale 5, minimum 6, low nibble
				32:  0,                                      // scale and minimum 0
				128: (16+3)*10 - 0.5*(32+1), 160: 0, 31: 47, // sub-block 4
			}, 256},
		{"Q4_1", Q4_1, bytesOf(half, one, []byte{0xf3}, fill(15, 0)), map[int]float32{0: 2.5, 16: 8.5, 1: 1, 31: 1}, 32},
		// Fifth bits of codes 0 and 17.
		{"Q5_0", Q5_0, bytesOf(half, []byte{1, 0, 2, 0}, []byte{0xf3, 0x20}, fill(14, 0)), map[int]float32{0: 1.5, 16: -0.5, 17: 1, 1: -8, 31: -8}, 32},
		{"Q5_1", Q5_1, bytesOf(half, one, []byte{1, 0, 2, 0}, []byte{0xf3, 0x20}, fill(14, 0)), map[int]float32{0: 10.5, 16: 8.5, 17: 10, 1: 1, 31: 1}, 32},
		{"IQ4_NL", IQ4_NL, bytesOf(half, []byte{0xf0}, fill(15, 0x87)), map[int]float32{0: -63.5, 16: 56.5, 1: -5, 17: 0.5}, 32},
		// Scale 3 and minimum 2 in all groups; codes 0, 1, 2, 3 up the bit pairs.
		{"Q2_K", Q2_K, bytesOf(fill(16, 0x23), fill(64, 0xe4), one, half), map[int]float32{0: -1, 16: -1, 32: 2, 64: 5, 127: 8, 128: -1, 255: 8}, 256},
		// Scales 0b10_0001 − 32 = 1, but group 0 is 0b10_0011 − 32 = 3; third bits of the first 32 values only.
		{"Q3_K", Q3_K, bytesOf(fill(32, 1), fill(64, 0xe4), []byte{0x13}, fill(7, 0x11), fill(4, 0xaa), half),
			map[int]float32{0: 0, 15: 0, 16: 0, 32: -1.5, 64: -1, 96: -0.5, 128: -2, 255: -0.5}, 256},
		// As Q4_K above, with the fifth bits of groups 0 and 5.
		{"Q5_K", Q5_K, bytesOf(one, half, []byte{0x45, 0, 0, 0, 0x86, 0, 0, 0, 0x13, 0, 0, 0}, fill(32, 0x21), fill(128, 0x7a)),
			map[int]float32{0: 5*26 - 3, 31: 5*26 - 3, 32: 0, 128: 19*10 - 16.5, 160: 0}, 256},
		// Low nibbles 15 and 0, upper pairs 0b11_10_01_00.
		{"Q6_K", Q6_K, bytesOf(fill(128, 0x0f), fill(64, 0xe4), []byte{1, 2, 3, 4, 5, 6, 7, 0xff}, fill(8, 1), half),
			map[int]float32{
				0: -17 * 0.5, 16: -17 * 1, // 15|0<<4 = 15
				32: -1 * 1.5, 48: -1 * 2, // 15|1<<4 = 31
				64: 0 * 2.5, 95: 0 * 3, // 0|2<<4 = 32
				96: 16 * 3.5, 127: 16 * -0.5, // 0|3<<4 = 48
				128: -17 * 0.5, 255: 16 * 0.5,
			}, 256},
		// ceil(256/243 · Σ digits·3^(4-n)): 255 is 22222, 128 is 11111, 0 is 00000, 86 is 10000 (81).
		{"TQ1_0", TQ1_0, bytesOf([]byte{255, 128, 0, 86}, fill(28, 128), []byte{86}, fill(15, 128), fill(4, 255), half),
			map[int]float32{
				0: 0.5, 32: 0.5, 128: 0.5, 1: 0, 129: 0, 2: -0.5, 130: -0.5, 3: 0, 35: -0.5, 131: -0.5,
				160: 0, 176: -0.5, 224: -0.5, 161: 0, 240: 0.5, 252: 0.5, 255: 0.5,
			}, 256},
		{"TQ2_0", TQ2_0, bytesOf([]byte{0xe4}, fill(31, 0x55), fill(32, 0xaa), half),
			map[int]float32{0: -0.5, 32: 0, 64: 0.5, 96: 1, 1: 0, 127: 0, 128: 0.5, 255: 0.5}, 256},
		{"I2_S", I2_S, bytesOf([]byte{0x1b}, fill(31, 0x55), []byte{0, 0, 0x80, 0x3e}, fill(28, 0xee)),
			map[int]float32{0: -0.25, 32: 0, 64: 0.25, 96: 0.5, 1: 0, 127: 0}, 128},
	} {
		got := make([]float32, c.n)
		if err := Dequantize(c.t, got, c.src); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, want := range c.want {
			if got[i] != want {
				t.Errorf("%s: value %d = %v, want %v", c.name, i, got[i], want)
			}
		}
	}
}

func TestRecodedBlocksHoldTheSameValues(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	recoded := 0
	for typ, tr := range known() {
		block := &Tensor{Name: "w", Type: typ, Dims: []int{tr.blockLen}, Data: make([]byte, tr.blockBytes+tr.tail)}
		to, f := block.Recoding()
		if f == nil {
			continue
		}
		recoded++
		src, dst := block.Data, make([]byte, tr.blockLen/to.BlockLen()*to.BlockBytes())
		want, got := make([]float32, tr.blockLen), make([]float32, tr.blockLen)
		for range 200 {
			for i := range src {
				src[i] = byte(r.Uint32()) & 0xbf // no exponent of all ones: finite scales
			}
			for i := range dst {
				dst[i] = 0xff // old contents must not show
			}
			if typ == I2_S { // a scale that binary16 holds
				binary.LittleEndian.PutUint32(src[tr.blockBytes:], math.Float32bits(vector.FromF16(uint16(r.Uint32())&0x3fff|0x0400)))
				_, f = block.Recoding()
			}
			f(dst, src[:tr.blockBytes])
			if err := errors.Join(Dequantize(typ, want, src), Dequantize(to, got, dst)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v as %v is %v, want %v", typ, to, got, want)
			}
		}
	}
	if recoded != 8 {
		t.Errorf("%d types are recoded, want 8", recoded)
	}
}

func TestDequantizeRefusesSizesThatDoNotBelongTogether(t *testing.T) {
	for typ, tr := range known() {
		n, size := 2*tr.blockLen, 2*tr.blockBytes+tr.tail
		for _, c := range [][2]int{{n, size - 1}, {n, size + 1}, {n, size + tr.blockBytes}, {n + tr.blockLen, size}, {n + 1, size}} {
			if c[0] == n+1 && tr.blockLen == 1 {
				continue
			}
			if err := Dequantize(typ, make([]float32, c[0]), make([]byte, c[1])); err == nil {
				t.Errorf("Dequantize(%v) of %d values from %d bytes succeeds", typ, c[0], c[1])
			}
		}
		err := Dequantize(typ, make([]float32, n), make([]byte, size))
		if want := tr.dequantize != nil; (err == nil) != want || typ.Supported() != want {
			t.Errorf("Dequantize(%v) = %v, supported is %t", typ, err, want)
		}
	}
	if err := Dequantize(4, nil, nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Dequantize of an unknown type = %v, want ErrUnsupported", err)
	}
}

func TestPartsOfATensorDequantizeLikeTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for typ, tr := range known() {
		if !typ.Supported() {
			continue
		}
		dims := []int{2 * tr.blockLen, 3}
		size, err := typ.Size(dims)
		if err != nil {
			t.Fatal(err)
		}
		x := Tensor{Name: "w", Type: typ, Dims: dims, Data: make([]byte, size)}
		for i := range x.Data {
			x.Data[i] = byte(r.Uint32())
		}
		whole, parts := make([]float32, x.Len()), make([]float32, x.Len())
		if err := Dequantize(typ, whole, x.Data); err != nil {
			t.Fatal(err)
		}
		for lo := 0; lo < x.Len(); lo += tr.blockLen {
			if err := x.Dequantize(parts[lo:lo+tr.blockLen], lo); err != nil {
				t.Fatal(err)
			}
		}
		for i := range whole {
			if math.Float32bits(whole[i]) != math.Float32bits(parts[i]) {
				t.Errorf("%v: value %d is %v in the whole and %v in a part", typ, i, whole[i], parts[i])
				break
			}
		}
	}
}

// known yields the rows of the table that are in use.
func known() iter.Seq2[Type, *traits] {
	return func(yield func(Type, *traits) bool) {
		for i := range types {
			if types[i].name != "" && !yield(Type(i), &types[i]) {
				return
			}
		}
	}
}

func TestTypesHaveDistinctNames(t *testing.T) {
	for typ, tr := range known() {
		if got, ok := TypeNamed(tr.name); !ok || got != typ {
			t.Errorf("TypeNamed(%s) = %d, want %d", tr.name, uint32(got), uint32(typ))
		}
	}
	for _, name := range []string{"Q9", ""} {
		if got, ok := TypeNamed(name); ok {
			t.Errorf("TypeNamed(%q) = %v, want none", name, got)
		}
	}
	if got := Type(99).String(); got != "type 99" {
		t.Errorf("Type(99) prints %q", got)
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
		if err := Dequantize(TQ1_0, got, dst); err != nil {
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
	if err := Dequantize(typ, back, blocks); err != nil {
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

func TestHalvesWidenAndRoundToNearestEven(t *testing.T) {
	for h := range uint32(1 << 16) {
		f := vector.FromF16(uint16(h))
		if math.IsNaN(float64(f)) != (h&0x7c00 == 0x7c00 && h&0x3ff != 0) {
			t.Fatalf("half %#04x widens to %v", h, f)
		}
		if f != f {
			if g := vector.ToF16(f); g&0x7c00 != 0x7c00 || g&0x3ff == 0 {
				t.Fatalf("NaN %#04x narrows to %#04x", h, g)
			}
			continue
		}
		if g := vector.ToF16(f); g != uint16(h) {
			t.Fatalf("half %#04x comes back as %#04x", h, g)
		}
		if h&0x7fff >= 0x7c00 {
			continue
		}
		// Half-way to the next larger magnitude goes to the even of the two; a
		// hair more or less goes to the nearer one.
		next := float64(vector.FromF16(uint16(h + 1)))
		if math.IsInf(next, 0) {
			next = math.Copysign(65536, next) // where the next half would be
		}
		mid := float32((float64(f) + next) / 2)
		even := uint16(h + h&1)
		if g := vector.ToF16(mid); g != even {
			t.Fatalf("%v, half-way above %#04x, rounds to %#04x, want %#04x", mid, h, g, even)
		}
		if g := vector.ToF16(math.Nextafter32(mid, f)); g != uint16(h) {
			t.Fatalf("just below half-way above %#04x rounds to %#04x", h, g)
		}
		if g := vector.ToF16(math.Nextafter32(mid, float32(next))); g != uint16(h+1) {
			t.Fatalf("just above half-way above %#04x rounds to %#04x", h, g)
		}
	}
}

func TestBrainFloatsRoundToNearestEven(t *testing.T) {
	for _, c := range []struct {
		bits uint32
		want uint16
	}{
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
		{0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x80000000, 0x8000},
	} {
		if got := vector.ToBF16(math.Float32frombits(c.bits)); got != c.want {
			t.Errorf("float bits %#08x round to %#04x, want %#04x", c.bits, got, c.want)
		}
	}
}

func FuzzDequantize(f *testing.F) {
	for typ, tr := range known() {
		f.Add(uint32(typ), make([]byte, 2*tr.blockBytes+tr.tail))
	}
	f.Add(uint32(4), []byte{1})
	f.Fuzz(func(t *testing.T, id uint32, src []byte) {
		typ := Type(id)
		tr := typ.traits()
		if tr.blockBytes == 0 || len(src) < tr.tail {
			if err := Dequantize(typ, nil, src); err == nil {
				t.Fatalf("Dequantize(%v) of %d bytes succeeds", typ, len(src))
			}
			return
		}
		n := (len(src) - tr.tail) / tr.blockBytes * tr.blockLen
		guarded := make([]float32, n+1)
		guarded[n] = 42
		err := Dequantize(typ, guarded[:n:n], src)
		whole := (len(src)-tr.tail)%tr.blockBytes == 0
		if (err == nil) != (whole && typ.Supported()) {
			t.Fatalf("Dequantize(%v) of %d bytes = %v", typ, len(src), err)
		}
		if guarded[n] != 42 {
			t.Fatalf("Dequantize(%v) wrote past its end", typ)
		}
	})
}

func TestRowsOfATensorAreLoadedFromMemoryAndFromAFileAlike(t *testing.T) {
	for _, typ := range []Type{F32, Q8_0, TQ2_0, I2_S, Q1_0, Q2_0, PQ2_0, PTQ1_0} {
		size, err := typ.Size([]int{256, 5})
		if err != nil {
			t.Fatal(err)
		}
		whole := Tensor{Name: "w", Type: typ, Dims: []int{256, 5}, Data: make([]byte, size)}
		for i := range whole.Data {
			whole.Data[i] = byte(i*7) & 0x3f // no NaN and no infinity
		}
		values, part := make([]float32, 5*256), make([]float32, 2*256)
		if err := whole.Dequantize(values, 0); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := Write(&file, Metadata{}, []Tensor{whole}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "w.gguf")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		for place, x := range map[string]*Tensor{"memory": &whole, "a file": open(t, path).Tensor("w")} {
			s, err := x.Load(2, 4, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := typ.Size(s.Dims); s.Rows() != 2 || len(s.Data) != want {
				t.Fatalf("%v in %s: two rows have %d rows in %d bytes, want %d bytes", typ, place, s.Rows(), len(s.Data), want)
			}
			if err := s.Dequantize(part, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(part, values[2*256:4*256]) {
				t.Errorf("%v in %s: rows 2 and 3 are %v, want %v", typ, place, part[:4], values[512:516])
			}
			if err := x.Dequantize(part, 2*256); err != nil || !slices.Equal(part, values[2*256:4*256]) {
				t.Errorf("%v in %s: Dequantize gives %v, %v, want %v", typ, place, part[:4], err, values[512:516])
			}
		}
	}
}

func TestNumbersAndScalesThatAreNotFiniteAreFound(t *testing.T) {
	const cols, rows = 512, 5
	for typ := range Type(len(types)) {
		if !typ.Supported() {
			continue
		}
		size, err := typ.Size([]int{cols, rows})
		if err != nil {
			t.Fatal(err)
		}
		fresh := func() *Tensor {
			x := &Tensor{Name: "w", Type: typ, Dims: []int{cols, rows}, Data: make([]byte, size)}
			for i := range x.Data {
				x.Data[i] = byte(i*7) & 0x3b // no exponent is full
			}
			return x
		}
		if row, ok := fresh().Finite(0, rows); !ok {
			t.Errorf("%v: row %d is taken for infinite", typ, row)
		}
		values, found := make([]float32, cols*rows), 0
		for at := 0; at+1 < size; at++ {
			x := fresh()
			x.Data[at], x.Data[at+1] = 0x80, 0x7f // an infinite number in BF16 and in the upper half of F32; NaN in F16
			if err := x.Dequantize(values, 0); err != nil {
				t.Fatal(err)
			}
			want := slices.IndexFunc(values, func(v float32) bool { return v-v != 0 })
			row, ok := x.Finite(0, rows)
			if ok != (want < 0) || !ok && row != want/cols && typ != I2_S {
				t.Fatalf("%v, bytes %d and %d: Finite() = %d, %t; the first value that is not finite is %d", typ, at, at+1, row, ok, want)
			}
			if !ok {
				found++
			}
		}
		if found == 0 {
			t.Errorf("%v: nothing was found", typ)
		}
	}
}
