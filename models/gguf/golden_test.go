package gguf

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// golden is a folder of reference data that is not part of the repository. dequant/<type>.bin holds raw blocks, <type>.npy the
// values that ggml's to_float gives for them, <type>.src.npy the floats that the first half was quantised from, and index.json
// the sizes. models/*/model.gguf are small models of ggml's making.
func golden(t *testing.T) string { return folder(t, "LUTRA_GOLDEN") }

// goldenGroups is a folder of the same form for the types of groupBlocks. ggml made the blocks and values of Q1_0 and Q2_0. Two
// decoders written for the purpose made PQ2_0's and PTQ1_0's, together with ggml's Q2_0, which holds the same codes and scales.
// Besides quantised normal deviates there are blocks that take every byte in every place, with subnormal and largest scales of
// both signs.
func goldenGroups(t *testing.T) string { return folder(t, "LUTRA_GOLDEN_GROUPS") }

func folder(t *testing.T, variable string) string {
	t.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("set %s to the folder of reference data to run this test", variable)
	}
	return dir
}

// readNpy reads a little-endian float32 array in numpy's format 1.0.
func readNpy(t *testing.T, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 10 || !bytes.HasPrefix(b, []byte("\x93NUMPY\x01\x00")) {
		t.Fatalf("%s is not a version 1.0 npy file", path)
	}
	n := 10 + int(binary.LittleEndian.Uint16(b[8:]))
	if !bytes.Contains(b[:n], []byte("'<f4'")) || bytes.Contains(b[:n], []byte("'fortran_order': True")) {
		t.Fatalf("%s: header %q, want little-endian float32 in C order", path, b[10:n])
	}
	b = b[n:]
	v := make([]float32, len(b)/4)
	dequantizeF32(v, b)
	return v
}

type dequantEntry struct {
	Type   Type    `json:"ggml_type"`
	Block  int     `json:"block"`
	Bytes  int     `json:"bytes_per_block"`
	Halves int     `json:"n_quantised"`
	NMSE   float64 `json:"quantisation_nmse_of_first_half"`
}

func readIndex(t *testing.T, dir string) map[string]dequantEntry {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "dequant", "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index map[string]dequantEntry
	if err := json.Unmarshal(b, &index); err != nil {
		t.Fatal(err)
	}
	return index
}

func TestDequantizeAgreesWithTheReferenceBitForBit(t *testing.T) {
	dir := golden(t)
	if reached := dequantizeAll(t, dir); reached < 15 {
		t.Errorf("compared %d storage types, want at least 15", reached)
	}
}

func TestDequantizeOfGroupTypesAgreesWithTheReferenceBitForBit(t *testing.T) {
	if reached := dequantizeAll(t, goldenGroups(t)); reached != 4 {
		t.Errorf("compared %d storage types, want 4", reached)
	}
}

// dequantizeAll compares the types of a folder and returns how many those were.
func dequantizeAll(t *testing.T, dir string) (reached int) {
	t.Helper()
	for name, e := range readIndex(t, dir) {
		if name == "I2_S" { // sized as a tensor; has no block size there
			e.Type = I2_S
			e.Block, e.Bytes = I2_S.BlockLen(), I2_S.BlockBytes()
		}
		if e.Type.String() != name || e.Type.BlockLen() != e.Block || e.Type.BlockBytes() != e.Bytes {
			t.Errorf("%s is known as %v, %d values in %d bytes; want id %d, %d in %d",
				name, e.Type, e.Type.BlockLen(), e.Type.BlockBytes(), e.Type, e.Block, e.Bytes)
		}
		if !e.Type.Supported() {
			continue
		}
		reached++
		base := filepath.Join(dir, "dequant", strings.ToLower(name))
		want := readNpy(t, base+".npy")
		src, err := os.ReadFile(base + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, len(want))
		if err := dequantize(e.Type, got, src); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("%s: value %d is %v, want %v", name, i, got[i], want[i])
				break
			}
		}
	}
	return reached
}

func TestQuantizeAgreesWithTheReferenceByteForByte(t *testing.T) {
	quantizeAgain(t, golden(t), "Q4_0", "Q8_0")
}

func TestQuantizeToQ1_0AndQ2_0AgreesWithTheReferenceByteForByte(t *testing.T) {
	quantizeAgain(t, goldenGroups(t), "Q1_0", "Q2_0")
}

func quantizeAgain(t *testing.T, dir string, names ...string) {
	t.Helper()
	index := readIndex(t, dir)
	for _, name := range names {
		e := index[name]
		base := filepath.Join(dir, "dequant", strings.ToLower(name))
		src := readNpy(t, base+".src.npy")
		bin, err := os.ReadFile(base + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		want := bin[:len(src)/e.Block*e.Bytes]
		got := make([]byte, len(want))
		if err := Quantize(e.Type, got, src); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the blocks differ from the reference quantiser's", name)
		}
		back := make([]float32, len(src))
		if err := dequantize(e.Type, back, got); err != nil {
			t.Fatal(err)
		}
		if nmse := nmse(back, src); math.Abs(nmse-e.NMSE) > 1e-6*e.NMSE {
			t.Errorf("%s: quantisation NMSE %g, want %g", name, nmse, e.NMSE)
		}
	}
}

// The blocks of the first values come from normal deviates, so each has a value
// of the largest magnitude, and ternary values are written as they were read.
func TestTernaryGroupsAreWrittenAsTheReferenceWroteThem(t *testing.T) {
	dir := goldenGroups(t)
	for name, e := range readIndex(t, dir) {
		base := filepath.Join(dir, "dequant", strings.ToLower(name))
		bin, err := os.ReadFile(base + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		want := bin[:e.Halves/e.Block*e.Bytes]
		values, got := make([]float32, e.Halves), make([]byte, len(want))
		if err := dequantize(e.Type, values, want); err != nil {
			t.Fatal(err)
		}
		if err := Quantize(e.Type, got, values); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the blocks differ from those that were read", name)
		}
	}
}

// nmse is Σ(a−b)² / Σb².
func nmse(a, b []float32) float64 {
	var num, den float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		num += d * d
		den += float64(b[i]) * float64(b[i])
	}
	return num / den
}

func TestOpenReadsEveryReferenceModel(t *testing.T) {
	openAll(t, golden(t))
}

func TestOpenReadsEveryReferenceModelOfGroupTypes(t *testing.T) {
	types := openAll(t, goldenGroups(t))
	for _, typ := range []Type{Q1_0, Q2_0, PQ2_0, PTQ1_0} {
		if types[typ] == 0 {
			t.Errorf("no tensor is of type %v", typ)
		}
	}
}

// openAll opens the models of a folder and counts their tensors by type.
func openAll(t *testing.T, dir string) map[Type]int {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*", "model.gguf"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models found: %v", err)
	}
	types := map[Type]int{}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, ok := f.Metadata.String("general.architecture"); !ok || len(f.Tensors) == 0 {
			t.Errorf("%s: no architecture or no tensors", path)
		}
		for i := range f.Tensors {
			types[f.Tensors[i].Type]++
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	return types
}
