package hexagon

import (
	"slices"

	"github.com/lutra-lm/lutra/hexagon/device"
	"github.com/lutra-lm/lutra/kernels"
)

// vectors are numbers of norms, scales and biases that the device gets when it starts.
type vectors []weights

type weights struct {
	at uint32
	x  []float32
}

// add has place put x, n numbers with zeros, into the memory; 0 for nil.
func (v *vectors) add(a *arena, x []float32, n int) uint32 {
	if x == nil {
		return 0
	}
	at := a.reserve(4 * n)
	*v = append(*v, weights{at, x})
	return at
}

// place puts them there.
func (v *vectors) place(mem []byte) {
	for _, w := range *v {
		copy(device.View[float32](mem, w.at, len(w.x)), w.x)
	}
	*v = nil
}

// stack is matrices that read the same rows, and whose outputs stand side by side.
type stack struct {
	parts []*linear
	r     []uint32 // the scales of their rows
	bias  []uint32 // 0: none
	col   []int    // where their outputs begin
	width int      // of all outputs, padding included
	most  int      // rows of a step that are multiplied by lookups, as many as the part of most outputs has; 0: none
}

// newStack takes matrices of cols columns, or returns nil.
func newStack(a *arena, v *vectors, cols int, of ...kernels.Linear) *stack {
	for _, x := range of {
		if l, ok := x.(*linear); !ok || l.Cols != cols {
			return nil
		}
	}
	if len(of) == 0 {
		return nil
	}
	s, widest := &stack{bias: make([]uint32, len(of))}, 0
	for _, x := range of {
		l := x.(*linear)
		s.parts, s.col = append(s.parts, l), append(s.col, s.width)
		s.width += l.M
		if l.M > widest { // whose tables serve the others
			s.most, widest = l.lookups, l.M
		}
		s.r = append(s.r, v.add(a, append(make([]float32, 0, l.M), l.R...), l.M))
	}
	if slices.ContainsFunc(s.parts, func(l *linear) bool { return l.lookups == 0 }) {
		s.most = 0
	}
	return s
}

// addBias gives the outputs theirs, one part after the other; nil: none.
func (s *stack) addBias(v *vectors, a *arena, x []float32) {
	for i, l := range s.parts {
		if x == nil {
			return
		}
		s.bias[i], x = v.add(a, x[:l.Rows], l.M), x[l.Rows:]
	}
}

// atOnce returns how many rows are multiplied at once by the path of room rows.
func (s *stack) atOnce(room int) int {
	if room > s.most {
		return tileRows
	}
	n := lookupRows
	for _, l := range s.parts {
		n = min(n, l.tableRows())
	}
	return n
}
