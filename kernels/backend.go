package kernels

import "github.com/lutra-lm/lutra/kernels/matrix"

// Backend turns packed matrices into operators on one device.
type Backend interface {
	Name() string
	// Load prepares w for multiplication. ErrUnsupported sends the matrix to the CPU.
	Load(w *matrix.Matrix) (Linear, error)
	// Err is the first device fault, after which results are not to be trusted.
	Err() error
	Close() error
}

// Linear is a weight matrix ready to multiply.
type Linear interface {
	// Mul sets y[n][Rows] to x[n][Cols] · Wᵀ for all x.N() rows. y must not
	// alias x. It allocates nothing once x has reached its largest size. Calls
	// may run at the same time for x that are pinned to different workers.
	Mul(y []float32, x *Acts)
}
