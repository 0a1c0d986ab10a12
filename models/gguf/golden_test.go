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

// golden is a folder of reference data, not part of the repository:
// dequant/<type>.bin holds raw blocks, <type>.npy the values ggml's to_float
// gives for them, <type>.src.npy the floats the first half was quantised from,
// index.json the sizes; models/*/model.gguf are small models of ggml's making.
func golden(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LUTRA_GOLDEN")
	if dir == "" {
		t.Skip("set LUTRA_GOLDEN to the folder of reference data to run this test")
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
	reached := 0
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
	if reached < 15 {
		t.Errorf("compared %d storage types, want at least 15", reached)
	}
}

func TestQuantizeAgreesWithTheReferenceByteForByte(t *testing.T) {
	dir := golden(t)
	index := readIndex(t, dir)
	for _, name := range []string{"Q4_0", "Q8_0"} {
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
	paths, err := filepath.Glob(filepath.Join(golden(t), "*", "*", "model.gguf"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models found: %v", err)
	}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, ok := f.Metadata.String("general.architecture"); !ok || len(f.Tensors) == 0 {
			t.Errorf("%s: no architecture or no tensors", path)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
