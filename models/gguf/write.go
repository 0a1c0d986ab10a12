package gguf

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
)

// Source is a tensor to be written: its directory entry and where its data
// comes from.
type Source struct {
	Name string
	Type Type
	Dims []int // fastest first
	// Write writes the raw blocks, exactly Type.Size(Dims) bytes. It is called
	// once, in the order of the sources, so that large tensors can be streamed.
	Write func(w io.Writer) error
}

// Write writes a version 3 file holding the metadata, with
// general.architecture first and the rest by name, and the tensors in order.
// Metadata values have the types that Parse gives them.
func Write(w io.Writer, meta Metadata, tensors []Tensor) error {
	sources := make([]Source, len(tensors))
	for i := range tensors {
		t := &tensors[i]
		sources[i] = Source{t.Name, t.Type, t.Dims, t.Copy}
	}
	return WriteFrom(w, meta, sources)
}

// WriteFrom does as Write for tensors that are produced as they are written.
func WriteFrom(w io.Writer, meta Metadata, sources []Source) error {
	align, err := meta.alignment()
	if err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	e := &encoder{}
	e.raw(magic)
	e.u32(3)
	e.u64(uint64(len(sources)))
	e.u64(uint64(len(meta)))
	for _, key := range meta.order() {
		if err := e.pair(key, meta[key]); err != nil {
			return fmt.Errorf("gguf: key %q: %w", key, err)
		}
	}
	sizes, err := e.directory(sources, align)
	if err != nil {
		return err
	}
	out := &counter{w: bufio.NewWriterSize(w, 1<<20)}
	if _, err := out.Write(e.pad(align)); err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	for i, s := range sources {
		start := out.n
		if err := s.Write(out); err != nil {
			return fmt.Errorf("gguf: tensor %q: %w", s.Name, err)
		}
		if n := out.n - start; n != int64(sizes[i]) {
			return fmt.Errorf("gguf: tensor %q: %w: %d bytes were written, want %d", s.Name, ErrFormat, n, sizes[i])
		}
		if _, err := out.Write(make([]byte, padding(sizes[i], align))); err != nil {
			return fmt.Errorf("gguf: %w", err)
		}
	}
	if err := out.w.Flush(); err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	return nil
}

// order lists the keys: general.architecture, which tells readers what the
// others mean, then the rest by name.
func (m Metadata) order() []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		const first = "general.architecture"
		switch {
		case a == first && b != first:
			return -1
		case b == first && a != first:
			return 1
		case a < b:
			return -1
		}
		return 1
	})
	return keys
}

// padding counts the bytes after size to the next multiple of align.
func padding(size, align int) int { return -size & (align - 1) }

// counter counts what passes through it.
type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// directory writes the tensor entries and returns the tensors' sizes.
func (e *encoder) directory(sources []Source, align int) ([]int, error) {
	sizes := make([]int, len(sources))
	seen := make(map[string]bool, len(sources))
	offset := 0
	for i, s := range sources {
		size, err := s.Type.Size(s.Dims)
		switch {
		case err != nil:
		case !s.Type.numbered():
			err = fmt.Errorf("%w: %v is read but not written", ErrUnsupported, s.Type)
		case s.Name == "" || len(s.Name) > maxTensorName || seen[s.Name]:
			err = fmt.Errorf("%w: the name is empty, longer than %d bytes or occurs twice", ErrFormat, maxTensorName)
		case len(s.Dims) > maxDims:
			err = fmt.Errorf("%w: %d dimensions, at most %d are allowed", ErrFormat, len(s.Dims), maxDims)
		case size > math.MaxInt-align-offset:
			err = fmt.Errorf("%w: the tensors together overflow", ErrFormat)
		}
		if err != nil {
			return nil, fmt.Errorf("gguf: tensor %q: %w", s.Name, err)
		}
		seen[s.Name] = true
		e.str(s.Name)
		e.u32(uint32(len(s.Dims)))
		for _, d := range s.Dims {
			e.u64(uint64(d))
		}
		e.u32(uint32(s.Type))
		e.u64(uint64(offset))
		sizes[i] = size
		offset += size + padding(size, align)
	}
	return sizes, nil
}
