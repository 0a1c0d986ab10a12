package weights

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/ternary"
	"github.com/lutra-lm/lutra/kernels/vector"
	"github.com/lutra-lm/lutra/models/gguf"
)

// tritBuffers recycles the unpacked trits of one matrix to the next, so that
// loading a model leaves little garbage behind.
var tritBuffers sync.Pool

// packTernary packs factor × t as trits, or returns nil when some row is not
// scale × {-1, 0, 1}. The first row of other weights shows what they are.
func packTernary(t *gguf.Tensor, factor float32, p matrix.Packing) (*matrix.Matrix, error) {
	rows, cols := t.Rows(), t.Cols()
	values := make([]float32, cols)
	if err := t.Dequantize(values, 0); err != nil {
		return nil, err
	}
	if _, ok := rowTrits(make([]int8, cols), values); !ok {
		return nil, nil
	}
	buf, _ := tritBuffers.Get().(*[]int8)
	if buf == nil || cap(*buf) < rows*cols {
		buf = new(make([]int8, rows*cols))
	}
	defer tritBuffers.Put(buf)
	trits, scale := (*buf)[:rows*cols], make([]float32, rows)
	var other atomic.Bool
	inParallel(rows, func(lo, hi int) {
		values := make([]float32, cols)
		for r := lo; r < hi && !other.Load(); r++ {
			s, ok := tensorTrits(t, r, trits[r*cols:(r+1)*cols], values)
			if !ok {
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
	return ternary.Pack(rows, cols, trits, sharedScale(scale), p)
}

// tensorTrits splits row r of t into trits and their scale, and reports false
// when it is not ternary. values is scratch for a row.
func tensorTrits(t *gguf.Tensor, r int, trits []int8, values []float32) (scale float32, ok bool) {
	if t.Type == gguf.TQ1_0 || t.Type == gguf.TQ2_0 {
		if scale, ok = blockTrits(t, r, trits); ok {
			return scale, true
		}
	}
	if err := t.Dequantize(values, r*len(values)); err != nil {
		return 0, false
	}
	return rowTrits(trits, values)
}

// blockTrits reads a row of a ternary type whose blocks have one scale: the
// short way, without a value for each weight.
func blockTrits(t *gguf.Tensor, r int, trits []int8) (scale float32, ok bool) {
	blocks := len(trits) / 256
	for i := range blocks {
		d, ternary := t.Codes((*[256]int8)(trits[i*256:]), r*blocks+i)
		if !ternary || d-d != 0 || i > 0 && d != scale {
			return 0, false
		}
		scale = d
	}
	return scale, true
}

// rowTrits splits a row into trits and their scale, 0 for a row of zeros. It
// reports false when a value is not finite or of a second magnitude. Trits are
// as good as random, so the loop has no branches to mispredict.
func rowTrits(trits []int8, values []float32) (scale float32, ok bool) {
	const sign, inf = 1 << 31, 0x7f800000
	magnitude := uint32(0)
	for _, v := range values {
		if magnitude = math.Float32bits(v) &^ sign; magnitude != 0 {
			break
		}
	}
	other := uint32(0)
	trits = trits[:len(values)]
	for i, v := range values {
		b := math.Float32bits(v)
		m := b &^ sign
		some := -m >> 31 // 1 unless m is 0
		other |= (m ^ magnitude) & -some
		trits[i] = int8(some) - int8(b>>31&some)<<1
	}
	return math.Float32frombits(magnitude), other == 0 && magnitude < inf
}

// sharedScale is a single scale where all rows have the same one (rows of
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
