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
		{"Q4_Z64", Q4_Z64, bytesOf(half, []byte{16}, []byte{0xf3}, fill(15, 0), fill(16, 0x0f)), map[int]float32{0: -6.5, 16: -0.5, 1: -8, 32: -0.5, 63: -8}, 64},
		{"IQ4_NL", IQ4_NL, bytesOf(half, []byte{0xf0}, fill(15, 0x87)), map[int]float32{0: -63.5, 16: 56.5, 1: -5, 17: 0.5}, 32},
		{"MXFP4", MXFP4, bytesOf([]byte{127, 0x21, 0xf9}, fill(14, 0x07)), map[int]float32{0: 0.5, 16: 1, 1: -0.5, 17: -6, 2: 6, 18: 0}, 32},
		{"MXFP4 of tiny scale", MXFP4, bytesOf([]byte{0}, fill(16, 0x71)), map[int]float32{0: 0x1p-128, 16: 12 * 0x1p-128}, 32},
		{"MXFP4 of the largest scale", MXFP4, bytesOf([]byte{252}, fill(16, 0xf1)), map[int]float32{0: 0x1p124, 16: -12 * 0x1p124}, 32},
		// Scales 1, 1.5·2, the smallest and zero (0x7f); highest bits do not count.
		{"NVFP4", NVFP4, bytesOf([]byte{0x38, 0xc4, 0x01, 0x7f}, []byte{0xf1}, fill(7, 0), fill(8, 0x21), fill(8, 0x09), fill(8, 0x77)),
			map[int]float32{0: 0.5, 8: -6, 1: 0, 16: 1.5, 24: 3, 32: -0x1p-10, 40: 0, 48: 0, 63: 0}, 64},
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
		// Scales 33−32 of the first 32 values and 31−32 of the others.
		{"IQ4_XS", IQ4_XS, bytesOf(half, []byte{0x56, 0x55, 0xf1, 0xff, 0xff, 0xff}, []byte{0xf0}, fill(127, 0x87)),
			map[int]float32{0: -63.5, 16: 56.5, 1: -5, 17: 0.5, 32: 5, 48: -0.5, 255: -0.5}, 256},
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
		if err := dequantize(c.t, got, c.src); err != nil {
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

// dequantize sets dst to the values of src, a tensor of one row.
func dequantize(t Type, dst []float32, src []byte) error {
	return (&Tensor{Name: "w", Type: t, Dims: []int{len(dst)}, Data: src}).Dequantize(dst, 0)
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
			if err := errors.Join(dequantize(typ, want, src), dequantize(to, got, dst)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v as %v is %v, want %v", typ, to, got, want)
			}
		}
	}
	if recoded != 9 {
		t.Errorf("%d types are recoded, want 9", recoded)
	}
}

func TestTypesAreDequantisedOrRefusedAsUnsupported(t *testing.T) {
	for typ, tr := range known() {
		n := 2 * tr.blockLen
		err := dequantize(typ, make([]float32, n), make([]byte, 2*tr.blockBytes+tr.tail))
		if want := tr.dequantize != nil; (err == nil) != want || typ.Supported() != want || !want && !errors.Is(err, ErrUnsupported) {
			t.Errorf("Dequantize of %v = %v, supported is %t", typ, err, want)
		}
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
		if err := dequantize(typ, whole, x.Data); err != nil {
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

func FuzzDequantize(f *testing.F) {
	for typ, tr := range known() {
		f.Add(uint32(typ), make([]byte, 2*tr.blockBytes+tr.tail))
	}
	f.Fuzz(func(t *testing.T, id uint32, src []byte) {
		typ := Type(id)
		tr := typ.traits()
		if tr.blockBytes == 0 || len(src) < tr.blockBytes+tr.tail {
			return
		}
		blocks := (len(src) - tr.tail) / tr.blockBytes
		n := blocks * tr.blockLen
		guarded := make([]float32, n+1)
		guarded[n] = 42
		err := dequantize(typ, guarded[:n:n], src[:blocks*tr.blockBytes+tr.tail])
		if (err == nil) != typ.Supported() {
			t.Fatalf("Dequantize of %v, %d bytes = %v", typ, len(src), err)
		}
		if guarded[n] != 42 {
			t.Fatalf("Dequantize of %v wrote past its end", typ)
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

func TestValuesOfQ3_KAreThoseOfItsDefinition(t *testing.T) {
	const blocks, size = 64, 110
	raw := drawn(3, blocks*size)
	got := make([]float32, blocks*256)
	for i := 109; i < len(raw); i += size {
		raw[i] &= 0xbf // finite scales
	}
	if err := dequantize(Q3_K, got, raw); err != nil {
		t.Fatal(err)
	}
	for at, v := range got {
		b, i := raw[at/256*size:][:size], at%256
		j := i / 16
		scale := int(b[96+j%8]>>(j/8*4)&15|b[104+j%4]>>(j/4*2)&3<<4) - 32
		code := int(b[32+i/128*32+i%32]>>(i/32%4*2)&3) + int(b[i%32]>>(i/32)&1)*4 - 4
		if want := half(b[108:]) * float32(scale) * float32(code); v != want {
			t.Fatalf("value %d is %v, want %v", at, v, want)
		}
	}
}
