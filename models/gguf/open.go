package gguf

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lutra-lm/lutra/models/disk"
	"github.com/lutra-lm/lutra/models/gguf/parts"
)

// Open opens and parses the file at path. It reads the header and the tensor
// directory; the tensors stay in the file, which is kept open until Close. Of a
// model in several parts path is the first, and the others lie next to it.
func Open(path string) (*File, error) {
	s, err := disk.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := parse(s, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), s.Close())
	}
	if f.parts() > 1 {
		if err := f.openRest(path); err != nil {
			return nil, errors.Join(fmt.Errorf("gguf: %w", err), f.Close())
		}
	}
	return f, nil
}

// ModelName returns what a model is called by its path: the file's name without
// extension, and without what numbers its parts.
func ModelName(path string) string {
	name := filepath.Base(path)
	if part, ok := parts.Parse(name); ok {
		return part.Stem
	}
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// Unchanged reports ErrChanged when the file at Open's path, or another part of
// the model, has been written to or truncated since. Renaming another file into
// its place changes nothing: the one that was opened lives on until Close. It may
// be called by any goroutine, until Close.
func (f *File) Unchanged() error {
	for _, s := range f.files {
		if err := s.Unchanged(); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the file, all its parts. Tensors that are still in it cannot be
// read afterwards. It may be called more than once.
func (f *File) Close() error {
	var failed error
	for _, s := range f.files {
		if err := s.Close(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("gguf: %w", err))
		}
	}
	return failed
}
