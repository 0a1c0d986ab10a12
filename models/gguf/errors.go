package gguf

import "errors"

// Errors of this package. What is wrapped around them names the key or tensor
// and the offset.
var (
	// ErrFormat says that the bytes are not a well-formed GGUF file.
	ErrFormat = errors.New("malformed GGUF")
	// ErrUnsupported says that the file is or may be well-formed, but of a kind
	// this package does not read: big-endian, a part of several, another version, or a
	// storage type without a decoder.
	ErrUnsupported = errors.New("unsupported GGUF")
	// ErrChanged says that a file was written to or truncated while it was open,
	// so that what is read of it is no longer what was parsed. Who replaces a
	// file has to write another one and rename it into its place.
	ErrChanged = errors.New("the file was changed while it was open")
)
