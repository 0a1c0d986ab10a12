package quantize

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models/gguf"
)

// ErrValue reports weights or importances that have no quantised form: infinite, NaN, or
// beyond what the scales of a type hold.
var ErrValue = errors.New("value out of range")

// encoders are the types whose scales are searched for. weighted takes the importances of a
// row's columns, plain takes none; nil: gguf.Quantize rounds to the nearest, and importances
// change nothing.
var encoders = map[gguf.Type]struct {
	plain, weighted func(dst []byte, rows, columns []float32)
}{
	gguf.Q4_0:   {nil, encodeQ4_0},
	gguf.Q4_1:   {nil, encodeQ4_1},
	gguf.Q5_0:   {nil, encodeQ5_0},
	gguf.Q5_1:   {nil, encodeQ5_1},
	gguf.Q4_K:   {q4K.encode, q4K.encode},
	gguf.Q5_K:   {q5K.encode, q5K.encode},
	gguf.Q6_K:   {encodeQ6K, encodeQ6K},
	gguf.IQ4_NL: {encodeIQ4NL, encodeIQ4NL},
	gguf.IQ4_XS: {encodeIQ4XS, encodeIQ4XS},
	gguf.Q2_0:   {encodePairs(gguf.Q2_0), encodePairs(gguf.Q2_0)},
	gguf.PQ2_0:  {encodePairs(gguf.PQ2_0), encodePairs(gguf.PQ2_0)},
}

// Encode sets dst to rows as blocks of t, of gguf.Type.Size bytes. They are the bytes that ggml_quantize_chunk of ggml-quants.c
// writes, with two exceptions. ggml lacks I2_S, whose scale is the largest magnitude of rows. The scales of Q2_0 and PQ2_0 are
// searched for if rows are not ternary; ggml's are not.
//
// columns are the importances of the columns, a row long and not negative, which weigh errors; nil: each type's own method.
// Errors are ErrValue, and gguf.Quantize's. Any number of goroutines may call it.
func Encode(t gguf.Type, dst []byte, rows, columns []float32) error {
	if columns != nil && (len(columns) == 0 || len(rows)%len(columns) != 0) {
		return fmt.Errorf("quantize: %d values are no whole rows of %d importances", len(rows), len(columns))
	}
	if t == gguf.I2_S {
		if err := finite(rows); err != nil {
			return err
		}
		return encodeI2S(dst, rows, abs(largest(rows)))
	}
	e := encoders[t]
	encode := e.plain
	if columns != nil {
		encode = e.weighted
	}
	if encode == nil {
		if t == gguf.F32 || t == gguf.F16 || t == gguf.BF16 {
			if err := finite(rows); err != nil {
				return err
			}
		}
		if err := gguf.Quantize(t, dst, rows); err != nil {
			return err
		}
		return fits(t, dst, len(rows))
	}
	if size, err := t.Size([]int{max(1, len(rows))}); err != nil || len(rows) > 0 && size != len(dst) {
		return fmt.Errorf("quantize: %d values do not take %d bytes of %v", len(rows), len(dst), t)
	}
	if columns != nil {
		if len(columns)%t.BlockLen() != 0 {
			return fmt.Errorf("quantize: rows of %d are no whole blocks of %v", len(columns), t)
		}
		for i, v := range columns {
			if !(v >= 0) || math.IsInf(float64(v), 1) {
				return fmt.Errorf("quantize: %w: the importance of column %d is %v", ErrValue, i, v)
			}
		}
	}
	if err := finite(rows); err != nil {
		return err
	}
	if abs(largest(rows)) > mostFitted {
		return tooLarge(t)
	}
	encode(dst, rows, columns)
	return fits(t, dst, len(rows))
}

// mostFitted bounds weights whose cubes are summed: far beyond what 16-bit scales hold.
const mostFitted = 1 << 36

func tooLarge(t gguf.Type) error {
	return fmt.Errorf("quantize: %w: weights are too large for the 16-bit numbers of %v", ErrValue, t)
}

// Writes reports whether Encode writes t.
func Writes(t gguf.Type) bool {
	_, searched := encoders[t]
	return searched || t == gguf.I2_S || gguf.Quantize(t, make([]byte, t.BlockBytes()), make([]float32, t.BlockLen())) == nil
}

// Types lists the names of the types that Encode writes.
func Types() (names []string) {
	for t := gguf.Type(0); t < 256; t++ {
		if t.BlockLen() > 0 && Writes(t) {
			names = append(names, t.String())
		}
	}
	return names
}

// finite reports ErrValue for the first value that is infinite or NaN.
func finite(x []float32) error {
	if i := notFinite(x); i >= 0 {
		return fmt.Errorf("quantize: %w: value %d is %v", ErrValue, i, x[i])
	}
	return nil
}

// notFinite returns the index of the first value that is infinite or NaN, -1 if there is none.
func notFinite(x []float32) int {
	return slices.IndexFunc(x, func(v float32) bool { return v-v != 0 })
}

// fits reports ErrValue where numbers in blocks are infinite that were not before.
func fits(t gguf.Type, blocks []byte, n int) error {
	if n == 0 {
		return nil
	}
	held := gguf.Tensor{Type: t, Dims: []int{n}, Data: blocks}
	if _, ok := held.Finite(0, 1); !ok {
		return tooLarge(t)
	}
	return nil
}
