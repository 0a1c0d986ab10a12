package gguf

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/lutra-lm/lutra/models/disk"
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
	f, err := parse(disk.InMemory(data), nil)
	if err != nil {
		return nil, err
	}
	if n := f.parts(); n > 1 {
		return nil, fmt.Errorf("gguf: %w: this is one of %d parts, which are found as files alone", ErrUnsupported, n)
	}
	return f, nil
}

// parse reads a file, or a part of the model that first begins.
func parse(s *disk.Source, first *File) (*File, error) {
	c := newCursor(s)
	f := &File{Metadata: Metadata{}, files: []*disk.Source{s}, first: first}
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
		if !t.Type.numbered() {
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

// place gives every tensor its part of the data section. Tensors lie there in the order of the directory,
// each after the one before and its padding, as llama.cpp demands. A place of another size belongs to
// another type or shape than the entry says.
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
	f.settle(c, extents(offsets, (section+align-1)&^(align-1)), align)
	want := uint64(0)
	for i := 0; i < len(f.Tensors) && c.err == nil; i++ {
		t, lo := &f.Tensors[i], offsets[i]
		c.what = fmt.Sprintf("tensor %q", t.Name)
		switch size, err := t.Type.Size(t.Dims); {
		case err != nil:
			c.fail("%w", err)
		case lo%align != 0:
			c.fail("%w: data offset %d is not a multiple of the alignment %d", ErrFormat, lo, align)
		case lo != want && i == 0:
			c.fail("%w: data offset %d of the first tensor, want 0", ErrFormat, lo)
		case lo != want:
			before := &f.Tensors[i-1]
			c.fail("%w: data offset %d, want %d: tensor %q before it takes %d bytes as %v", ErrFormat, lo, want, before.Name, before.Bytes(), before.Type)
		case lo > section || uint64(size) > section-lo:
			c.fail("%w: %d bytes of data at offset %d exceed the data section of %d bytes (truncated download?)", ErrFormat, size, lo, section)
		default:
			t.put(f.files[0], int64(start+lo))
			want = (lo + uint64(size) + align - 1) &^ (align - 1) // size is within the section, so this is no overflow
		}
	}
	if c.err == nil && len(f.Tensors) > 0 {
		f.checkBehind(c, start+want, start+section)
	}
}

// checkBehind fails where something lies after the last tensor, which c names: its place
// is larger than its type and shape, or the data of another one follows. Zeros may follow,
// as some programs allocate files ahead.
func (f *File) checkBehind(c *cursor, lo, hi uint64) {
	if lo >= hi {
		return
	}
	b := make([]byte, min(hi-lo, readAhead))
	if err := f.files[0].Read(b, int64(lo)); err != nil {
		c.fail("%w", err)
	} else if slices.ContainsFunc(b, func(x byte) bool { return x != 0 }) {
		last := &f.Tensors[len(f.Tensors)-1]
		c.fail("%w: it takes %d bytes as %v, and %d more follow", ErrFormat, last.Bytes(), last.Type, hi-lo)
	}
}

// extent is the part of the data section that is a tensor's alone, up to the next tensor. If last is set,
// it reaches to the end of the section and its padding.
type extent struct {
	lo, hi uint64
	last   bool
}

// extents gives the extent of each tensor, by their offsets and the end of all; an empty
// one to a tensor whose next lies before it.
func extents(offsets []uint64, end uint64) []extent {
	all := make([]extent, len(offsets))
	for i, lo := range offsets {
		next, last := end, i+1 == len(offsets)
		if !last {
			next = offsets[i+1]
		}
		all[i] = extent{lo, max(lo, next), last}
	}
	return all
}

// alignment returns what general.alignment says of the data section.
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
