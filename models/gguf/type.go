package gguf

import (
	"fmt"
	"math"
	"math/bits"
)

// Type is the storage type of a tensor, numbered as in ggml.h (ggml_type).
type Type uint32

// The storage types with a decoder here, and those the code names.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q2_K Type = 10
	Q3_K Type = 11
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	// IQ types of one to three bits hold indices of codebooks, IQ4_NL and IQ4_XS 16
	// unevenly spaced levels.
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	IQ1_M   Type = 29
	BF16    Type = 30
	// TQ1_0 and TQ2_0 hold ternary weights with one scale each 256.
	TQ1_0 Type = 34
	TQ2_0 Type = 35
	// I2_S is bitnet.cpp's: ternary weights with one scale for the tensor.
	I2_S Type = 36
	// MXFP4 has a scale each 32 that is a power of two: the experts of gpt-oss.
	MXFP4 Type = 39
	// NVFP4 has a scale of eight bits each 16.
	NVFP4 Type = 40
	// Q1_0 holds signs with one scale each 128, Q2_0 codes of -1 to 2 with one
	// each 64. Their numbers have stood for other blocks too: see meanings.
	Q1_0 Type = 41
	Q2_0 Type = 42
	// STQ1_0 holds ternary weights of which one of four is zero, with one scale each
	// 256: of AngelSlim's llama.cpp.
	STQ1_0 Type = 43
	// PQ2_0 is Q2_0 with one scale each 128, PTQ1_0 ternary weights in base 3
	// with as many: of PrismML's llama.cpp, which numbered them.
	PQ2_0  Type = 142
	PTQ1_0 Type = 143
	// Q2_0C holds codes of -3, -1, 1 and 3 with one scale each 512: of Tencent's Hunyuan, in files under
	// the numbers 40 and 41 of other types. Its own is of no file, and it is read but not written.
	Q2_0C Type = 250
	// Q4_Z32, Q4_Z64 and Q4_Z128 hold codes of four bits with a scale and the code of zero each 32, 64
	// and 128, of directories of safetensors: no file has them.
	Q4_Z32  Type = 251
	Q4_Z64  Type = 252
	Q4_Z128 Type = 253
	// STQ1_0_42 is STQ1_0 under the number of Q2_0, as it was first published. Files in two
	// orders of weights are about, which nothing tells apart: it is not read.
	STQ1_0_42 Type = 254
	// Q1_0_G32 is Q1_0 with one scale each 32, as first published. Its numbers
	// have been given to other types, so it has none that a file may state, and
	// is read but not written.
	Q1_0_G32 Type = 255
)

// traits holds what is known of a storage type.
type traits struct {
	name       string
	blockLen   int // elements a block, along a row
	blockBytes int
	dequantize func(dst []float32, src []byte) // whole blocks; nil: not supported
	quantize   func(dst []byte, src []float32) // whole blocks; nil: cannot be written
	// tail is the size of what follows the last block of the tensor: a float32
	// that multiplies every value, and padding.
	tail int
}

