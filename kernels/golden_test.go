package kernels

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/kerneltest/matrices"
	"github.com/lutra-lm/lutra/kernels/matrix"
)

// goldenDir is the folder of reference data, or the test is skipped.
func goldenDir(t *testing.T) string {
	dir := os.Getenv("LUTRA_GOLDEN")
	if dir == "" {
		t.Skip("LUTRA_GOLDEN is not set: no reference data")
	}
	return dir
}

// readNPY reads the float32 values of a numpy array file.
func readNPY(t *testing.T, path string) []float32 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = b[10+int(binary.LittleEndian.Uint16(b[8:])):]
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

func TestRowsAreTheStorageFormatsValuesBitForBit(t *testing.T) {
	dir := filepath.Join(goldenDir(t), "dequant")
	for name, pack := range map[string]func(rows, cols int, raw []byte) (*matrix.Matrix, error){
		"f16": dense.PackF16, "bf16": dense.PackBF16, "q8_0": grouped.PackQ8_0, "q4_0": grouped.PackQ4_0, "q4_k": grouped.PackQ4_K, "q6_k": grouped.PackQ6_K,
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, name+".bin"))
			if err != nil {
				t.Fatal(err)
			}
			want := readNPY(t, filepath.Join(dir, name+".npy"))
			for _, cols := range []int{256, 512, len(want)} {
				m, err := pack(len(want)/cols, cols, raw)
				if err != nil {
					t.Fatal(err)
				}
				row := make([]float32, cols)
				for r := range m.Rows {
					matrices.Row(row, m, r)
					for k, v := range row {
						if w := want[r*cols+k]; math.Float32bits(v) != math.Float32bits(w) && !(v == 0 && w == 0) {
							t.Fatalf("%dx%d: weight [%d][%d] = %v, want %v", m.Rows, cols, r, k, v, w)
						}
					}
				}
			}
		})
	}
}
