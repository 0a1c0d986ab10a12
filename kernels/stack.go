package kernels

import (
	"fmt"
	"slices"
)

// Stack puts matrices on top of one another: one product in place of several
// that read the same input. It copies; a row keeps its bits. It reports
// ErrUnsupported when they differ in packing or columns, or when another than
// the last ends within a strip of its packing.
func Stack(ms ...*Matrix) (*Matrix, error) {
	s := &Matrix{Cols: ms[0].Cols, Packing: ms[0].Packing}
	unit, size, shared := bandRows, 0, true
	if s.Packing.Ternary() {
		unit = stripRows
	}
	for i, m := range ms {
		if m.Packing != s.Packing || m.Cols != s.Cols || i+1 < len(ms) && m.Rows%unit != 0 {
			return nil, fmt.Errorf("%w: %v of %dx%d stacked with %v of %dx%d", ErrUnsupported, m.Packing, m.Rows, m.Cols, s.Packing, ms[0].Rows, s.Cols)
		}
		s.Rows += m.Rows
		size += len(m.Data)
		shared = shared && len(m.Scale) == 1 && m.Scale[0] == ms[0].Scale[0]
	}
	data := aligned[byte](size)[:0]
	for _, m := range ms {
		data = append(data, m.Data...)
		switch {
		case len(m.Scale) == m.Rows:
			s.Scale = append(s.Scale, m.Scale...)
		case len(m.Scale) == 1:
			s.Scale = append(s.Scale, slices.Repeat(m.Scale, m.Rows)...)
		}
	}
	if shared {
		s.Scale = s.Scale[:1]
	}
	s.Data = data
	return s, nil
}
