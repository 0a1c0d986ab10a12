package huggingface

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/disk"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/safetensors"
)

// rows makes the blocks of a tensor from the blocks of others, row by row, as they are read. Any number of
// goroutines may read.
type rows struct {
	name string // of the tensor, for errors
	n    int
	size int // of a row in bytes

	// row makes row r; scratch has room for scratchSize bytes. run, if that is not nil, makes rows from
	// r on instead, as many as dst holds.
	row         func(dst, scratch []byte, r int) error
	run         func(dst []byte, r int) error
	scratchSize int
	tail        func() ([]byte, error) // what follows the last row; nil: nothing

	spare sync.Pool // of *[]byte: a row, and scratch
}

// ReadAt implements io.ReaderAt.
func (m *rows) ReadAt(p []byte, off int64) (n int, err error) {
	spare, _ := m.spare.Get().(*[]byte)
	if spare == nil {
		b := make([]byte, m.size+m.scratchSize)
		spare = &b
	}
	defer m.spare.Put(spare)
	part, scratch := (*spare)[:m.size], (*spare)[m.size:]
	for n < len(p) {
		at := off + int64(n)
		r, from := int(at/int64(m.size)), int(at%int64(m.size))
		if r >= m.n {
			behind, err := m.behind(p[n:], at-int64(m.n)*int64(m.size))
			return n + behind, err
		}
		whole := p[n:]
		switch {
		case from != 0 || len(whole) < m.size:
			if err = m.one(part, scratch, r); err == nil {
				n += copy(whole, part[from:])
			}
		case m.run != nil:
			whole = whole[:min(len(whole)/m.size, m.n-r)*m.size]
			err, n = m.run(whole, r), n+len(whole)
		default:
			err, n = m.row(whole[:m.size], scratch, r), n+m.size
		}
		if err != nil {
			return n, fmt.Errorf("huggingface: tensor %q: row %d: %w", m.name, r, err)
		}
	}
	return n, nil
}

// one makes row r.
func (m *rows) one(dst, scratch []byte, r int) error {
	if m.run != nil {
		return m.run(dst, r)
	}
	return m.row(dst, scratch, r)
}

