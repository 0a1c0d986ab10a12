package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"
)

// folder is where files are kept, from when Store.Run has opened it.
type folder struct {
	opt Options
	log zerolog.Logger

	mu    sync.Mutex // of all that is kept
	open  bool
	files map[string]*File
	used  int64 // bytes of the folder, and those that batches are yet to write

	uploads chan struct{} // files that are being sent
}

// Store keeps files and batches, and has the lines of batches answered.
type Store struct {
	folder
	// write is (*os.File).WriteAt of journals, but in tests of a full disk.
	write func(f *os.File, b []byte, at int64) (int, error)

	batches map[string]*batch
	turns   int64         // lines that have been begun; whose turn is the longest ago comes next
	wake    chan struct{} // Run looks again for what there is to do
	counted [2]atomic.Int64
}

// The outcomes of lines that are counted.
const (
	countDone = iota
	countFailed
)

// Errors of a store.
var (
	errOff      = errors.New("jobs: there is no folder for jobs")
	errClosed   = errors.New("jobs: the folder is not open")
	errFull     = errors.New("jobs: the folder is full")
	errLarge    = errors.New("jobs: the file is too large")
	errMissing  = errors.New("jobs: there is none of this name")
	errUploads  = errors.New("jobs: too many files are being sent")
	errMany     = errors.New("jobs: too many are kept")
	errKeyMany  = errors.New("jobs: too many of this key have not ended")
	errInUse    = errors.New("jobs: a batch reads the file")
	errGoing    = errors.New("jobs: the batch has not ended")
	errHasEnded = errors.New("jobs: the batch has ended")
)

// mostUploads bounds the files that are being sent at once.
const mostUploads = 16

// New returns a store of options that Validate has found good. Nothing is read before Run.
func New(opt Options, log zerolog.Logger) *Store {
	return &Store{folder: folder{opt: opt, log: log, files: map[string]*File{}, uploads: make(chan struct{}, mostUploads)},
		write: (*os.File).WriteAt, batches: map[string]*batch{}, wake: make(chan struct{}, 1)}
}

// ready returns an error while nothing can be kept.
func (s *folder) ready() error {
	switch {
	case s.opt.Path == "":
		return errOff
	case !s.open:
		return errClosed
	}
	return nil
}

// path joins the folder and the name of a file in it.
func (s *folder) path(parts ...string) string {
	return filepath.Join(append([]string{s.opt.Path}, parts...)...)
}

const (
	fileFolder  = "files"
	batchFolder = "batches"
	recordEnd   = ".json"
	linesEnd    = ".lines"
	journalEnd  = ".journal"
)

// load takes the folder for this process and reads what it holds. What cannot be read is logged and left there.
func (s *Store) load() (unlock func(), err error) {
	for _, folder := range []string{fileFolder, batchFolder} {
		if err := os.MkdirAll(s.path(folder), 0o700); err != nil {
			return nil, err
		}
	}
	lock := flock.New(s.path("lock"))
	if held, err := lock.TryLock(); err != nil || !held {
		return nil, cmp.Or(err, errors.New("jobs: another server has the folder"))
	}
	unlock = func() { _ = lock.Unlock() }
	files, used, err := s.scanFiles()
	if err == nil {
		var batches map[string]*batch
		var more int64
		if batches, more, err = s.scanBatches(); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.files, s.batches, s.used, s.open = files, batches, used+more, true
			s.dropOrphans()
			return unlock, nil
		}
	}
	unlock()
	return nil, err
}

// dropOrphans deletes the inputs of batches that were never made. Locked.
func (s *Store) dropOrphans() {
	for id, f := range s.files {
		if f.Batch == "" || s.batches[f.Batch] != nil {
			continue
		}
		if _, err := os.Stat(s.path(batchFolder, f.Batch+recordEnd)); errors.Is(err, os.ErrNotExist) {
			s.dropFile(id)
		}
	}
}

// scan calls read for the records of a folder, and removes what no record is of.
func (s *folder) scan(folder string, read func(id string) error) (used int64, err error) {
	entries, err := os.ReadDir(s.path(folder))
	if err != nil {
		return 0, err
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	for _, e := range entries {
		id, end, _ := strings.Cut(e.Name(), ".")
		switch {
		case !e.Type().IsRegular() || !ours(id):
			continue
		case strings.HasSuffix(e.Name(), temporary), end != "json" && !names[id+recordEnd]:
			_ = os.Remove(s.path(folder, e.Name())) // of what was never finished
			continue
		}
		if info, err := e.Info(); err == nil && end != "json" {
			used += info.Size()
		}
		if end == "json" {
			if err := read(id); err != nil {
				s.log.Warn().Str("id", id).Err(err).Msg("a job's record cannot be read; it is left as it is")
			}
		}
	}
	return used, nil
}

// The beginnings of ids.
const (
	filePrefix    = "file-"
	batchPrefix   = "batch_"
	messagePrefix = "msgbatch_"
)

// idLen is the number of hexadecimal digits of an id.
const idLen = 24

// newID returns an id that nobody guesses.
func newID(prefix string) string {
	var b [idLen / 2]byte
	_, _ = rand.Read(b[:]) // it never fails
	return prefix + hex.EncodeToString(b[:])
}

// ours tells whether a name is an id.
func ours(id string) bool {
	for _, prefix := range []string{filePrefix, batchPrefix, messagePrefix} {
		if rest, ok := strings.CutPrefix(id, prefix); ok {
			_, err := hex.DecodeString(rest)
			return err == nil && len(rest) == idLen
		}
	}
	return false
}

// take sets n bytes of the folder aside, or returns errFull. Locked.
func (s *folder) take(n int64) error {
	if n > bytes(s.opt.Size)-s.used {
		return errFull
	}
	s.used += n
	return nil
}

// look has Run look for what there is to do.
func (s *Store) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// page returns at most limit elements of a list that come after, or with back before, the one of an id; an empty id is
// the list's beginning or end.
func page[T any](list []T, id func(T) string, at string, back bool, limit int) (part []T, more bool, err error) {
	if at != "" {
		i := slices.IndexFunc(list, func(v T) bool { return id(v) == at })
		switch {
		case i < 0:
			return nil, false, errMissing
		case back:
			list = list[:i]
		default:
			list = list[i+1:]
		}
	}
	switch n := len(list); {
	case n <= limit:
		return list, false, nil
	case back:
		return list[n-limit:], true, nil
	}
	return list[:limit], true, nil
}

// copyWithin copies r to w as far as there is room for it and it has at most most bytes.
func (s *folder) copyWithin(ctx context.Context, w io.Writer, r io.Reader, most int64) (size int64, err error) {
	piece := make([]byte, 64<<10)
	for {
		n, readErr := r.Read(piece)
		if size+int64(n) > most {
			return size, errLarge
		}
		s.mu.Lock()
		err := s.take(int64(n))
		s.mu.Unlock()
		if err != nil {
			return size, err
		}
		size += int64(n)
		if _, err := w.Write(piece[:n]); err != nil {
			return size, err
		}
		if errors.Is(readErr, io.EOF) {
			return size, nil
		}
		if err := cmp.Or(readErr, ctx.Err()); err != nil {
			return size, err
		}
	}
}
