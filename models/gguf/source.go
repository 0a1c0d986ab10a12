package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// source holds the bytes of a File: in memory, or in a file on disk.
type source struct {
	io.ReaderAt
	size   int64
	held   []byte   // all of them; nil: in a file
	file   *os.File // nil: held
	opened stamp    // of file, when it was opened

	mu    sync.Mutex
	spare [][]byte // buffers for rows, as many as were in use at once
}

// stamp reports whether a file has been written to.
type stamp struct {
	size    int64
	written [2]int64 // the time of the last write, in units of the system
}

func inMemory(data []byte) *source {
	return &source{ReaderAt: bytes.NewReader(data), size: int64(len(data)), held: data}
}

// openSource opens a regular file, and waits for no writer of a named pipe to find
// that it is none.
func openSource(path string) (*source, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	s := &source{ReaderAt: file, file: file}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err == nil {
		s.opened, err = stampOf(file)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s.size = s.opened.size
	return s, nil
}

// unchanged reports ErrChanged when the file has been written to, or truncated,
// since it was opened. A file that was put in its place is another one.
func (s *source) unchanged() error {
	if s.file == nil {
		return nil
	}
	now, err := stampOf(s.file)
	if err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	if now != s.opened {
		return fmt.Errorf("gguf: %s: %w", s.file.Name(), ErrChanged)
	}
	return nil
}

// read fills b with what begins at offset. A file that ends early was longer
// when it was opened.
func (s *source) read(b []byte, offset int64) error {
	_, err := s.ReadAt(b, offset)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return fmt.Errorf("gguf: %s: it ends early: %w", s.file.Name(), ErrChanged)
	}
	return fmt.Errorf("gguf: %w", err)
}

func (s *source) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// withRow calls do with n bytes of s, which are valid until it returns. A model
// reads rows at every step: what they are read into is kept.
func (s *source) withRow(n int, offset int64, do func(raw []byte)) error {
	raw := s.borrow(n)
	defer s.giveBack(raw)
	if err := s.read(raw, offset); err != nil {
		return err
	}
	do(raw)
	return nil
}

func (s *source) borrow(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.spare) - 1; last >= 0 {
		b := s.spare[last]
		s.spare = s.spare[:last]
		if cap(b) >= n {
			return b[:n]
		}
	}
	return make([]byte, n)
}

func (s *source) giveBack(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, b)
}
