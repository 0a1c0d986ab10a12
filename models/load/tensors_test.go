package load

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/weights"
)

// open returns the tensors of file.
func open(t *testing.T, file *gguf.File) *Tensors {
	p := pool.New(1)
	t.Cleanup(p.Close)
	l := NewTensors(file, new(Report), Options{Pool: p})
	t.Cleanup(func() { l.Memory().Free() })
	return l
}

func TestALargeMatrixPackedInPiecesIsTheWhole(t *testing.T) {
	const rows, cols = 36000, 256 // 18 MB of F16: two pieces
	x := &gguf.Tensor{Name: "w", Type: gguf.F16, Dims: []int{cols, rows}, Data: make([]byte, 2*rows*cols)}
	for i := range rows * cols {
		binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(0x3000+i*2654435761%4096))
	}
	got, err := open(t, &gguf.File{}).build(nil, weights.Form{}, &Stored{x, 0, rows, 1})
	if err != nil {
		t.Fatal(err)
	}
	want, err := weights.Pack(x, 1, weights.Form{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Packing != matrix.F16 || got.Rows != rows || !bytes.Equal(got.Data, want.Data) || !slices.Equal(got.Scale, want.Scale) {
		t.Errorf("packed in pieces: %v of %dx%d that differs from the whole", got.Packing, got.Rows, got.Cols)
	}
}

// A matrix is ternary as a whole or not at all, wherever its other rows stand.
func TestAMatrixOfWhichOnlyTheFirstPieceIsTernaryIsNotPackedAsSuch(t *testing.T) {
	const rows, cols = 36000, 256
	md := gguf.Metadata{"general.architecture": "llama"}
	x := gguf.Tensor{Name: "w", Type: gguf.F16, Dims: []int{cols, rows}, Data: make([]byte, 2*rows*cols)}
	for i := range rows * cols {
		binary.LittleEndian.PutUint16(x.Data[2*i:], 0x3c00) // one
	}
	x.Data[2*cols*(rows-1)] = 0x01 // and a little more
	var raw bytes.Buffer
	if err := gguf.Write(&raw, md, []gguf.Tensor{x}); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, file)
	if l.Stack(l.Whole("w", rows, cols)); l.Err() != nil || l.Bytes != 2*rows*cols {
		t.Errorf("the matrix takes %d bytes, %v; want %d for F16", l.Bytes, l.Err(), 2*rows*cols)
	}
}

func TestMatricesThatAreStackedPieceByPieceAreTheWhole(t *testing.T) {
	defer func(bytes int) { pieceBytes = bytes }(pieceBytes)
	pieceBytes = 1 // 64 rows at a time
	const cols = 256
	var tensors []gguf.Tensor
	var whole []*matrix.Matrix
	for name, typ := range map[string]gguf.Type{"q": gguf.IQ2_S, "k": gguf.IQ2_S, "v": gguf.Q5_K, "trits": gguf.F16, "scales": gguf.MXFP4} {
		x := &gguf.Tensor{Name: name, Type: typ, Dims: []int{cols, 192}}
		size, err := typ.Size(x.Dims)
		if err != nil {
			t.Fatal(err)
		}
		x.Data = bytes.Repeat([]byte{0, 0x3c}, size/2)
		switch name {
		case "trits":
			x.Data[2*cols*100] = 1 // in the second piece
		case "scales":
			for i := 0; i < size; i += 17 {
				x.Data[i] = 127
			}
			x.Data[cols/32*17*100] = 0 // which binary16 does not hold
		}
		tensors = append(tensors, *x)
	}
	var raw bytes.Buffer
	if err := gguf.Write(&raw, gguf.Metadata{"general.architecture": "llama"}, tensors); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, file)
	for _, name := range []string{"q", "k"} {
		w, err := weights.Pack(file.Tensor(name), 1, weights.Form{})
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, w)
	}
	want, err := kernels.Stack(nil, whole...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.stack(nil, weights.Form{}, []*Stored{l.Whole("q", 192, cols), l.Rows("k", 0, 192, cols, 192)})
	if err != nil || got.Rows != 2*192 || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("stacked piece by piece: %v, of other bytes than the whole", err)
	}
	for name, packing := range map[string]matrix.Packing{"v": matrix.Q6, "trits": matrix.F16, "scales": matrix.F32} {
		s := l.Stack(l.Whole("q", 192, cols), l.Whole(name, 192, cols))
		if l.Err() != nil || len(s.Devices()) != 2 || !slices.Equal(s.Packings, []matrix.Packing{matrix.NL3K, packing}) {
			t.Errorf("beside %s are %v: %v, want two products", name, s.Packings, l.Err())
		}
	}
	if s := l.Stack(l.Whole("trits", 192, cols), l.Rows("trits", 0, 64, cols, 192)); len(s.Devices()) != 2 || !slices.Equal(s.Packings, []matrix.Packing{matrix.F16, matrix.I2}) {
		t.Errorf("a matrix that is ternary but for its second piece, and its first piece, are %v: %v", s.Packings, l.Err())
	}
	// What is packed again takes the memory of what was packed in vain.
	l.Into(cpu.Within(cpu.Aligned[byte](l.MostBytes(file.Tensor("trits"), 192, cols))))
	if s := l.Stack(l.Whole("trits", 192, cols)); l.Err() != nil || !slices.Equal(s.Packings, []matrix.Packing{matrix.F16}) {
		t.Errorf("where there is room for one, a matrix is %v: %v", s.Packings, l.Err())
	}
}

