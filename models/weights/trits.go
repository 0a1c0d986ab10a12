package weights

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/internal/parallel"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/ternary"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// pairBuffers recycles the codes of one matrix to the next, so that loading a model
// leaves little garbage behind.
var pairBuffers sync.Pool

// packTernary packs factor × t as trits, or returns nil when some row is not
// scale × {-1, 0, 1}. The first row of other weights shows what they are.
func packTernary(t *gguf.Tensor, factor float32, p matrix.Packing) (*matrix.Matrix, error) {
	rows, cols := t.Rows(), t.Cols()
	stride := ternary.PairBytes(cols)
	if _, ok, err := tensorPairs(t, 0, make([]byte, stride), make([]float32, cols)); !ok || err != nil {
		return nil, err
	}
	buf, _ := pairBuffers.Get().(*[]byte)
	if buf == nil || cap(*buf) < rows*stride {
		buf = new(make([]byte, rows*stride))
	}
	defer pairBuffers.Put(buf)
	pairs, scale := (*buf)[:rows*stride], make([]float32, rows)
	var other atomic.Bool
	parallel.Ranges(rows, func(lo, hi int) {
		values := make([]float32, cols)
		for r := lo; r < hi && !other.Load(); r++ {
			s, ok, err := tensorPairs(t, r, pairs[r*stride:(r+1)*stride], values)
			if !ok || err != nil {
				other.Store(true)
			}
			scale[r] = s
		}
	})
	if other.Load() {
		return nil, nil
	}
	vector.ScaleInto(scale, factor)
	if slices.ContainsFunc(scale, func(s float32) bool { return s-s != 0 }) {
		return nil, fmt.Errorf("a scale times %v is infinite", factor)
	}
	return ternary.PackPairs(rows, cols, pairs, sharedScale(scale), p)
}

// tensorPairs splits row r of t into a scale and codes as ternary.PackPairs takes them,
// and reports false when it is not ternary. values is scratch for a row.
func tensorPairs(t *gguf.Tensor, r int, pairs []byte, values []float32) (scale float32, ok bool, err error) {
	if scale, ok = t.Pairs(pairs, r); ok && ternary.ArePairs(pairs) {
		return scale, true, nil
	}
	if err = t.Dequantize(values, r*len(values)); err == nil {
		scale, ok = rowPairs(pairs, values)
	}
	return scale, ok, err
}

// rowPairs splits a row into codes and their scale, 0 for a row of zeros. It reports
// false when a value is not finite or of a second magnitude. Trits are as good as
// random, so the loops have no branches to mispredict.
func rowPairs(pairs []byte, values []float32) (scale float32, ok bool) {
	const sign, inf = 1 << 31, 0x7f800000
	magnitude := uint32(0)
	for _, v := range values {
		if magnitude = math.Float32bits(v) &^ sign; magnitude != 0 {
			break
		}
	}
	other := uint32(0)
	// code returns v's code, 1 above its sign. It notes another magnitude.
	code := func(v float32) uint32 {
		b := math.Float32bits(v)
		m := b &^ sign
		some := -m >> 31 // 1 unless m is 0
		other |= (m ^ magnitude) & -some
		return 1 + some - b>>31&some<<1
	}
	whole := len(values) / 4
	for i := range whole {
		v := values[4*i:][:4]
		pairs[i] = byte(code(v[0]) | code(v[1])<<2 | code(v[2])<<4 | code(v[3])<<6)
	}
	if whole < len(pairs) {
		last := uint32(0)
		for k, v := range values[4*whole:] {
			last |= code(v) << (2 * k)
		}
		pairs[whole] = byte(last)
	}
	return math.Float32frombits(magnitude), other == 0 && magnitude < inf
}

// sharedScale returns a single scale where all rows have the same one (rows of
// zeros take any).
func sharedScale(scale []float32) []float32 {
	shared := float32(0)
	for _, s := range scale {
		if s == 0 || s == shared {
			continue
		}
		if shared != 0 {
			return scale
		}
		shared = s
	}
	return []float32{shared}
}
