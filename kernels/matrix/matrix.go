// Package matrix holds packed weight matrices and the names of their packings.
package matrix

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/kernels/meter"
)

// Packing names a run-time layout of a weight matrix.
type Packing uint8

// The run-time packings. Each states its bits a weight and how activations
// meet it.
const (
	F32    Packing = iota // 32 bits; float32 activations
	F16                   // 16 bits IEEE; float32 activations
	BF16                  // 16 bits; float32 activations
	I1                    // ternary, 5 trits a byte (1.6 bits); int8 activations, one scale a token
	I2                    // ternary, 4 trits a byte (2 bits); int8 activations, one scale a token
	Q4                    // 4-bit codes with a scale each 32 columns (4.5 bits); int8 activations in groups of 32
	Q4M                   // 4-bit codes with a scale and a minimum each 32 columns (4.625 bits); the same activations
	Q41                   // 4-bit codes with a float16 scale and minimum each 32 columns (5 bits); the same activations
	Q6                    // 6-bit codes with a scale each 16 columns (6.5625 bits); the same activations
	Q8                    // 8-bit codes with a scale each 32 columns (8.5 bits); the same activations
	Q1G128                // 1-bit codes with a scale each 128 columns (1.125 bits); the same activations
	Q2G64                 // 2-bit codes with a scale each 64 columns (2.25 bits); the same activations
	Q2G128                // 2-bit codes with a scale each 128 columns (2.125 bits); the same activations
	FP4                   // 4-bit codes of the numbers of e2m1 with a scale each 32 columns (4.5 bits); the same activations
	NL4                   // 4-bit codes of Levels with a scale each 32 columns (4.5 bits); the same activations
	NL4K                  // the same with a scale of 8 bits each 32 columns of 256 (4.3125 bits)
	NL4S                  // the same of Levels between -32 and 31
	NL3K                  // 3-bit codes of Levels between -43 and 43 with a scale of 8 bits each 16 columns of 256 (3.5625 bits); the same activations
	NVFP4                 // FP4's codes with a scale of e4m3 each 16 columns (4.5 bits); the same activations
	numPackings
)

// packings is the name of each packing and its kind of product.
var packings = [numPackings]struct {
	name string
	kind meter.Kind
}{
	F32: {"F32", meter.Dense}, F16: {"F16", meter.Dense}, BF16: {"BF16", meter.Dense},
	I1: {"I1", meter.Ternary}, I2: {"I2", meter.Ternary},
	Q4: {"Q4", meter.Grouped}, Q4M: {"Q4M", meter.Grouped}, Q41: {"Q41", meter.Grouped}, Q6: {"Q6", meter.Grouped}, Q8: {"Q8", meter.Grouped},
	Q1G128: {"Q1G128", meter.Grouped}, Q2G64: {"Q2G64", meter.Grouped}, Q2G128: {"Q2G128", meter.Grouped},
	FP4: {"FP4", meter.Grouped},
	NL4: {"NL4", meter.Grouped}, NL4K: {"NL4K", meter.Grouped}, NL4S: {"NL4S", meter.Grouped}, NL3K: {"NL3K", meter.Grouped},
	NVFP4: {"NVFP4", meter.Grouped},
}

// Valid reports whether p is one of the constants.
func (p Packing) Valid() bool { return p < numPackings }

// String gives the packing's name as used on the command line and in reports.
func (p Packing) String() string {
	if p.Valid() {
		return packings[p].name
	}
	return fmt.Sprintf("Packing(%d)", uint8(p))
}

// Packings lists all packings, in the order of their constants.
func Packings() []Packing {
	all := make([]Packing, numPackings)
	for i := range all {
		all[i] = Packing(i)
	}
	return all
}

// Parse reads a packing's name, in upper or lower case.
func Parse(name string) (Packing, error) {
	var have []string
	for i, p := range packings {
		if strings.EqualFold(p.name, name) {
			return Packing(i), nil
		}
		have = append(have, p.name)
	}
	return 0, fmt.Errorf("kernels: unknown packing %q (have %s)", name, strings.Join(have, ", "))
}

// Kind returns the kind of product that multiplies a valid packing. It is Ternary for weights of
// {-1, 0, +1} × scale, Grouped for integer codes with scales along K, Dense for floats.
func (p Packing) Kind() meter.Kind { return packings[p].kind }

// Ternary reports whether the packing holds weights of {-1, 0, +1} × scale.
func (p Packing) Ternary() bool { return p.Valid() && p.Kind() == meter.Ternary }

// Matrix is a weight matrix W[Rows][Cols] in one packing. It is immutable
// after packing and safe for concurrent readers.
type Matrix struct {
	Rows, Cols int // M outputs, K inputs
	Packing    Packing
	Scale      []float32 // I1 and I2 only: one a row, or a single one for the matrix
	Data       []byte    // layout defined by the packing; 64-byte aligned
	Levels     *Levels   // NL4, NL4K, NL4S, NL3K and NVFP4 only
	// Offsets are F32, of fewer columns: what is added to the weights of Cols/Offsets.Cols
	// columns each of a row. Nil: nothing is.
	Offsets *Matrix
}

// Levels says what codes stand for: a weight is its scales times Scale times Of[code].
type Levels struct {
	Of    [16]int8
	Scale float32 // a power of two, but for NVFP4; routines find it here
}

// Bytes returns what the matrix takes in memory.
func (m *Matrix) Bytes() int {
	n := len(m.Data) + 4*len(m.Scale)
	if m.Offsets != nil {
		n += m.Offsets.Bytes()
	}
	return n
}

// Weights returns the number of weights.
func (m *Matrix) Weights() int64 { return int64(m.Rows) * int64(m.Cols) }

// Errors of this package.
var (
	// ErrUnsupported says that a backend cannot run a matrix; the caller falls back to the CPU.
	ErrUnsupported = errors.New("kernels: packing not supported by this backend")
	// ErrShape says that sizes given to a packer do not belong together.
	ErrShape = errors.New("kernels: shape mismatch")
)
