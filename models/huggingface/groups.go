package huggingface

import (
	"encoding/binary"
	"fmt"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// grouped is a matrix of codes of four bits: a weight is scale·(code - zero), with a scale and a
// zero each group of columns.
type grouped struct {
	codes, zeros, scales grid // zeros.t is nil where they are all 8
	outs, cols, groups   int
	fromOne              bool // zeros are stored one below what they are
}

// middle is the zero of codes that are symmetric.
const middle = 8

// packGroups takes the codes of GPTQ (Frantar et al. 2022), AWQ (Lin et al. 2023) and compressed-tensors,
// eight of four bits an I32, in the layouts of the libraries GPTQModel, AutoAWQ and compressed-tensors. Zeros
// that are all 8 make Q4_0, others one of Q4_Z32 to Q4_Z128: either holds the weights exactly.
func (p *packer) packGroups(s *stack) {
	of, typ := make([]grouped, len(s.parts)), gguf.Q4_0
	cols, outs := s.dims[0], s.dims[1]
	for i, t := range s.parts {
		of[i] = p.grouped(t, cols, outs)
		if p.err != nil {
			return
		}
		symmetric, err := of[i].symmetric()
		switch {
		case err != nil:
			p.fail("%w", err)
			return
		case of[i].groups != of[0].groups:
			p.fail("tensor %q: %w: another size of groups than that of the first expert", t.Name, safetensors.ErrFormat)
			return
		case !symmetric:
			typ = zeroTypes[cols/of[i].groups%128]
		}
	}
	out := gguf.Tensor{Name: s.name, Type: typ, Dims: s.dims}
	m := &rows{name: s.name, n: out.Rows(), size: cols / typ.BlockLen() * typ.BlockBytes()}
	m.run = func(dst []byte, r int) error {
		for n := 0; len(dst) > 0; dst, r = dst[n*m.size:], r+n {
			n = min(len(dst)/m.size, outs-r%outs) // of one part
			at := make([]int, n)
			for i := range at {
				if at[i] = r + i; s.order != nil {
					at[i] = s.order(r + i)
				}
				at[i] %= outs
			}
			if err := of[r/outs].rows(dst[:n*m.size], at, typ); err != nil {
				return err
			}
		}
		return nil
	}
	p.tensors = append(p.tensors, out.At(m.source(), 0))
}

// zeroTypes are the types for groups of n columns, by n mod 128.
var zeroTypes = map[int]gguf.Type{0: gguf.Q4_Z128, 32: gguf.Q4_Z32, 64: gguf.Q4_Z64, 96: gguf.Q4_Z32}

// orderAWQ is where in a word AWQ has each of eight outputs.
var orderAWQ = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

var inOrder = [8]int{0, 1, 2, 3, 4, 5, 6, 7}

// grouped finds what stands beside the codes t of a matrix.
func (p *packer) grouped(t *safetensors.Tensor, cols, outs int) grouped {
	g := grouped{outs: outs, cols: cols, fromOne: p.quant.fromOne}
	scales, zeros, index := ".scales", ".qzeros", ".g_idx"
	g.codes, g.zeros, g.scales = grid{packed: 0, order: &inOrder}, grid{packed: 1, order: &inOrder}, grid{packed: unpacked}
	switch p.quant.method {
	case methodAWQ:
		g.codes, g.zeros = grid{packed: 1, order: &orderAWQ}, grid{packed: 1, order: &orderAWQ}
	case methodCompressed:
		scales, zeros, index = ".weight_scale", ".weight_zero_point", ".weight_g_idx"
		g.codes, g.zeros, g.scales = grid{outputs: true, packed: 1, order: &inOrder}, grid{outputs: true, packed: 0, order: &inOrder}, grid{outputs: true, packed: unpacked}
	}
	g.codes.t, g.zeros.t, g.scales.t = t, p.beside(t, zeros), p.beside(t, scales)
	if g.scales.t == nil || floatTypes[g.scales.t.DType] == 0 && g.scales.t.DType != "F32" || len(g.scales.t.Shape) != 2 {
		p.fail("tensor %q: %w: its %s are missing, or no two dimensions of F32, F16 or BF16", t.Name, safetensors.ErrFormat, scales[1:])
		return g
	}
	shape := g.scales.t.Shape
	g.groups = shape[0]
	if g.scales.outputs {
		g.groups = shape[1]
	}
	if g.scales.t.Len() != g.groups*outs || g.groups == 0 || cols%g.groups != 0 || cols/g.groups%gguf.Q4_0.BlockLen() != 0 {
		p.fail("tensor %q: %w: scales of shape %v for %d rows of %d columns: want groups of whole %d", t.Name, ErrUnsupported, shape, outs, cols, gguf.Q4_0.BlockLen())
		return g
	}
	switch {
	case g.zeros.t == nil && p.quant.method != methodCompressed:
		p.fail("tensor %q: %w: its %s are missing", t.Name, safetensors.ErrFormat, zeros[1:])
	case g.zeros.t != nil && (g.zeros.t.DType != "I32" || g.zeros.t.Len() != g.zeros.words(outs, g.groups)):
		p.fail("tensor %q: %w: %s of shape %v, want a zero a scale, eight an I32", g.zeros.t.Name, safetensors.ErrFormat, g.zeros.t.DType, g.zeros.t.Shape)
	}
	if x := p.beside(t, index); x != nil && p.err == nil {
		p.inOrder(x, cols, cols/g.groups)
	}
	if x := p.beside(t, ".weight_shape"); x != nil && p.err == nil {
		if n, err := integers(x, 2); err != nil || n[0] != outs || n[1] != cols {
			p.fail("tensor %q: %w: it says %v of codes for %d rows of %d: %v", x.Name, safetensors.ErrFormat, n, outs, cols, err)
		}
	}
	return g
}

// inOrder fails on columns whose groups are not one after the other.
func (p *packer) inOrder(x *safetensors.Tensor, cols, group int) {
	n, err := integers(x, cols)
	if err != nil {
		p.fail("%w", err)
		return
	}
	for i, g := range n {
		if g != i/group {
			p.fail("tensor %q: %w: column %d is of group %d: columns are in an order of their own (desc_act)", x.Name, ErrUnsupported, i, g)
			return
		}
	}
}

// integers reads all n numbers of a tensor.
func integers(t *safetensors.Tensor, n int) ([]int, error) {
	each := map[string]int{"I32": 4, "I64": 8}[t.DType]
	if each == 0 || t.Len() != n {
		return nil, fmt.Errorf("tensor %q: %w: %s of shape %v, want %d whole numbers", t.Name, safetensors.ErrFormat, t.DType, t.Shape, n)
	}
	raw, out := make([]byte, each*n), make([]int, n)
	if err := t.Source.Read(raw, t.Offset); err != nil {
		return nil, err
	}
	for i := range out {
		if each == 4 {
			out[i] = int(int32(binary.LittleEndian.Uint32(raw[4*i:])))
		} else {
			out[i] = int(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	}
	return out, nil
}

// symmetric tells whether all zeros are 8.
func (g *grouped) symmetric() (bool, error) {
	if g.zeros.t == nil {
		return true, nil
	}
	raw := make([]byte, g.zeros.t.Bytes())
	if err := g.zeros.t.Source.Read(raw, g.zeros.t.Offset); err != nil {
		return false, err
	}
	want := byte(middle * 0x11)
	if g.fromOne {
		want -= 0x11
	}
	for _, x := range raw {
		if x != want {
			return false, nil
		}
	}
	return true, nil
}

// rows writes the blocks of outputs at.
func (g *grouped) rows(dst []byte, at []int, typ gguf.Type) error {
	lo, hi := at[0], at[0]+1
	for _, r := range at {
		lo, hi = min(lo, r), max(hi, r+1)
	}
	codes := make([]byte, (hi-lo)*g.cols)
	if err := g.codes.nibbles(codes, lo, hi, g.cols); err != nil {
		return err
	}
	zeros := make([]byte, (hi-lo)*g.groups)
	if typ != gguf.Q4_0 {
		if err := g.zerosOf(zeros, lo, hi); err != nil {
			return err
		}
	}
	scales, err := g.scales.halves(lo, hi, g.groups)
	if err != nil {
		return err
	}
	size := len(dst) / len(at)
	parallel.Ranges(len(at), func(from, to int) {
		for i := from; i < to; i++ {
			r := at[i] - lo
			putGroups(dst[i*size:(i+1)*size], codes[r*g.cols:(r+1)*g.cols], scales[r*g.groups:(r+1)*g.groups], zeros[r*g.groups:(r+1)*g.groups], typ)
		}
	})
	return nil
}

// zerosOf sets dst[hi-lo][groups] to the codes of zero.
func (g *grouped) zerosOf(dst []byte, lo, hi int) error {
	if g.zeros.t == nil {
		for i := range dst {
			dst[i] = middle
		}
		return nil
	}
	err := g.zeros.nibbles(dst, lo, hi, g.groups)
	for i := 0; g.fromOne && i < len(dst); i++ {
		dst[i]++
	}
	return err
}

// putGroups writes the blocks of a row of codes.
func putGroups(dst, codes []byte, scales []uint16, zeros []byte, typ gguf.Type) {
	group, block := len(codes)/len(scales), typ.BlockLen()
	for i := 0; len(codes) > 0; i++ {
		binary.LittleEndian.PutUint16(dst, scales[i*block/group])
		if dst = dst[2:]; typ != gguf.Q4_0 {
			dst[0] = zeros[i*block/group]
			dst = dst[1:]
		}
		for range block / 32 {
			for j := range 2 { // code k in the low half of byte k, code k+16 in the high
				low, high := binary.LittleEndian.Uint64(codes[8*j:]), binary.LittleEndian.Uint64(codes[16+8*j:])
				binary.LittleEndian.PutUint64(dst[8*j:], low|high<<4)
			}
			dst, codes = dst[16:], codes[32:]
		}
	}
}

// halves reads scales of outputs [lo, hi), n each, as binary16 has them.
func (g *grid) halves(lo, hi, n int) ([]uint16, error) {
	typ := floatTypes[g.t.DType]
	each := typ.BlockBytes()
	raw, err := g.rectangle(lo, hi, n, each)
	if err != nil {
		return nil, err
	}
	out := make([]uint16, (hi-lo)*n)
	for i := range out {
		from := i
		if !g.outputs {
			from = i%n*(hi-lo) + i/n
		}
		x := number(typ, raw[each*from:])
		if out[i] = vector.ToF16(x); vector.FromF16(out[i]) != x || x-x != 0 {
			return nil, fmt.Errorf("tensor %q: %w: a scale of %v is no number of 16 bits", g.t.Name, ErrUnsupported, x)
		}
	}
	return out, nil
}
