package gguf

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

const (
	magic            = "GGUF"
	defaultAlignment = 32
	maxDims          = 4     // GGML_MAX_DIMS
	maxKeyLen        = 65535 // gguf.md, "key"
	maxTensorName    = 64    // gguf.md, "gguf_tensor_info_t"
	maxArrayDepth    = 4     // the specification sets no bound; real files nest at most twice
	maxAlignment     = 1 << 20

	// The fewest bytes an entry takes, to refuse counts before allocating.
	minPairBytes   = 8 + 1 + 4 + 1     // key length, key, type, value
	minTensorBytes = 8 + 4 + 8 + 4 + 8 // name length, n_dims, one dimension, type, offset
)

// Parse reads a whole GGUF file held in memory. Tensor.Data points into data.
func Parse(data []byte) (*File, error) {
	f, err := parse(inMemory(data), nil)
	if err != nil {
		return nil, err
	}
	if n := f.parts(); n > 1 {
		return nil, fmt.Errorf("gguf: %w: this is one of %d parts, which are found as files alone", ErrUnsupported, n)
	}
	return f, nil
}

// parse reads a file, or a part of the model that first begins.
func parse(s *source, first *File) (*File, error) {
	c := newCursor(s)
	f := &File{Metadata: Metadata{}, source: s, first: first}
	tensors, pairs := f.header(c)
	f.metadata(c, pairs)
	f.directory(c, tensors)
	if c.err != nil {
		return nil, fmt.Errorf("gguf: %w", c.err)
	}
	return f, nil
}

// header reads the fixed fields and returns the number of tensors and of
// key-value pairs.
func (f *File) header(c *cursor) (tensors, pairs int) {
	if got := c.take(len(magic)); c.err == nil && string(got) != magic {
		c.fail("%w: magic is %q, want %q", ErrFormat, got, magic)
	}
	version := c.u32()
	switch {
	case c.err != nil:
	case version == 2 || version == 3:
	case version != 0 && bits.ReverseBytes32(version) <= 3:
		c.fail("%w: the file is big-endian", ErrUnsupported)
	default:
		c.fail("%w: version %d, want 2 or 3", ErrUnsupported, version)
	}
	f.Version = int(version)
	tensors = c.count("tensors", minTensorBytes)
	pairs = c.count("key-value pairs", minPairBytes)
	return tensors, pairs
}

func (f *File) metadata(c *cursor, pairs int) {
	for i := 0; i < pairs && c.err == nil; i++ {
		c.what = fmt.Sprintf("key %d of %d", i+1, pairs)
		key := c.str(maxKeyLen)
		if c.err != nil {
			return
		}
		c.what = fmt.Sprintf("key %q", clip(key))
		if key == "" {
			c.fail("%w: empty key", ErrFormat)
		}
		if _, dup := f.Metadata[key]; dup {
			c.fail("%w: the key occurs twice", ErrFormat)
		}
		f.Metadata[key] = c.value(valueType(c.u32()), 0)
	}
}

// directory reads the tensor entries, then places their data.
func (f *File) directory(c *cursor, n int) {
	if c.err != nil {
		return
	}
	f.Tensors = make([]Tensor, 0, min(n, 4096))
	f.byName = make(map[string]int, min(n, 4096))
	offsets := make([]uint64, 0, min(n, 4096))
	for i := 0; i < n && c.err == nil; i++ {
		c.what = fmt.Sprintf("tensor %d of %d", i+1, n)
		name := c.str(maxTensorName)
		if c.err != nil {
			return
		}
		c.what = fmt.Sprintf("tensor %q", name)
		if _, dup := f.byName[name]; dup || name == "" {
			c.fail("%w: the name is empty or occurs twice", ErrFormat)
		}
		t := Tensor{Name: name, Dims: c.dims(), Type: Type(c.u32())}
		if t.Type == Q1_0_G32 {
			c.fail("%w: unknown storage type %d", ErrUnsupported, uint32(t.Type))
		}
		offsets = append(offsets, c.u64())
		f.byName[name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	if c.err == nil {
		f.place(c, offsets)
	}
}

// place gives every tensor its part of the data section: inside the file,
// aligned, and shared with no other tensor.
func (f *File) place(c *cursor, offsets []uint64) {
	c.what = "tensor data"
	n, err := f.Metadata.alignment()
	if err != nil {
		c.fail("%w", err)
		return
	}
	align := uint64(n)
	start := (uint64(c.pos) + align - 1) &^ (align - 1)
	section := uint64(c.size) - min(start, uint64(c.size)) // bytes

	for i, lo := range offsets {
		if lo%align != 0 {
			c.what = fmt.Sprintf("tensor %q", f.Tensors[i].Name)
			c.fail("%w: data offset %d is not a multiple of the alignment %d", ErrFormat, lo, align)
			return
		}
	}
	order, extents := divide(offsets, (section+align-1)&^(align-1))
	f.settle(c, extents, align)
	for i := 0; i < len(f.Tensors) && c.err == nil; i++ {
		t, lo := &f.Tensors[i], offsets[i]
		c.what = fmt.Sprintf("tensor %q", t.Name)
		switch size, err := t.Type.Size(t.Dims); {
		case err != nil:
			c.fail("%w", err)
		case lo > section || uint64(size) > section-lo:
			c.fail("%w: %d bytes of data at offset %d exceed the data section of %d bytes (truncated download?)", ErrFormat, size, lo, section)
		default:
			t.put(f.source, int64(start+lo))
		}
	}
	for k := 1; k < len(order) && c.err == nil; k++ {
		a, b := order[k-1], order[k]
		if offsets[a]+uint64(f.Tensors[a].Bytes()) > offsets[b] {
			c.what = fmt.Sprintf("tensor %q", f.Tensors[b].Name)
			c.fail("%w: its data overlaps that of tensor %q", ErrFormat, f.Tensors[a].Name)
		}
	}
}

// extent is the part of the data section that is a tensor's alone: up to the
// next tensor or, where last is set, to the end of the section and its padding.
type extent struct {
	lo, hi uint64
	last   bool
}

// divide lists tensors by their offset, and the extent of each.
func divide(offsets []uint64, end uint64) (order []int, extents []extent) {
	order, extents = make([]int, len(offsets)), make([]extent, len(offsets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(offsets[a], offsets[b]) })
	for k, i := range order {
		extents[i] = extent{offsets[i], max(offsets[i], end), true}
		if k+1 < len(order) {
			extents[i] = extent{offsets[i], offsets[order[k+1]], false}
		}
	}
	return order, extents
}

// alignment is what general.alignment says of the data section.
func (m Metadata) alignment() (int, error) {
	const key = keyAlignment
	v, set := m[key]
	if !set {
		return defaultAlignment, nil
	}
	n, ok := m.Uint(key)
	if !ok || n == 0 || n&(n-1) != 0 || n > maxAlignment {
		return 0, fmt.Errorf("key %q: %w: %v is not a power of two up to %d", key, ErrFormat, v, maxAlignment)
	}
	return int(n), nil
}
