// Package convert writes what models/huggingface reads of a directory of safetensors as a GGUF file.
package convert

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
)

// Types are the types that Encode writes matrices in, the default first: as they are stored. Others need a
// quantiser that chooses scales.
var Types = []string{"auto", "F16", "BF16", "F32", "Q8_0", "TQ1_0", "TQ2_0", "I2_S"}

// fileTypes are the numbers of general.file_type, of llama.h and of bitnet.cpp.
var fileTypes = map[gguf.Type]uint32{gguf.F32: 0, gguf.F16: 1, gguf.Q4_0: 2, gguf.Q8_0: 7, gguf.Q5_0: 8, gguf.BF16: 32, gguf.NVFP4: 39, gguf.TQ1_0: 36, gguf.TQ2_0: 37, gguf.I2_S: 40}

// Encode returns what a GGUF file of f holds whose matrices are of one of Types. Vectors, norms,
// routers and the heads of reward models stay as they are, and convolutions become F32. Types that no file has become one that
// holds the same values; the factors of NVFP4 go into weights of other types. Ternary types are for matrices that
// are ternary; others, and those whose rows are no whole blocks, become F16.
func Encode(f *gguf.File, to string) (gguf.Metadata, []gguf.Source, error) {
	if !slices.Contains(Types, to) {
		return nil, nil, fmt.Errorf("convert: type %q is none of %s", to, strings.Join(Types, ", "))
	}
	want, _ := gguf.TypeNamed(to)
	sources, bytes := make([]gguf.Source, 0, len(f.Tensors)), map[gguf.Type]int{}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		typ := unchosen(t)
		if to != "auto" && isFactor(f, t) {
			continue
		}
		if to != "auto" && isMatrix(t) {
			var err error
			if typ, err = becomes(t, want); err != nil {
				return nil, nil, err
			}
		}
		if isMatrix(t) {
			bytes[typ] += t.Len() // of the most weights
		}
		sources = append(sources, gguf.Source{Name: t.Name, Type: typ, Dims: t.Dims, Write: func(w io.Writer) error { return write(w, f, t, typ) }})
	}
	most := want
	if to == "auto" {
		for typ, n := range bytes {
			if n > bytes[most] || n == bytes[most] && typ < most {
				most = typ
			}
		}
	} else if (isTernary(want)) && bytes[want] == 0 {
		return nil, nil, fmt.Errorf("convert: %w: no matrix is ternary with rows of whole blocks, as %s wants them", huggingface.ErrUnsupported, to)
	}
	md := maps.Clone(f.Metadata)
	md["general.file_type"], md["general.quantization_version"] = fileTypes[most], uint32(2)
	return md, sources, nil
}

// unchosen returns the type of a tensor unless the caller chooses it.
func unchosen(t *gguf.Tensor) gguf.Type {
	if isConvolution(t) {
		return gguf.F32
	}
	return inFile(t.Type)
}

// inFile returns the type that holds the values of t in a file.
func inFile(t gguf.Type) gguf.Type {
	switch t {
	case gguf.Q4_Z32, gguf.Q4_Z64, gguf.Q4_Z128:
		return gguf.Q5_0
	}
	return t
}

// factorsOf finds what weights of NVFP4 are multiplied by, for each of their matrices; nil: nothing.
func factorsOf(f *gguf.File, t *gguf.Tensor) *gguf.Tensor {
	if t == nil || t.Type != gguf.NVFP4 {
		return nil
	}
	return f.Tensor(strings.TrimSuffix(t.Name, "weight") + "scale")
}

// isFactor tells whether t is the factors of weights.
func isFactor(f *gguf.File, t *gguf.Tensor) bool {
	stem, ok := strings.CutSuffix(t.Name, ".scale")
	return ok && factorsOf(f, f.Tensor(stem+".weight")) != nil
}

func isTernary(t gguf.Type) bool { return t == gguf.TQ1_0 || t == gguf.TQ2_0 || t == gguf.I2_S }

// isConvolution tells whether t is the taps of a convolution, which llama.cpp reads as F32 alone.
func isConvolution(t *gguf.Tensor) bool {
	return strings.HasSuffix(t.Name, "ssm_conv1d.weight") || strings.HasSuffix(t.Name, "shortconv.conv.weight")
}

