package matrices

import (
	"fmt"

	"github.com/lutra-lm/lutra/kernels/dense"
	"github.com/lutra-lm/lutra/kernels/grouped"
	"github.com/lutra-lm/lutra/kernels/matrix"
	"github.com/lutra-lm/lutra/kernels/meter"
	"github.com/lutra-lm/lutra/kernels/ternary"
)

// Row sets dst[Cols] to row r of m, of any packing, dequantised exactly as the
// storage format defines it.
func Row(dst []float32, m *matrix.Matrix, r int) {
	if r < 0 || r >= m.Rows || len(dst) < m.Cols {
		panic(fmt.Sprintf("matrices: row %d of a %dx%d matrix into %d values", r, m.Rows, m.Cols, len(dst)))
	}
	dst = dst[:m.Cols]
	switch m.Packing.Kind() {
	case meter.Ternary:
		ternary.Row(dst, m, r)
	case meter.Grouped:
		grouped.Row(dst, m, r)
	default:
		dense.Row(dst, m, r)
	}
	if o := m.Offsets; o != nil {
		offsets := make([]float32, o.Cols)
		dense.Row(offsets, o, r)
		for k := range dst {
			dst[k] += offsets[k/(m.Cols/o.Cols)]
		}
	}
}
