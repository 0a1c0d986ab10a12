package kv

import (
	"fmt"
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// Type is the number format of cached keys and values.
type Type uint8

// The KV formats.
const (
	F16  Type = iota // IEEE half
	Int8             // int8 with one float32 scale a head and token
	F32              // single precision, for reference runs
)

var typeNames = [...]string{"f16", "int8", "f32"}

// String gives the name used in the configuration.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// ParseType reads "f16", "int8" or "f32".
func ParseType(name string) (Type, error) {
	for i, n := range typeNames {
		if n == name {
			return Type(i), nil
		}
	}
	return 0, fmt.Errorf("kv: unknown type %q (have %v)", name, typeNames)
}

// Shape describes a model to a cache: the layers with keys and values, their KV heads, the elements of a head, and the
// numbers of a sequence's recurrent state in all layers. A model with a state may have no such layers.
type Shape struct {
	Layers, Heads, HeadDim, State int
	Others                        Others
}

// Others are further layers, numbered after the others of a Shape, that have heads of
// another number or width. Zero: there are none.
type Others struct{ Layers, Heads, HeadDim int }

// of returns the KV heads of a layer, and the elements of each.
func (s *Shape) of(layer int) (heads, dim int) {
	if layer < s.Layers {
		return s.Heads, s.HeadDim
	}
	return s.Others.Heads, s.Others.HeadDim
}

// Options sizes a cache.
type Options struct {
	Type     Type
	BlockLen int  // tokens a block
	Blocks   int  // blocks in the pool
	States   int  // recurrent states in the pool, for models that have them
	Cold     bool // Open finds nothing, so that every prompt is computed
}

// maxBytes bounds a pool: nothing sane reaches it, and sizes below it do not overflow.
const maxBytes = 1 << 46

// maxState bounds the numbers of a recurrent state.
const maxState = 1 << 30

// BytesPerBlock returns the memory that one block takes: keys and values of all
// layers with their scales, and what the cache and a sequence note of it.
func BytesPerBlock(shape Shape, opt Options) int64 {
	o := &shape.Others
	return 2*int64(shape.Layers)*arrayBytes(shape.Heads, shape.HeadDim, opt) + 2*int64(o.Layers)*arrayBytes(o.Heads, o.HeadDim, opt) + noteBytes + 4*int64(opt.BlockLen)
}

// noteBytes is the size of a block's records besides its tokens. These are a block, and places in the list of free blocks,
// in the index (half of whose table may be empty) and in its sequence.
const noteBytes = int64(unsafe.Sizeof(block{})) + 4 + 40 + 4

// arrayBytes returns the memory of the keys, or the values, of a block in one layer of
// heads of dim elements.
func arrayBytes(heads, dim int, opt Options) int64 {
	vec := int64(dim)
	switch opt.Type {
	case F16:
		vec *= 2
	case Int8:
		vec += 4
	case F32:
		vec *= 4
	}
	return vec * int64(wholeGroups(opt.BlockLen)) * int64(heads)
}

// wholeGroups rounds n keys up to groups.
func wholeGroups(n int) int { return cpu.RoundUp(n, attention.KeyGroup) }
