// Package disk reads files that must stay as they are while they are open: model files, whose rows are read at
// every step. Nothing is mapped into memory, so a file that somebody truncates or overwrites is an error,
// ErrChanged, and not the end of the process.
package disk

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/lutra-lm/lutra/internal/parallel"
)

// ErrChanged says that a file was written to or truncated while it was open,
// so that what is read of it is no longer what was parsed. Who replaces a
// file has to write another one and rename it into its place.
var ErrChanged = errors.New("the file was changed while it was open")

// Source is bytes that any number of goroutines may read: of a file on disk, in memory, or
// made as they are read.
type Source struct {
	io.ReaderAt
	size   int64
	held   []byte   // all of them; nil: not in memory
	file   *os.File // nil: there is none
	opened stamp    // of file, when it was opened
	atOnce bool     // long reads are not divided

	mu    sync.Mutex
	spare [][]byte // buffers for rows, as many as were in use at once
}

// stamp reports whether a file has been written to.
type stamp struct {
	size    int64
	written [2]int64 // the time of the last write, in units of the system
}

// InMemory returns data as a Source.
func InMemory(data []byte) *Source {
	return &Source{ReaderAt: bytes.NewReader(data), size: int64(len(data)), held: data}
}

// Made returns size bytes that r makes of others, whose Source is asked for changes.
func Made(r io.ReaderAt, size int64) *Source { return &Source{ReaderAt: r, size: size} }

// MadeAtOnce does as Made, of what is made sooner the more of it is asked for at once, on all cores.
func MadeAtOnce(r io.ReaderAt, size int64) *Source {
	return &Source{ReaderAt: r, size: size, atOnce: true}
}

// Open opens a regular file, and waits for no writer of a named pipe to find
// that it is none.
func Open(path string) (*Source, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	s := &Source{ReaderAt: file, file: file}
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

// Size returns the number of bytes.
func (s *Source) Size() int64 { return s.size }

// Held returns all bytes of a Source in memory, which must not be written; nil of others.
func (s *Source) Held() []byte { return s.held }

// Unchanged reports ErrChanged when the file has been written to, or truncated,
// since it was opened. A file that was put in its place is another one.
func (s *Source) Unchanged() error {
	if s.file == nil {
		return nil
	}
	now, err := stampOf(s.file)
	if err != nil {
		return err
	}
	if now != s.opened {
		return fmt.Errorf("%s: %w", s.file.Name(), ErrChanged)
	}
	return nil
}

// State is a text that is the same as in another process only if the bytes are. It has the path, the times and the number
// of the file, or a hash of what is in memory. It is empty where nothing tells.
func (s *Source) State() string {
	switch {
	case s.held != nil:
		return fmt.Sprintf("%x", sha256.Sum256(s.held))
	case s.file == nil:
		return ""
	}
	path, err := filepath.Abs(s.file.Name())
	if err != nil {
		return ""
	}
	state, err := stateOf(s.file)
	if err != nil {
		return ""
	}
	return path + "\x00" + state
}

// Read fills b with what begins at offset. A file that ends early was longer
// when it was opened.
func (s *Source) Read(b []byte, offset int64) error {
	err := s.read(b, offset)
	if errors.Is(err, io.EOF) && s.file != nil {
		return fmt.Errorf("%s: it ends early: %w", s.file.Name(), ErrChanged)
	}
	return err
}

// readPiece is the number of bytes that a core reads at a time, so that its copy is in its cache.
const readPiece = 1 << 20

// read sets b to what stands at offset, on all cores where it is long.
func (s *Source) read(b []byte, offset int64) error {
	pieces := (len(b) + readPiece - 1) / readPiece
	workers := min(pieces, runtime.GOMAXPROCS(0))
	if workers < 2 || s.atOnce {
		_, err := s.ReadAt(b, offset)
		return err
	}
	var next atomic.Int64
	var readers parallel.Group
	errs := make([]error, workers)
	for w := range errs {
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < pieces && errs[w] == nil; i = int(next.Add(1)) - 1 {
				at := i * readPiece
				_, errs[w] = s.ReadAt(b[at:min(len(b), at+readPiece)], offset+int64(at))
			}
		})
	}
	readers.Wait()
	return errors.Join(errs...)
}

// Expect says that n bytes from offset on will be read soon: the system may read them
// meanwhile, if they are in a file.
func (s *Source) Expect(offset, n int64) {
	if s.file != nil {
		expect(s.file, offset, n)
	}
}

// Close closes the file, if there is one. It may be called more than once.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	if err := s.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// WithRow calls do with n bytes of s, which are valid until it returns. A model
// reads rows at every step: what they are read into is kept.
func (s *Source) WithRow(n int, offset int64, do func(raw []byte)) error {
	raw := s.borrow(n)
	defer s.giveBack(raw)
	if err := s.Read(raw, offset); err != nil {
		return err
	}
	do(raw)
	return nil
}

func (s *Source) borrow(n int) []byte {
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

func (s *Source) giveBack(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, b)
}
