package kv

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
)

// Type is the number format of cached keys, in the low half, and of values, in the high one.
type Type uint8

// The KV formats.
const (
	F16  Type = 0x11 * iota // IEEE half
	Int8                    // int8 with one float32 scale a head and token
	F32                     // single precision, for reference runs
	Int4                    // 4 bits with a float16 scale each 32 elements, which are rotated; see Layer
)

var typeNames = [...]string{"f16", "int8", "f32", "int4"}

// TypeOf returns the format of caches with keys and values of two.
func TypeOf(keys, values Type) Type { return keys&0x0f | values&0xf0 }

// Keys returns the format of the keys, as of both.
func (t Type) Keys() Type { return t & 0x0f * 0x11 }

// Values returns the format of the values, as of both.
func (t Type) Values() Type { return t >> 4 * 0x11 }

// known tells whether the format is one.
func (t Type) known() bool { return max(t&0x0f, t>>4) < Type(len(typeNames)) }

// String gives the name used in the configuration: "int8", or "int8/int4" of keys in 8 bits and values in 4.
func (t Type) String() string {
	switch {
	case !t.known():
		return fmt.Sprintf("Type(%d)", uint8(t))
	case t.Keys() == t.Values():
		return typeNames[t>>4]
	}
	return t.Keys().String() + "/" + t.Values().String()
}

// ParseType reads what String gives.
func ParseType(name string) (Type, error) {
	keys, values, pair := strings.Cut(name, "/")
	if !pair {
		values = keys
	}
	k, v := slices.Index(typeNames[:], keys), slices.Index(typeNames[:], values)
	if k < 0 || v < 0 {
		return 0, fmt.Errorf("kv: unknown type %q (have %v, and two of them as keys/values)", name, typeNames)
	}
	return TypeOf(Type(k), Type(v<<4)), nil
}

// Check tells whether the format can hold keys and values of shape.
func (t Type) Check(shape Shape) error {
	for _, dim := range []int{shape.HeadDim, shape.Others.HeadDim} {
		if (t.Keys() == Int4 || t.Values() == Int4) && dim%attention.PartQ4 != 0 {
			return fmt.Errorf("%v wants heads of a multiple of %d elements, and these have %d", t, attention.PartQ4, dim)
		}
	}
	return nil
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
	Type      Type
	BlockLen  int  // tokens a block
	Blocks    int  // blocks in the pool
	States    int  // recurrent states in the pool, for models that have them
	Residuals int  // blocks that can be written at once, of types with 4 bits; 0: all
	Cold      bool // Open finds nothing, so that every prompt is computed
}

// residuals returns how many blocks can be written at once; 0: the type needs no residuals.
func (o *Options) residuals() int {
	switch {
	case o.Type.narrow() == 0:
		return 0
	case o.Residuals == 0:
		return o.Blocks
	}
	return min(o.Residuals, o.Blocks)
}

// maxBytes bounds a pool: nothing sane reaches it, and sizes below it do not overflow.
const maxBytes = 1 << 46

// maxState bounds the numbers of a recurrent state.
const maxState = 1 << 30

// BytesPerBlock returns the memory that one block takes: keys and values of all
// layers with their scales, and what the cache and a sequence note of it.
func BytesPerBlock(shape Shape, opt Options) int64 {
	bytes := noteBytes + 4*int64(opt.BlockLen)
	for layer := range shape.Layers + shape.Others.Layers {
		bytes += layerBytes(shape, layer, opt)
	}
	return bytes
}

// noteBytes is the size of a block's records besides its tokens. These are a block, and places in the list of free blocks,
// in the index (half of whose table may be empty) and in its sequence.
const noteBytes = int64(unsafe.Sizeof(block{})) + 4 + 40 + 4

// layerBytes returns the memory of the keys and values of a block in a layer.
func layerBytes(shape Shape, layer int, opt Options) int64 {
	heads, dim := shape.of(layer)
	return (vectorBytes(opt.Type.Keys(), dim) + vectorBytes(opt.Type.Values(), dim)) * int64(wholeGroups(opt.BlockLen)) * int64(heads)
}

// vectorBytes returns the memory of a key or value of dim elements.
func vectorBytes(format Type, dim int) int64 {
	switch format {
	case Int8:
		return int64(dim) + 4
	case Int4:
		return int64(dim)/2 + int64(dim)/attention.PartQ4*2
	case F32:
		return 4 * int64(dim)
	}
	return 2 * int64(dim)
}

// wholeGroups rounds n keys up to groups.
func wholeGroups(n int) int { return cpu.RoundUp(n, attention.KeyGroup) }
