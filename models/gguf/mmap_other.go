//go:build !unix

package gguf

import (
	"fmt"
	"io"
	"os"
)

// mapping is a file read into memory, where mapping is not at hand.
type mapping struct{ data []byte }

func mapFile(path string) (*mapping, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := regularSize(file)
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &mapping{data}, nil
}

func (m *mapping) evict()       {}
func (m *mapping) close() error { return nil }