// types is the one table of storage types, by number. Those without functions
// are listed so that a file's contents can be shown and sized; numbers that are
// free or retired have no name.
var types = [...]traits{
	F32:     {"F32", 1, 4, dequantizeF32, quantizeF32, 0},
	F16:     {"F16", 1, 2, dequantizeF16, quantizeF16, 0},
	Q4_0:    {"Q4_0", 32, 18, dequantizeQ4_0, quantizeQ4_0, 0},
	Q4_1:    {"Q4_1", 32, 20, dequantizeQ4_1, quantizeQ4_1, 0},
	Q5_0:    {"Q5_0", 32, 22, dequantizeQ5_0, quantizeQ5_0, 0},
	Q5_1:    {"Q5_1", 32, 24, dequantizeQ5_1, quantizeQ5_1, 0},
	Q8_0:    {"Q8_0", 32, 34, dequantizeQ8_0, quantizeQ8_0, 0},
	9:       {"Q8_1", 32, 36, nil, nil, 0},
	Q2_K:    {"Q2_K", 256, 84, dequantizeQ2_K, nil, 0},
	Q3_K:    {"Q3_K", 256, 110, dequantizeSuper(110, readQ3_K, &levelsQ3K), nil, 0},
	Q4_K:    {"Q4_K", 256, 144, dequantizeQ4_K, nil, 0},
	Q5_K:    {"Q5_K", 256, 176, dequantizeQ5_K, nil, 0},
	Q6_K:    {"Q6_K", 256, 210, dequantizeQ6_K, nil, 0},
	15:      {"Q8_K", 256, 292, nil, nil, 0},
	IQ2_XXS: {"IQ2_XXS", 256, 66, dequantizeSuper(66, readIQ2_XXS, &levelsIQ2), nil, 0},
	IQ2_XS:  {"IQ2_XS", 256, 74, dequantizeSuper(74, readIQ2_XS, &levelsIQ2), nil, 0},
	IQ3_XXS: {"IQ3_XXS", 256, 98, dequantizeSuper(98, readIQ3_XXS, &levelsIQ3XXS), nil, 0},
	IQ1_S:   {"IQ1_S", 256, 50, dequantizeSuper(50, readIQ1_S, &levelsIQ1), nil, 0},
	IQ4_NL:  {"IQ4_NL", 32, 18, dequantizeIQ4_NL, nil, 0},
	IQ3_S:   {"IQ3_S", 256, 110, dequantizeSuper(110, readIQ3_S, &levelsIQ3S), nil, 0},
	IQ2_S:   {"IQ2_S", 256, 82, dequantizeSuper(82, readIQ2_S, &levelsIQ2), nil, 0},
	IQ4_XS:  {"IQ4_XS", 256, 136, dequantizeSuper(136, readIQ4_XS, &levelsIQ4NL), nil, 0},
	24:      {"I8", 1, 1, nil, nil, 0},
	25:      {"I16", 1, 2, nil, nil, 0},
	26:      {"I32", 1, 4, nil, nil, 0},
	27:      {"I64", 1, 8, nil, nil, 0},
	28:      {"F64", 1, 8, nil, nil, 0},
	IQ1_M:   {"IQ1_M", 256, 56, dequantizeSuper(56, readIQ1_M, &levelsIQ1), nil, 0},
	BF16:    {"BF16", 1, 2, dequantizeBF16, quantizeBF16, 0},
	TQ1_0:   {"TQ1_0", 256, 54, dequantizeTQ1_0, quantizeTQ1_0, 0},
	TQ2_0:   {"TQ2_0", 256, 66, dequantizeTQ2_0, quantizeTQ2_0, 0},
	I2_S:    {"I2_S", 128, 32, dequantizeI2_S, nil, 32},
	MXFP4:   {"MXFP4", 32, 17, dequantizeMXFP4, quantizeMXFP4, 0},
	NVFP4:   {"NVFP4", 64, 36, dequantizeNVFP4, nil, 0},
	Q1_0:    {"Q1_0", 128, 18, dequantizeQ1_0, quantizeQ1_0, 0},
	Q2_0:    {"Q2_0", 64, 18, dequantizeQ2_0, quantizeQ2_0, 0},
	STQ1_0:  {"STQ1_0", 256, 42, dequantizeSTQ1_0, quantizeSTQ1_0, 0},
	PQ2_0:   {"PQ2_0", 128, 34, dequantizePQ2_0, quantizePQ2_0, 0},
	PTQ1_0:  {"PTQ1_0", 128, 28, dequantizePTQ1_0, quantizePTQ1_0, 0},

	Q2_0C: {"Q2_0C", 512, 130, dequantizeQ2_0C, nil, 0},

	Q4_Z32:  {"Q4_Z32", 32, sizeQ4Z(32), dequantizeQ4Z(32), nil, 0},
	Q4_Z64:  {"Q4_Z64", 64, sizeQ4Z(64), dequantizeQ4Z(64), nil, 0},
	Q4_Z128: {"Q4_Z128", 128, sizeQ4Z(128), dequantizeQ4Z(128), nil, 0},

	STQ1_0_42: {"STQ1_0_42", 256, 42, nil, nil, 0},
	Q1_0_G32:  {"Q1_0_G32", 32, 6, dequantizeQ1_0_G32, nil, 0},
}

// numbered tells whether a number in a file can mean the type.
func (t Type) numbered() bool { return t != Q1_0_G32 && (t < Q2_0C || t > Q4_Z128) }

