package gguf

import (
	"errors"

	"github.com/lutra-lm/lutra/models/disk"
)

// Errors of this package. What is wrapped around them names the key or tensor
// and the offset.
var (
	// ErrFormat says that the bytes are not a well-formed GGUF file.
	ErrFormat = errors.New("malformed GGUF")
	// ErrUnsupported says that the file may be well-formed, but is of a kind that this package does not read.
	// It is big-endian, a part of several or another version, or has a storage type without a decoder.
	ErrUnsupported = errors.New("unsupported GGUF")
	// ErrChanged is disk.ErrChanged.
	ErrChanged = disk.ErrChanged
)
