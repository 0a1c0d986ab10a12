package models

import (
	"errors"

	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/load"
)

// ErrModel says that a file is a well-formed GGUF but no model this package
// can run. What is wrapped around it names the key or tensor.
var ErrModel = errors.New("models: cannot run this model")

// LoadOptions says what a model runs on, and how.
type LoadOptions struct {
	Pool    *pool.Pool      // threads of the model graph; required
	Backend kernels.Backend // where matrices and, if it is an Accelerator, attention and experts go first; nil: the CPU
	Spare   bool            // the CPU takes over from a backend that has failed
	Packing string          // run-time packing of ternary matrices: one of weights.Packings; "": PackingAuto
	Context int             // tokens that a sequence may have at most, no more than the model was made for; 0: as many
	Exact   bool            // widen all weights to float32 and keep float32 activations: slow, for reference with a kv.F32 cache

	// ExpertMemory is the number of bytes that the experts of mixtures may take. If they need more, they stay
	// in the file, each is packed when it is first needed, and the least used ones give way. Answers are the
	// same, bit for bit. 0 means the rest of WeightMemory after the other weights, or if that is 0 too, no bound.
	ExpertMemory, WeightMemory int64

	// Metadata replaces, key by key, what the file says of itself.
	Metadata gguf.Metadata

	// Progress, if any, is told how many bytes of the tensors have been read, of
	// how many, now and then while the file loads, by the loading goroutine.
	Progress func(done, total int64)

	// Interrupt, if any, is asked now and then while the file loads, by the same goroutine. Its error ends the
	// loading, and Load's wraps it.
	Interrupt func() error

	// Routed, if any, sees in each step and layer which experts the rows of the batch
	// chose, [rows][Config.ExpertsUsed], the best first, and with what weights. It must
	// not change or keep them.
	Routed func(layer int, experts []int32, weights []float32)

	// Observe, if any, sees the rows before each product with matrices of the file. Products of experts call it at
	// the same time. It is for the CPU alone.
	Observe func(of []MatrixPart, rows *kernels.Acts)
}

// MatrixPart is a matrix of the file, or rows of one.
type MatrixPart = load.Part
