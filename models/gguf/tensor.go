package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/lutra-lm/lutra/models/disk"
)

// Tensor is one entry of the tensor directory with its data, which is in memory
// or still in the file.
type Tensor struct {
	Name string
	Type Type
	// Dims is the shape as GGUF stores it, fastest first: a weight matrix
	// W[Rows][Cols] has Dims {Cols, Rows}. It has 1 to 4 entries, none zero.
	Dims []int
	// Data are the raw blocks, row after row; of exactly the size that Type
	// and Dims say, and never to be written. Nil: they are in a file, where Load,
	// Dequantize and Write find them until its Close.
	Data []byte

	source *disk.Source // of a parsed tensor
	offset int64        // of its first byte
}

// put says where a tensor of a valid type and shape is.
func (t *Tensor) put(s *disk.Source, offset int64) {
	t.source, t.offset = s, offset
	if end := offset + int64(t.Bytes()); s.Held() != nil {
		t.Data = s.Held()[offset:end:end]
	}
}

// Cols returns the length of a row.
func (t *Tensor) Cols() int { return t.Dims[0] }

// Rows returns the number of rows, all higher dimensions together.
func (t *Tensor) Rows() int {
	n := 1
	for _, d := range t.Dims[1:] {
		n *= d
	}
	return n
}

// Len returns the number of elements.
func (t *Tensor) Len() int { return t.Cols() * t.Rows() }

// Bytes returns the size of the raw blocks, 0 where Type.Size has an error.
func (t *Tensor) Bytes() int {
	n, err := t.Type.Size(t.Dims)
	if err != nil {
		return 0
	}
	return n
}

// Load returns rows [lo, hi) as a tensor in memory. It shares t's data if that is in memory itself, except
// for types whose tensors end in a scale of the whole. Else it reads the file, into buf if there is room.
// It returns errors of reading, and ErrChanged for a file that has been truncated.
func (t *Tensor) Load(lo, hi int, buf []byte) (*Tensor, error) {
	tr := t.Type.traits()
	row := t.Cols() / tr.blockLen * tr.blockBytes
	part := &Tensor{Name: t.Name, Type: t.Type, Dims: []int{t.Cols(), hi - lo}}
	if t.Data != nil {
		part.Data = t.Data[lo*row : hi*row : hi*row]
		if tr.tail > 0 {
			part.Data = append(part.Data, t.Data[len(t.Data)-tr.tail:]...) // has no room, so it is copied
		}
		return part, nil
	}
	n := (hi - lo) * row
	if cap(buf) < n+tr.tail {
		buf = make([]byte, n+tr.tail)
	}
	part.Data = buf[:n+tr.tail]
	err := t.source.Read(part.Data[:n], t.offset+int64(lo)*int64(row))
	if err == nil && tr.tail > 0 {
		err = t.source.Read(part.Data[n:], t.offset+int64(t.Bytes()-tr.tail))
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return part, nil
}

// Expect says that Load will want rows [lo, hi) soon: of a file the system may read
// them meanwhile.
func (t *Tensor) Expect(lo, hi int) {
	if t.Data != nil || t.source == nil {
		return
	}
	tr := t.Type.traits()
	row := int64(t.Cols() / tr.blockLen * tr.blockBytes)
	t.source.Expect(t.offset+int64(lo)*row, int64(hi-lo)*row)
}

// Dequantize sets dst to the elements of t from number lo on, bit for bit what
// ggml's to_float gives. lo and len(dst) are whole blocks. A tensor in a file is
// read from there. It returns the errors of Load, and ErrUnsupported for a type
// that is not Supported. It may be called by any number of goroutines.
func (t *Tensor) Dequantize(dst []float32, lo int) error {
	tr := t.Type.traits()
	if tr.dequantize == nil {
		return fmt.Errorf("gguf: tensor %q: %w: storage type %v is not supported yet", t.Name, ErrUnsupported, t.Type)
	}
	hi := lo + len(dst)
	if lo%tr.blockLen != 0 || hi%tr.blockLen != 0 || lo < 0 || hi > t.Len() {
		panic(fmt.Sprintf("gguf: tensor %q: elements [%d, %d) of %d are no whole blocks of %d", t.Name, lo, hi, t.Len(), tr.blockLen))
	}
	at := func(i int) int { return i / tr.blockLen * tr.blockBytes }
	if t.Data != nil {
		tr.dequantize(dst, t.Data[at(lo):at(hi)])
		tr.rescale(dst, t.Data[len(t.Data)-tr.tail:])
		return nil
	}
	err := t.source.WithRow(at(hi)-at(lo), t.offset+int64(at(lo)), func(raw []byte) { tr.dequantize(dst, raw) })
	if err == nil && tr.tail > 0 {
		err = t.source.WithRow(tr.tail, t.offset+int64(t.Bytes()-tr.tail), func(raw []byte) { tr.rescale(dst, raw) })
	}
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return nil
}

// rescale applies the scale that a tensor's tail, if its type has one, holds.
func (tr *traits) rescale(dst []float32, tail []byte) {
	if tr.tail == 0 {
		return
	}
	d := math.Float32frombits(binary.LittleEndian.Uint32(tail))
	for i := range dst {
		dst[i] *= d
	}
}

// Copy writes the raw blocks to w, and returns errors of reading and of w.
func (t *Tensor) Copy(w io.Writer) error {
	if t.Data != nil || t.source == nil {
		_, err := w.Write(t.Data)
		return err
	}
	const atOnce = 1 << 20 // rows that are made are so together
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(t.source, t.offset, int64(t.Bytes())), make([]byte, min(atOnce, t.Bytes())))
	return err
}