// What a type may take bounds the room for experts that are read on demand.
func TestAPackedMatrixIsNoLargerThanItsTypeMayTake(t *testing.T) {
	const rows, cols = 96, 512
	for typ := range gguf.Type(64) {
		if !typ.Supported() || typ == gguf.I2_S { // whose scale ends the tensor
			continue
		}
		size, err := typ.Size([]int{cols, rows})
		if err != nil {
			t.Fatal(err)
		}
		x := &gguf.Tensor{Name: "w", Type: typ, Dims: []int{cols, rows}, Data: make([]byte, size)}
		values := make([]float32, rows*cols)
		for _, all := range []func(i int) float32{
			func(i int) float32 { return 0 },
			func(i int) float32 { return float32(i%3 - 1) },
			func(i int) float32 { return float32(i*2654435761%1000) / 100 },
		} {
			for i := range values {
				values[i] = all(i)
			}
			if err := gguf.Quantize(typ, x.Data, values); err != nil { // types that are only read
				for i := range x.Data {
					x.Data[i] = byte(i*7) & 0x3f
				}
			}
			for _, form := range []weights.Form{{}, {Packing: weights.PackingI1}, {Packing: weights.PackingStored}, {Exact: true}} {
				w, err := weights.Pack(x, 1, form)
				if err != nil {
					t.Fatalf("%v: %v", typ, err)
				}
				l := open(t, &gguf.File{})
				l.form = form
				if most := l.MostBytes(x, rows, cols); len(w.Data) > most {
					t.Errorf("%v with %+v becomes %v of %d bytes, more than %d", typ, form, w.Packing, len(w.Data), most)
				}
			}
		}
	}
}

func TestAMatrixOfNVFP4IsMultipliedByTheScaleBesideIt(t *testing.T) {
	const rows, cols = 20, 128
	x := gguf.Tensor{Name: "w.weight", Type: gguf.NVFP4, Dims: []int{cols, rows}, Data: make([]byte, rows*cols/64*36)}
	for i := range x.Data {
		x.Data[i] = byte(i*37) & 0xbf
	}
	number := func(name string, v float32) gguf.Tensor {
		return gguf.Tensor{Name: name, Type: gguf.F32, Dims: []int{1}, Data: binary.LittleEndian.AppendUint32(nil, math.Float32bits(v))}
	}
	var raw bytes.Buffer
	tensors := []gguf.Tensor{x, number("w.scale", 0.75), number("w.input_scale", 3)}
	if err := gguf.Write(&raw, gguf.Metadata{"general.architecture": "llama"}, tensors); err != nil {
		t.Fatal(err)
	}
	file, err := gguf.Parse(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, file)
	w, err := l.build(nil, l.form, l.Whole("w.weight", rows, cols))
	if err != nil || w.Packing != matrix.NVFP4 {
		t.Fatalf("the matrix is packed as %+v: %v", w, err)
	}
	got, want := make([]float32, cols), make([]float32, cols)
	for r := range rows {
		matrices.Row(got, w, r)
		if err := x.Dequantize(want, r*cols); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i] != 0.75*want[i] {
				t.Fatalf("row %d, column %d is %v, want %v", r, i, got[i], 0.75*want[i])
			}
		}
	}
	if unused := l.Finish(); len(unused) > 0 {
		t.Errorf("tensors %v are not read", unused)
	}
}
