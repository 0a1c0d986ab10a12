package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/disk"
)

// ErrFormat says that a file is no well-formed safetensors file, or that an index and its files
// do not belong together.
var ErrFormat = errors.New("malformed safetensors")

// The bounds of a header. The reference refuses more than 100 MB; headers of the largest
// models have some 20.
const (
	maxHeader = 64 << 20 // bytes
	maxName   = 512      // bytes
	maxDims   = 8
)

// Tensor is an entry of a header, and where its data is.
type Tensor struct {
	Name  string
	DType string // as the file writes it: one of those that sizes has
	Shape []int  // slowest first; empty: a single number

	Source *disk.Source
	Offset int64 // of the first byte in Source
}

// sizes are the bytes of an element.
var sizes = map[string]int{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
	"U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}

// Len returns the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Bytes returns the size of the data.
func (t *Tensor) Bytes() int { return t.Len() * sizes[t.DType] }

// parse reads the header of a file, whose tensors it returns by their places.
func parse(s *disk.Source) ([]Tensor, error) {
	var head [8]byte
	if s.Size() < int64(len(head)) {
		return nil, fmt.Errorf("%w: %d bytes are too few for a header", ErrFormat, s.Size())
	}
	if err := s.Read(head[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if left := s.Size() - int64(len(head)); n > uint64(left) || n > maxHeader {
		return nil, fmt.Errorf("%w: a header of %d bytes, %d are left and at most %d are read", ErrFormat, n, left, maxHeader)
	}
	text := make([]byte, n)
	if err := s.Read(text, int64(len(head))); err != nil {
		return nil, err
	}
	begin := int64(len(head)) + int64(n)
	h := header{dec: json.NewDecoder(bytes.NewReader(text)), source: s, begin: begin, size: uint64(s.Size() - begin), seen: map[string]bool{}}
	if err := h.read(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(h.tensors, func(a, b Tensor) int {
		if a.Offset != b.Offset {
			return int(min(1, max(-1, a.Offset-b.Offset)))
		}
		return a.Bytes() - b.Bytes()
	})
	return h.tensors, h.check()
}

// header is one that is being read.
type header struct {
	dec     *json.Decoder
	source  *disk.Source
	begin   int64  // of the data in the file
	size    uint64 // of the data
	seen    map[string]bool
	tensors []Tensor
}

// read walks over the names: a name that occurs twice would stand for one of two tensors.
func (h *header) read() error {
	if t, err := h.dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%w: the header is no JSON object", ErrFormat)
	}
	for h.dec.More() {
		t, err := h.dec.Token()
		if err != nil {
			return fmt.Errorf("%w: header: %w", ErrFormat, err)
		}
		name, _ := t.(string) // keys are
		switch {
		case len(name) > maxName:
			return fmt.Errorf("%w: the name %q... has %d bytes, at most %d are allowed", ErrFormat, name[:64], len(name), maxName)
		case h.seen[name]:
			return fmt.Errorf("%w: tensor %q occurs twice", ErrFormat, name)
		}
		h.seen[name] = true
		if name == "__metadata__" {
			var about map[string]string
			if err := h.dec.Decode(&about); err != nil {
				return fmt.Errorf("%w: __metadata__: %w", ErrFormat, err)
			}
			continue
		}
		if err := h.entry(name); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
	}
	if _, err := h.dec.Token(); err != nil {
		return fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	if h.dec.More() {
		return fmt.Errorf("%w: something follows the header's object", ErrFormat)
	}
	return nil
}

// entry reads what a header says of a tensor.
func (h *header) entry(name string) error {
	var e struct {
		DType   string   `json:"dtype"`
		Shape   []uint64 `json:"shape"`
		Offsets []uint64 `json:"data_offsets"`
	}
	if err := h.dec.Decode(&e); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	each, known := sizes[e.DType]
	switch {
	case !known:
		return fmt.Errorf("%w: the dtype %.32q is not known", ErrFormat, e.DType)
	case len(e.Shape) > maxDims:
		return fmt.Errorf("%w: %d dimensions, at most %d are allowed", ErrFormat, len(e.Shape), maxDims)
	case len(e.Offsets) != 2:
		return fmt.Errorf("%w: data_offsets are not two", ErrFormat)
	}
	t := Tensor{Name: name, DType: e.DType, Shape: make([]int, len(e.Shape)), Source: h.source}
	want := uint64(each)
	for i, d := range e.Shape {
		over, n := bits.Mul64(want, d)
		if d == 0 || over != 0 || n > h.size {
			return fmt.Errorf("%w: the shape %v is empty, or more than the %d bytes of the file", ErrFormat, e.Shape, h.size)
		}
		want, t.Shape[i] = n, int(d)
	}
	lo, hi := e.Offsets[0], e.Offsets[1]
	if lo > hi || hi > h.size || hi-lo != want {
		return fmt.Errorf("%w: data_offsets %v, of %s with shape %v want %d bytes of %d", ErrFormat, e.Offsets, e.DType, e.Shape, want, h.size)
	}
	t.Offset = h.begin + int64(lo)
	h.tensors = append(h.tensors, t)
	return nil
}

// check holds the tensors, which are in order, against each other: none overlaps another, and
// nothing lies between them or behind.
func (h *header) check() error {
	at := h.begin
	for i := range h.tensors {
		t := &h.tensors[i]
		if t.Offset != at {
			return fmt.Errorf("tensor %q: %w: it begins at byte %d of the data, where the one before ends at %d", t.Name, ErrFormat, t.Offset-h.begin, at-h.begin)
		}
		at += int64(t.Bytes())
	}
	if end := h.begin + int64(h.size); at != end {
		return fmt.Errorf("%w: %d bytes of data belong to no tensor", ErrFormat, end-at)
	}
	return nil
}

// brief bounds what an error repeats of a name.
func brief(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "..."
	}
	return s
}
