package models

// rotation is the transform of what a matrix reads.
type rotation struct {
	block int       // of the transform; 0: there is none
	signs []float32 // [width], or nil: all are one
}

// hadamard is what a file says of rotations.
type hadamard struct {
	block   int // 0: nothing
	signs   map[int][]float32
	forward map[string]bool // matrices; false: not asked for yet
	inverse map[string]bool // embeddings
	grouped bool
}
