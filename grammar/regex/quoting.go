package regex

// Quoting says how characters are written.
type Quoting bool

// The ways to write them.
const (
	Raw  Quoting = false // UTF-8
	JSON Quoting = true  // within a JSON string: in one way each, only those escaped that must be
)
