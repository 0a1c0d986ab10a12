package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// encoder builds the header in memory.
type encoder struct{ buf []byte }

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }
func (e *encoder) u8(v uint8)   { e.buf = append(e.buf, v) }
func (e *encoder) u16(v uint16) { e.buf = binary.LittleEndian.AppendUint16(e.buf, v) }
func (e *encoder) u32(v uint32) { e.buf = binary.LittleEndian.AppendUint32(e.buf, v) }
func (e *encoder) u64(v uint64) { e.buf = binary.LittleEndian.AppendUint64(e.buf, v) }

func (e *encoder) str(s string) {
	e.u64(uint64(len(s)))
	e.raw(s)
}

func (e *encoder) pad(align int) []byte {
	return append(e.buf, make([]byte, padding(len(e.buf), align))...)
}

func (e *encoder) pair(key string, v any) error {
	if key == "" || len(key) > maxKeyLen {
		return fmt.Errorf("%w: a key of %d bytes", ErrFormat, len(key))
	}
	t, ok := kindOf(v)
	if !ok {
		return fmt.Errorf("%w: no value type for %T", ErrFormat, v)
	}
	e.str(key)
	e.u32(uint32(t))
	return e.value(v, 0)
}

// value writes v, depth arrays deep, without its type.
func (e *encoder) value(v any, depth int) error {
	switch v := v.(type) {
	case bool:
		e.u8(0)
		if v {
			e.buf[len(e.buf)-1] = 1
		}
	case string:
		e.str(v)
	case uint8:
		e.u8(v)
	case int8:
		e.u8(uint8(v))
	case uint16:
		e.u16(v)
	case int16:
		e.u16(uint16(v))
	case uint32:
		e.u32(v)
	case int32:
		e.u32(uint32(v))
	case float32:
		e.u32(math.Float32bits(v))
	case uint64:
		e.u64(v)
	case int64:
		e.u64(uint64(v))
	case float64:
		e.u64(math.Float64bits(v))
	default:
		return e.array(v, depth+1)
	}
	return nil
}

// array writes a slice: its element type, its length, its elements.
func (e *encoder) array(v any, depth int) error {
	if depth > maxArrayDepth {
		return fmt.Errorf("%w: arrays nest deeper than %d", ErrFormat, maxArrayDepth)
	}
	switch v := v.(type) {
	case []bool:
		return encode(e, typeBool, v, depth)
	case []string:
		return encode(e, typeString, v, depth)
	case []uint8:
		return encode(e, typeUint8, v, depth)
	case []int8:
		return encode(e, typeInt8, v, depth)
	case []uint16:
		return encode(e, typeUint16, v, depth)
	case []int16:
		return encode(e, typeInt16, v, depth)
	case []uint32:
		return encode(e, typeUint32, v, depth)
	case []int32:
		return encode(e, typeInt32, v, depth)
	case []float32:
		return encode(e, typeFloat32, v, depth)
	case []uint64:
		return encode(e, typeUint64, v, depth)
	case []int64:
		return encode(e, typeInt64, v, depth)
	case []float64:
		return encode(e, typeFloat64, v, depth)
	case []any:
		for _, x := range v {
			if t, ok := kindOf(x); !ok || t != typeArray {
				return fmt.Errorf("%w: an array of arrays holds a %T", ErrFormat, x)
			}
		}
		return encode(e, typeArray, v, depth)
	}
	return fmt.Errorf("%w: no value type for %T", ErrFormat, v)
}

func encode[T any](e *encoder, t valueType, v []T, depth int) error {
	e.u32(uint32(t))
	e.u64(uint64(len(v)))
	for _, x := range v {
		if err := e.value(x, depth); err != nil {
			return err
		}
	}
	return nil
}

// kindOf returns the value type that a Go value is stored as.
func kindOf(v any) (valueType, bool) {
	switch v.(type) {
	case uint8:
		return typeUint8, true
	case int8:
		return typeInt8, true
	case uint16:
		return typeUint16, true
	case int16:
		return typeInt16, true
	case uint32:
		return typeUint32, true
	case int32:
		return typeInt32, true
	case float32:
		return typeFloat32, true
	case bool:
		return typeBool, true
	case string:
		return typeString, true
	case uint64:
		return typeUint64, true
	case int64:
		return typeInt64, true
	case float64:
		return typeFloat64, true
	case []bool, []string, []uint8, []int8, []uint16, []int16, []uint32, []int32, []float32, []uint64, []int64, []float64, []any:
		return typeArray, true
	}
	return 0, false
}
