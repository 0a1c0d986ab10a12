package huggingface

import (
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// packNVFP4 takes codes of NVFP4, two a byte, the first one low; a scale of E4M3 each 16; and a number for
// the whole, which goes into the tensor beside it as llama.cpp's converter has it. compressed-tensors
// stores what scales were multiplied by, ModelOpt what they are multiplied with.
func (p *packer) packNVFP4(s *stack) {
	const each = 16
	cols, out := s.dims[0], gguf.Tensor{Name: s.name, Type: gguf.NVFP4, Dims: s.dims}
	if cols%gguf.NVFP4.BlockLen() != 0 {
		p.fail("tensor %q: %w: NVFP4 of rows of %d, want whole blocks of %d", s.parts[0].Name, ErrUnsupported, cols, gguf.NVFP4.BlockLen())
		return
	}
	scales, factors := map[*safetensors.Tensor]*safetensors.Tensor{}, make([]float32, len(s.parts))
	for i, t := range s.parts {
		scale := p.beside(t, ".weight_scale")
		if scale == nil || scale.DType != "F8_E4M3" || len(scale.Shape) != 2 || scale.Shape[0] != t.Shape[0] || scale.Shape[1] != cols/each {
			p.fail("tensor %q: %w: its weight_scale is missing, or no E4M3 of shape [%d %d]", t.Name, safetensors.ErrFormat, t.Shape[0], cols/each)
			return
		}
		if x := p.beside(t, ".weight_zero_point"); x != nil {
			p.fail("tensor %q: %w: codes of NVFP4 about another zero", x.Name, ErrUnsupported)
			return
		}
		scales[t] = scale
		whole, divides := p.beside(t, ".weight_scale_2"), false
		if p.quant.method == methodCompressed {
			whole, divides = p.beside(t, ".weight_global_scale"), true
		}
		factors[i] = 1
		if whole != nil {
			x, err := one(whole)
			if err != nil {
				p.fail("%w", err)
				return
			}
			if factors[i] = x; divides {
				factors[i] = 1 / x
			}
		}
	}
	m := &rows{name: s.name, n: out.Rows(), size: cols / gguf.NVFP4.BlockLen() * gguf.NVFP4.BlockBytes(), scratchSize: cols/2 + cols/each}
	m.row = func(dst, raw []byte, r int) error {
		codes, d := raw[:cols/2], raw[cols/2:]
		t, at := s.at(r)
		if err := s.read(codes, r); err != nil {
			return err
		}
		scale := scales[t]
		if err := scale.Source.Read(d, scale.Offset+int64(at*len(d))); err != nil {
			return err
		}
		for i, x := range d {
			if x >= 0x7f { // NaN, or negative
				return fmt.Errorf("%w: scale %d is %v", safetensors.ErrFormat, i, e4m3[x])
			}
		}
		putNVFP4(dst, codes, d)
		return nil
	}
	p.tensors = append(p.tensors, out.At(m.source(), 0))
	p.vector(strings.TrimSuffix(s.name, "weight")+"scale", factors)
}

// putNVFP4 writes the blocks of a row: four scales, then 32 bytes, byte 8s+i of which has code 16s+i in its
// low half and 16s+i+8 in the high.
func putNVFP4(dst, codes, scales []byte) {
	for ; len(codes) > 0; dst, codes, scales = dst[36:], codes[32:], scales[4:] {
		copy(dst, scales[:4])
		for s := range 4 {
			pairHalves(dst[4+8*s:], codes[8*s:8*s+8])
		}
	}
}
