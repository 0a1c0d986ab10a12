package kv

import (
	"errors"

	"github.com/lutra-lm/lutra/kernels/attention"
	"github.com/lutra-lm/lutra/kernels/cpu"
	"github.com/lutra-lm/lutra/kernels/vector"
)

// vectors are the keys or the values of a layer, in one format: the others' are nil.
type vectors struct {
	f16    []uint16
	f32    []float32
	int8   []int8
	scale  []float32 // Int8: [Blocks][KVHeads][8·⌈BlockLen/8⌉]
	int4   []byte
	scale4 []uint16
}

// reserve makes room in a for n vectors of dim elements.
func (x *vectors) reserve(a *cpu.Arena, format Type, n, dim int) error {
	switch format {
	case Int8:
		return errors.Join(room(a, &x.int8, n*dim), room(a, &x.scale, n))
	case Int4:
		return errors.Join(room(a, &x.int4, n*dim/2), room(a, &x.scale4, n*dim/attention.PartQ4))
	case F32:
		return room(a, &x.f32, n*dim)
	}
	return room(a, &x.f16, n*dim)
}

// room makes n elements.
func room[T int8 | uint8 | uint16 | int32 | float32](a *cpu.Arena, s *[]T, n int) (err error) {
	*s, err = cpu.Array[T](a, n)
	return err
}

// storeKey writes key j, which is number in of its group.
func (x *vectors) storeKey(j, in int, key []float32) {
	d := len(key)
	group := (j - in) * d
	switch {
	case x.f16 != nil:
		attention.StoreKeyF16(x.f16[group:], in, key)
	case x.int8 != nil:
		x.scale[j] = attention.StoreKeyQ8(x.int8[group:], in, key)
	case x.int4 != nil:
		var turned [rotation]float32
		for at, n := 0, rotationOf(d); at < d; at += n {
			part := group + at*attention.KeyGroup
			attention.StoreKeyQ4(x.int4[part/2:], x.scale4[part/attention.PartQ4:], in, rotated(&turned, key[at:at+n]))
		}
	default:
		copy(x.f32[j*d:], key)
	}
}

// storeValue writes value j.
func (x *vectors) storeValue(j int, value []float32) {
	d := len(value)
	switch {
	case x.f16 != nil:
		vector.F32ToF16(x.f16[j*d:(j+1)*d], value)
	case x.int8 != nil:
		x.scale[j] = attention.QuantizeQ8(x.int8[j*d:(j+1)*d], value)
	case x.int4 != nil:
		var turned [rotation]float32
		for at, n := 0, rotationOf(d); at < d; at += n {
			attention.StoreValueQ4(x.int4[(j*d+at)/2:], x.scale4[(j*d+at)/attention.PartQ4:], rotated(&turned, value[at:at+n]))
		}
	default:
		copy(x.f32[j*d:], value)
	}
}

// rotation bounds the elements that are rotated together.
const rotation = 256

// rotationOf returns how many elements of heads of d are rotated together: a power of two.
func rotationOf(d int) int { return min(rotation, d&-d) }

// rotated returns x, the elements of a rotation, rotated in turned.
func rotated(turned *[rotation]float32, x []float32) []float32 {
	y := turned[:copy(turned[:], x)]
	vector.Hadamard(y, len(y))
	return y
}

// window returns n vectors of dim elements from number first on, as if there were no others.
func (x *vectors) window(first, n, dim int) vectors {
	return vectors{
		f16: windowOf(x.f16, first, n, dim), f32: windowOf(x.f32, first, n, dim), int8: windowOf(x.int8, first, n, dim), scale: windowOf(x.scale, first, n, 1),
		int4: windowOf(x.int4, first, n, dim/2), scale4: windowOf(x.scale4, first, n, dim/attention.PartQ4),
	}
}

// windowOf returns n vectors of dim within s, which is nil when the format does not use it.
func windowOf[T any](s []T, first, n, dim int) []T {
	if s == nil {
		return nil
	}
	return s[first*dim : (first+n)*dim]
}

// copy copies n vectors of dim elements.
func (x *vectors) copy(to, from, n, dim int) {
	copyVectors(x.f16, to, from, n, dim)
	copyVectors(x.f32, to, from, n, dim)
	copyVectors(x.int8, to, from, n, dim)
	copyVectors(x.scale, to, from, n, 1)
	copyVectors(x.int4, to, from, n, dim/2)
	copyVectors(x.scale4, to, from, n, dim/attention.PartQ4)
}

// copyVectors copies n vectors of dim within s, which is nil when the format does not use it.
func copyVectors[T any](s []T, to, from, n, dim int) {
	if s != nil {
		copy(s[to*dim:(to+n)*dim], s[from*dim:(from+n)*dim])
	}
}

// commit has the system find memory for n vectors of dim from number first on.
func (x *vectors) commit(first, n, dim int) bool {
	return commitVectors(x.f16, first, n, dim) && commitVectors(x.f32, first, n, dim) &&
		commitVectors(x.int8, first, n, dim) && commitVectors(x.scale, first, n, 1) &&
		commitVectors(x.int4, first, n, dim/2) && commitVectors(x.scale4, first, n, dim/attention.PartQ4)
}

// commitVectors commits the memory of s, which is nil when the format does not use it.
func commitVectors[T int8 | uint8 | uint16 | float32](s []T, first, n, dim int) bool {
	return s == nil || cpu.Commit(s[first*dim:(first+n)*dim])
}