// traits returns the type's row of the table; one without a name for an unknown
// type.
func (t Type) traits() *traits {
	if int64(t) < int64(len(types)) {
		return &types[t]
	}
	return &unknown
}

var unknown traits

// String returns the type's name in upper case, as file names and reports use it.
func (t Type) String() string {
	if tr := t.traits(); tr.name != "" {
		return tr.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// TypeNamed returns the type with that name.
func TypeNamed(name string) (Type, bool) {
	for t := range types {
		if name != "" && types[t].name == name {
			return Type(t), true
		}
	}
	return 0, false
}

// BlockLen returns the number of elements that are stored together; rows are whole
// numbers of blocks. 0 for an unknown type.
func (t Type) BlockLen() int { return t.traits().blockLen }

// BlockBytes returns the stored size of a block.
func (t Type) BlockBytes() int { return t.traits().blockBytes }

// Supported reports whether Dequantize reads the type.
func (t Type) Supported() bool { return t.traits().dequantize != nil }

// Size returns the stored size in bytes of a tensor of that shape. It fails on an
// unknown type, on rows that are not whole blocks, and on overflow.
func (t Type) Size(dims []int) (int, error) {
	tr := t.traits()
	if tr.name == "" {
		return 0, fmt.Errorf("%w: unknown storage type %d", ErrUnsupported, uint32(t))
	}
	if len(dims) == 0 {
		return 0, fmt.Errorf("%w: no dimensions", ErrFormat)
	}
	if dims[0]%tr.blockLen != 0 {
		return 0, fmt.Errorf("%w: rows of %d are no whole blocks of %d (%s)", ErrFormat, dims[0], tr.blockLen, tr.name)
	}
	// Elements as well as bytes must fit an int: loops count either.
	elems, size := uint64(1), uint64(tr.blockBytes)
	for i, d := range dims {
		if d <= 0 {
			return 0, fmt.Errorf("%w: dimension %d is %d", ErrFormat, i, d)
		}
		blocks := uint64(d)
		if i == 0 {
			blocks /= uint64(tr.blockLen)
		}
		hi, lo := bits.Mul64(size, blocks)
		over, n := bits.Mul64(elems, uint64(d))
		if hi != 0 || over != 0 || lo > math.MaxInt || n > math.MaxInt {
			return 0, fmt.Errorf("%w: the shape %v overflows", ErrFormat, dims)
		}
		size, elems = lo, n
	}
	if size > math.MaxInt-uint64(tr.tail) {
		return 0, fmt.Errorf("%w: the shape %v overflows", ErrFormat, dims)
	}
	return int(size) + tr.tail, nil
}

// Quantize sets dst to the blocks of src, which is whole blocks long. Types of
// blocks round as the reference quantisers of ggml, and of PrismML's llama.cpp,
// do and refuse infinite and NaN values.
func Quantize(t Type, dst []byte, src []float32) error {
	tr := t.traits()
	if err := t.check(len(src), len(dst)); err != nil {
		return err
	}
	if tr.quantize == nil {
		return fmt.Errorf("gguf: %w: cannot quantise to %v", ErrUnsupported, t)
	}
	if tr.blockLen > 1 && !finite(src) {
		return fmt.Errorf("gguf: %w: infinite or NaN values have no %v form", ErrFormat, t)
	}
	if t == STQ1_0 && !isSparse(src) {
		return fmt.Errorf("gguf: %w: STQ1_0 holds no weights but those of which one of four, 16 apart, is zero and the others are of one size in each 256", ErrFormat)
	}
	tr.quantize(dst, src)
	return nil
}

// check reports whether n elements take size bytes.
func (t Type) check(n, size int) error {
	tr := t.traits()
	if tr.name == "" {
		return fmt.Errorf("gguf: %w: unknown storage type %d", ErrUnsupported, uint32(t))
	}
	if n%tr.blockLen != 0 || n/tr.blockLen*tr.blockBytes+tr.tail != size {
		return fmt.Errorf("gguf: %w: %d values against %d bytes of %v (blocks of %d values in %d bytes)",
			ErrFormat, n, size, t, tr.blockLen, tr.blockBytes)
	}
	return nil
}
