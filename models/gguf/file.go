package gguf

import (
	"errors"
	"fmt"
	"os"
)

// Errors of this package. What is wrapped around them names the key or tensor
// and the offset.
var (
	// ErrFormat says that the bytes are not a well-formed GGUF file.
	ErrFormat = errors.New("malformed GGUF")
	// ErrUnsupported says that the file is or may be well-formed, but of a kind
	// this package does not read: big-endian, split, another version, or a
	// storage type without a decoder.
	ErrUnsupported = errors.New("unsupported GGUF")
)

// File is a parsed GGUF file.
type File struct {
	Version  int // 2 or 3
	Metadata Metadata
	Tensors  []Tensor // in file order

	byName  map[string]int
	mapping *mapping // nil for bytes that somebody else owns
}

// Tensor is one entry of the tensor directory with its data.
type Tensor struct {
	Name string
	Type Type
	// Dims is the shape as GGUF stores it, fastest first: a weight matrix
	// W[Rows][Cols] has Dims {Cols, Rows}. It has 1 to 4 entries, none zero.
	Dims []int
	// Data are the raw blocks, row after row; of exactly the size that Type
	// and Dims say. Valid until the file's Close, never to be written.
	Data []byte
}

// Cols is the length of a row.
func (t *Tensor) Cols() int { return t.Dims[0] }

// Rows is the number of rows, those of all higher dimensions together.
func (t *Tensor) Rows() int {
	n := 1
	for _, d := range t.Dims[1:] {
		n *= d
	}
	return n
}

// Len is the number of elements.
func (t *Tensor) Len() int { return t.Cols() * t.Rows() }

// Slice is rows [lo, hi) as a tensor of their own. It shares t's data, but for
// types whose tensors end in a scale of the whole.
func (t *Tensor) Slice(lo, hi int) *Tensor {
	tr := t.Type.traits()
	row := t.Cols() / tr.blockLen * tr.blockBytes
	data := t.Data[lo*row : hi*row : hi*row]
	if tr.tail > 0 {
		data = append(data, t.Data[len(t.Data)-tr.tail:]...) // has no room, so it is copied
	}
	return &Tensor{Name: t.Name, Type: t.Type, Dims: []int{t.Cols(), hi - lo}, Data: data}
}

// Tensor is the tensor of that name, or nil.
func (f *File) Tensor(name string) *Tensor {
	i, ok := f.byName[name]
	if !ok {
		return nil
	}
	return &f.Tensors[i]
}

// Open maps the file at path into memory and parses it. The file must not be
// truncated while it is open: reading mapped pages that no longer exist is a
// fault that no program can recover from.
func Open(path string) (*File, error) {
	m, err := mapFile(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := Parse(m.data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.close())
	}
	f.mapping = m
	return f, nil
}

// Evict advises the system to take back the memory of what was read of a
// mapped file, because it has been repacked. Reading Tensor.Data stays right
// and fetches the pages again.
func (f *File) Evict() {
	if f.mapping != nil {
		f.mapping.evict()
	}
}

// Close releases the mapping, after which no Tensor.Data may be touched. It
// may be called more than once.
func (f *File) Close() error {
	m := f.mapping
	f.mapping = nil
	for i := range f.Tensors {
		f.Tensors[i].Data = nil
	}
	if m == nil {
		return nil
	}
	return m.close()
}

// regularSize is the size of an open regular file that fits an int.
func regularSize(file *os.File) (int, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s: not a regular file", file.Name())
	}
	if int64(int(info.Size())) != info.Size() {
		return 0, fmt.Errorf("%s: %d bytes exceed this machine's address space", file.Name(), info.Size())
	}
	return int(info.Size()), nil
}
