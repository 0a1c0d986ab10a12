package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// valueType numbers the kinds of metadata values (gguf_metadata_value_type).
type valueType uint32

const (
	typeUint8 valueType = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// valueBytes is the stored size of a scalar, or the fewest bytes of a string
// (its length) and of an array (element type and count).
var valueBytes = [...]int{
	typeUint8: 1, typeInt8: 1, typeUint16: 2, typeInt16: 2, typeUint32: 4, typeInt32: 4, typeFloat32: 4,
	typeBool: 1, typeString: 8, typeArray: 12, typeUint64: 8, typeInt64: 8, typeFloat64: 8,
}

// value reads a value of type t, depth arrays deep.
func (c *cursor) value(t valueType, depth int) any {
	if c.err != nil {
		return nil
	}
	if int(t) >= len(valueBytes) {
		c.fail("%w: unknown value type %d", ErrFormat, t)
		return nil
	}
	switch t {
	case typeString:
		return c.str(math.MaxInt)
	case typeArray:
		return c.array(depth + 1)
	}
	b := c.take(valueBytes[t])
	if c.err != nil {
		return nil
	}
	le := binary.LittleEndian
	switch t {
	case typeUint8:
		return b[0]
	case typeInt8:
		return int8(b[0])
	case typeUint16:
		return le.Uint16(b)
	case typeInt16:
		return int16(le.Uint16(b))
	case typeUint32:
		return le.Uint32(b)
	case typeInt32:
		return int32(le.Uint32(b))
	case typeFloat32:
		return math.Float32frombits(le.Uint32(b))
	case typeUint64:
		return le.Uint64(b)
	case typeInt64:
		return int64(le.Uint64(b))
	case typeFloat64:
		return math.Float64frombits(le.Uint64(b))
	}
	if b[0] > 1 { // typeBool
		c.fail("%w: a boolean is stored as %d", ErrFormat, b[0])
	}
	return b[0] == 1
}

// array reads an array into a slice of its element type.
func (c *cursor) array(depth int) any {
	if depth > maxArrayDepth {
		c.fail("%w: arrays nest deeper than %d", ErrFormat, maxArrayDepth)
		return nil
	}
	t := valueType(c.u32())
	if c.err == nil && int(t) >= len(valueBytes) {
		c.fail("%w: unknown element type %d", ErrFormat, t)
	}
	if c.err != nil {
		return nil
	}
	n := c.count("elements", valueBytes[t])
	switch t {
	case typeUint8:
		return elements[uint8](c, t, n, depth)
	case typeInt8:
		return elements[int8](c, t, n, depth)
	case typeUint16:
		return elements[uint16](c, t, n, depth)
	case typeInt16:
		return elements[int16](c, t, n, depth)
	case typeUint32:
		return elements[uint32](c, t, n, depth)
	case typeInt32:
		return elements[int32](c, t, n, depth)
	case typeFloat32:
		return elements[float32](c, t, n, depth)
	case typeBool:
		return elements[bool](c, t, n, depth)
	case typeString:
		return elements[string](c, t, n, depth)
	case typeUint64:
		return elements[uint64](c, t, n, depth)
	case typeInt64:
		return elements[int64](c, t, n, depth)
	case typeFloat64:
		return elements[float64](c, t, n, depth)
	}
	return elements[any](c, t, n, depth)
}

// elements reads n values of type t, which cursor.value returns as T. n is
// already known to fit the rest of the file.
func elements[T any](c *cursor, t valueType, n, depth int) []T {
	out := make([]T, n)
	for i := range out {
		v, ok := c.value(t, depth).(T)
		if c.err != nil {
			return nil
		}
		if !ok {
			panic(fmt.Sprintf("gguf: value type %d does not decode to %T", t, v))
		}
		out[i] = v
	}
	return out
}
