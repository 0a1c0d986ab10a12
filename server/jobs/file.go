package jobs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// File is a file's record.
type File struct {
	ID      string
	Owner   string // the key whose it is
	Name    string
	Purpose string
	Bytes   int64
	Created int64  // Unix time in nanoseconds
	Expires int64  // Unix time in seconds
	Batch   string // that alone has to do with it: it is no file of OpenAI's API; empty: it is one
}

// The purposes of files.
const (
	purposeInput  = "batch"
	purposeOutput = "batch_output"
)

// scanFiles reads the records of files.
func (s *folder) scanFiles() (files map[string]*File, used int64, err error) {
	files = map[string]*File{}
	used, err = s.scan(fileFolder, func(id string) error {
		f := &File{}
		if err := readRecord(s.path(fileFolder, id+recordEnd), f); err != nil {
			return err
		}
		if f.ID == id {
			files[id] = f
		}
		return nil
	})
	return files, used, err
}

// addFile keeps what r has as a file of f's owner, name and purpose, for a time; 0: Options.Keep.
func (s *folder) addFile(ctx context.Context, f *File, r io.Reader, keep time.Duration) error {
	select {
	case s.uploads <- struct{}{}:
		defer func() { <-s.uploads }()
	default:
		return errUploads
	}
	s.mu.Lock()
	err := s.ready()
	if err == nil && len(s.files) >= s.opt.Files {
		err = errMany
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	f.ID = newID(filePrefix)
	var size int64
	err = replace(s.path(fileFolder, f.ID), func(w *os.File) (err error) {
		size, err = s.copyWithin(ctx, w, r, bytes(s.opt.File))
		return err
	})
	if err == nil {
		f.Bytes = size
		err = s.keepFile(f, keep)
	}
	if err != nil {
		os.Remove(s.path(fileFolder, f.ID))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= size // which keepFile has counted
	return err
}

// keepFile makes the record of a file that is written, in place of a former one of its id.
func (s *folder) keepFile(f *File, keep time.Duration) error {
	at := time.Now()
	f.Created, f.Expires = order(at), seconds(at.Add(cmp.Or(keep, s.opt.Keep)))
	if err := writeRecord(s.path(fileFolder, f.ID+recordEnd), f); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if former := s.files[f.ID]; former != nil {
		s.used -= former.Bytes
	}
	s.files[f.ID] = f
	s.used += f.Bytes
	return nil
}

// file returns the file of an owner, by an id.
func (s *folder) file(owner, id string) (*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return nil, err
	}
	if f := s.files[id]; f != nil && f.Owner == owner && f.Batch == "" {
		return f, nil
	}
	return nil, errMissing
}

// listFiles returns the files of an owner, the oldest first.
func (s *folder) listFiles(owner, purpose string) ([]*File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*File
	for _, f := range s.files {
		if f.Owner == owner && f.Batch == "" && (purpose == "" || f.Purpose == purpose) {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *File) int { return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID)) })
	return list, s.ready()
}

// read opens what a file holds.
func (s *folder) read(f *File) (*os.File, error) {
	content, err := os.Open(s.path(fileFolder, f.ID))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errMissing
	}
	return content, err
}

// deleteFile deletes a file of an owner that no batch reads.
func (s *Store) deleteFile(owner, id string) error {
	if _, err := s.file(owner, id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inUse(id) {
		return errInUse
	}
	s.dropFile(id)
	return nil
}

// inUse tells whether a batch that has not ended reads a file. Locked.
func (s *Store) inUse(id string) bool {
	for _, b := range s.batches {
		if b.Input == id && !b.ended() {
			return true
		}
	}
	return false
}

// dropFile deletes a file, its record first: what has none is removed at the next start. Locked.
func (s *folder) dropFile(id string) {
	f := s.files[id]
	if f == nil {
		return
	}
	delete(s.files, id)
	os.Remove(s.path(fileFolder, id+recordEnd))
	if err := os.Remove(s.path(fileFolder, id)); err == nil || errors.Is(err, os.ErrNotExist) {
		s.used -= f.Bytes
	}
}
