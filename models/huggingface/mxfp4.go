package huggingface

import (
	"slices"

	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// packMXFP4 adds a tensor of rows of s, which has those of the experts of gpt-oss: [experts][rows][blocks][16]
// codes, two a byte, the first one low, and beside them an exponent a block.
func (p *packer) packMXFP4(s *stack) {
	t, scale := s.parts[0], p.beside(s.parts[0], "_scales")
	cols := s.dims[0]
	if scale == nil || scale.DType != "U8" || !slices.Equal(scale.Shape, t.Shape[:len(t.Shape)-1]) {
		p.fail("tensor %q: %w: its scales are missing, or no bytes of shape %v", t.Name, safetensors.ErrFormat, t.Shape[:len(t.Shape)-1])
		return
	}
	const each = 32 // columns of a block
	out := gguf.Tensor{Name: s.name, Type: gguf.MXFP4, Dims: s.dims}
	m := &rows{name: s.name, n: out.Rows(), size: cols / each * gguf.MXFP4.BlockBytes(), scratchSize: cols/2 + cols/each}
	m.row = func(dst, raw []byte, r int) error {
		codes, exponents := raw[:cols/2], raw[cols/2:]
		_, at := s.at(r)
		if err := t.Source.Read(codes, t.Offset+int64(at)*int64(len(codes))); err != nil {
			return err
		}
		if err := scale.Source.Read(exponents, scale.Offset+int64(at)*int64(len(exponents))); err != nil {
			return err
		}
		for _, e := range exponents {
			putMXFP4(dst, codes, e)
			dst, codes = dst[17:], codes[16:]
		}
		return nil
	}
	p.tensors = append(p.tensors, out.At(m.source(), 0))
}

// putMXFP4 writes a block: its exponent, then 16 bytes, byte i of which has code i in its low half and code
// i+16 in the high.
func putMXFP4(dst, codes []byte, exponent byte) {
	dst[0] = exponent
	pairHalves(dst[1:], codes[:16])
}

// pairHalves writes bytes of two codes each, one of the first half of codes and the one at its place in the second.
// codes has two a byte, the first one low.
func pairHalves(dst, codes []byte) {
	n := len(codes) / 2
	for i, low := range codes[:n] {
		high := codes[n+i]
		dst[2*i], dst[2*i+1] = low&15|high<<4, low>>4|high&0xf0
	}
}