// behind reads of the tail.
func (m *rows) behind(p []byte, off int64) (int, error) {
	if m.tail == nil {
		return 0, io.EOF
	}
	tail, err := m.tail()
	if err != nil {
		return 0, fmt.Errorf("huggingface: tensor %q: %w", m.name, err)
	}
	n := copy(p, tail[min(off, int64(len(tail))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// source returns what m makes.
func (m *rows) source() *disk.Source {
	size := int64(m.n) * int64(m.size)
	if m.tail != nil {
		size += ternaryTail
	}
	if m.run != nil {
		return disk.MadeAtOnce(m, size)
	}
	return disk.Made(m, size)
}

// stack is stored tensors of one shape, one after the other, and which of their rows make a
// tensor.
type stack struct {
	name  string // of the tensor that they become
	parts []*safetensors.Tensor
	dims  []int         // of that tensor, fastest first
	order func(int) int // the stored row that is row r, counted through all parts, or of a vector the number; nil: r

	columns func(int) int                    // the stored column that is column c; nil: c
	change  func(x float32, row int) float32 // what becomes of a number; nil: nothing
	wide    bool                             // it is float32, whatever it was
}

// storedRows returns how many rows a part has.
func storedRows(t *safetensors.Tensor) int { return t.Len() / storedCols(t) }

// storedCols returns how long its rows are.
func storedCols(t *safetensors.Tensor) int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// at returns the part that has row r, and the number of that row in it.
func (s *stack) at(r int) (*safetensors.Tensor, int) {
	if s.order != nil && len(s.dims) > 1 {
		r = s.order(r)
	}
	if len(s.parts) == 1 { // which may have more rows than are taken
		return s.parts[0], r
	}
	each := s.rowsEach()
	return s.parts[r/each], r % each
}

// rowsEach returns how many rows of the tensor a part has.
func (s *stack) rowsEach() int {
	n := 1
	for _, d := range s.dims[1:] {
		n *= d
	}
	return n / len(s.parts)
}

// read sets dst to the bytes of row r.
func (s *stack) read(dst []byte, r int) error {
	t, r := s.at(r)
	return t.Source.Read(dst, t.Offset+int64(r)*int64(len(dst)))
}

// cols returns how many columns a stored row has.
func (s *stack) cols() int {
	if s.columns == nil {
		return s.dims[0]
	}
	return storedCols(s.parts[0])
}

// made returns the tensor of floats that are stored as typ.
func (s *stack) made(typ gguf.Type) gguf.Tensor {
	out := gguf.Tensor{Name: s.name, Type: typ, Dims: s.dims}
	if s.wide {
		out.Type = gguf.F32
	}
	if s.change != nil || s.columns != nil || out.Type != typ || s.order != nil && len(s.dims) == 1 {
		return s.numbers(out, typ)
	}
	if len(s.parts) == 1 && s.order == nil {
		return out.At(s.parts[0].Source, s.parts[0].Offset)
	}
	m := &rows{name: s.name, n: out.Rows(), size: out.Cols() * typ.BlockBytes()}
	m.row = func(dst, _ []byte, r int) error { return s.read(dst, r) }
	return out.At(m.source(), 0)
}

// numbers makes a tensor number by number.
func (s *stack) numbers(out gguf.Tensor, typ gguf.Type) gguf.Tensor {
	cols, each, wide := out.Cols(), typ.BlockBytes(), out.Type == gguf.F32
	m := &rows{name: s.name, n: out.Rows(), size: out.Type.BlockBytes() * cols, scratchSize: each * s.cols()}
	m.row = func(dst, raw []byte, r int) error {
		if err := s.read(raw, r); err != nil {
			return err
		}
		for i := range cols {
			from := i
			switch {
			case s.columns != nil:
				from = s.columns(i)
			case s.order != nil && len(s.dims) == 1:
				from = s.order(i)
			}
			stored := raw[each*from : each*from+each]
			if !wide && s.change == nil {
				copy(dst[each*i:], stored)
				continue
			}
			x := number(typ, stored)
			if s.change != nil {
				x = s.change(x, r)
			}
			if wide {
				putFloat(dst[4*i:], x)
			} else if err := gguf.Quantize(typ, dst[each*i:each*i+each], []float32{x}); err != nil {
				return err
			}
		}
		return nil
	}
	return out.At(m.source(), 0)
}

// number reads a number of one of the types of floats.
func number(typ gguf.Type, raw []byte) float32 {
	switch typ {
	case gguf.F16:
		return vector.FromF16(binary.LittleEndian.Uint16(raw))
	case gguf.BF16:
		return vector.FromBF16(binary.LittleEndian.Uint16(raw))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(raw))
}

func putFloat(dst []byte, x float32) { binary.LittleEndian.PutUint32(dst, math.Float32bits(x)) }

// floatTypes are the types of floats that are read as they are.
var floatTypes = map[string]gguf.Type{"F32": gguf.F32, "F16": gguf.F16, "BF16": gguf.BF16}

// one reads the only number of a stored tensor.
func one(t *safetensors.Tensor) (float32, error) {
	x, err := scaleNumbers(t, 1)
	if err != nil {
		return 0, err
	}
	if x[0]-x[0] != 0 || x[0] == 0 {
		return 0, fmt.Errorf("tensor %q: the scale is zero, infinite or NaN", t.Name)
	}
	return x[0], nil
}

// vector adds a tensor of numbers that no file has.
func (o *output) vector(name string, x []float32) {
	raw := make([]byte, 4*len(x))
	for i, v := range x {
		putFloat(raw[4*i:], v)
	}
	o.tensors = append(o.tensors, gguf.Tensor{Name: name, Type: gguf.F32, Dims: []int{len(x)}}.At(disk.InMemory(raw), 0))
}
