//go:build !unix

package gguf

import (
	"fmt"
	"io"
	"os"
)

// mapFile reads the whole file where mapping is not at hand.
func mapFile(path string) (data []byte, unmap func() error, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	size, err := regularSize(file)
	if err != nil {
		return nil, nil, err
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, func() error { return nil }, nil
}