// isMatrix tells whether the type of a tensor is the caller's to choose.
func isMatrix(t *gguf.Tensor) bool {
	return len(t.Dims) > 1 && !isConvolution(t) && strings.HasSuffix(t.Name, ".weight") && !strings.HasSuffix(t.Name, "norm.weight") && !strings.Contains(t.Name, "ffn_gate_inp") && !strings.HasPrefix(t.Name, "cls.")
}

// becomes returns the type that a matrix gets.
func becomes(t *gguf.Tensor, want gguf.Type) (gguf.Type, error) {
	fits := t.Cols()%want.BlockLen() == 0
	if fits && isTernary(want) && t.Type != gguf.I2_S {
		ternary, err := holdsTrits(t)
		if err != nil {
			return 0, err
		}
		fits = ternary && want != gguf.I2_S
	}
	if !fits {
		return gguf.F16, nil
	}
	return want, nil
}

// holdsTrits tells whether each block of 256 columns is a scale that binary16 holds times -1, 0 and 1.
func holdsTrits(t *gguf.Tensor) (bool, error) {
	values := make([]float32, t.Cols())
	for r := range t.Rows() {
		if err := t.Dequantize(values, r*len(values)); err != nil {
			return false, err
		}
		for block := range slices.Chunk(values, gguf.TQ2_0.BlockLen()) {
			scale := float32(0)
			for _, x := range block {
				if x = max(x, -x); scale == 0 {
					scale = x
				} else if x != 0 && x != scale {
					return false, nil
				}
			}
			if vector.FromF16(vector.ToF16(scale)) != scale {
				return false, nil
			}
		}
	}
	return true, nil
}

// pieceBytes is about how much of a tensor is written at a time.
const pieceBytes = 1 << 20

// write writes the blocks of t as another type, or as they are.
func write(w io.Writer, f *gguf.File, t *gguf.Tensor, typ gguf.Type) error {
	rows := max(1, pieceBytes/(4*t.Cols()))
	switch {
	case typ == t.Type:
		return t.Copy(w)
	case typ == inFile(t.Type):
		return recode(w, t, rows)
	}
	var factors []float32
	if of := factorsOf(f, t); of != nil {
		factors = make([]float32, of.Len())
		if err := of.Dequantize(factors, 0); err != nil {
			return err
		}
	}
	values, raw := make([]float32, min(rows, t.Rows())*t.Cols()), []byte(nil)
	for lo := 0; lo < t.Rows(); lo += rows {
		part := values[:(min(t.Rows(), lo+rows)-lo)*t.Cols()]
		if err := t.Dequantize(part, lo*t.Cols()); err != nil {
			return err
		}
		for i := range part {
			if factors != nil {
				part[i] *= factors[(lo+i/t.Cols())/(t.Rows()/len(factors))]
			}
		}
		if typ == gguf.F16 {
			if i := slices.IndexFunc(part, func(x float32) bool { return math.Abs(float64(x)) >= 65520 }); i >= 0 {
				return fmt.Errorf("%v is more than F16 holds; BF16 holds it", part[i])
			}
		}
		size := len(part) / typ.BlockLen() * typ.BlockBytes()
		if cap(raw) < size {
			raw = make([]byte, size)
		}
		if err := gguf.Quantize(typ, raw[:size], part); err != nil {
			return err
		}
		if _, err := w.Write(raw[:size]); err != nil {
			return err
		}
	}
	return nil
}

// recode writes the blocks of t in another type that holds the same values, some rows at a time.
func recode(w io.Writer, t *gguf.Tensor, rows int) error {
	for lo := 0; lo < t.Rows(); lo += rows {
		part, err := t.Load(lo, min(t.Rows(), lo+rows), nil)
		if err != nil {
			return err
		}
		to, f := part.Recoding()
		from := t.Type.BlockBytes()
		size := t.Type.BlockLen() / to.BlockLen() * to.BlockBytes()
		out := make([]byte, len(part.Data)/from*size)
		for i := 0; i < len(part.Data)/from; i++ {
			f(out[i*size:(i+1)*size], part.Data[i*from:(i+1)*from])
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
	}
	return nil
}
