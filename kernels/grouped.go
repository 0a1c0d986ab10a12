package kernels

import "fmt"

// newGrouped makes the operator of a Q4, Q6 or Q8 matrix.
func newGrouped(_ *CPU, w *Matrix) (Linear, error) {
	return nil, fmt.Errorf("%w: %v", ErrUnsupported, w.Packing)
}
