//go:build unix

package gguf

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a file mapped read-only.
type mapping struct{ data []byte }

func mapFile(path string) (*mapping, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping outlives the descriptor
	size, err := regularSize(file)
	if err != nil {
		return nil, err
	}
	if size == 0 { // mmap refuses empty files; Parse has the better message
		return &mapping{}, nil
	}
	data, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return &mapping{data}, nil
}

func (m *mapping) evict() {
	if len(m.data) > 0 {
		_ = unix.Madvise(m.data, unix.MADV_DONTNEED) // a refusal costs memory, nothing else
	}
}

func (m *mapping) close() error {
	if len(m.data) == 0 {
		return nil
	}
	return unix.Munmap(m.data)
}
