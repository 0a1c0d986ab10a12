package gguf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// onDisk is the path of a file that holds small, last written an hour ago.
func onDisk(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.gguf")
	rewrite(t, path, small(t), time.Now().Add(-time.Hour))
	return path
}

// rewrite overwrites the file at path, so that it looks written at that time.
func rewrite(t *testing.T, path string, data []byte, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestTensorsOfAnOpenedFileAreReadWhenTheyAreLoaded(t *testing.T) {
	f := open(t, onDisk(t))
	x := f.Tensor("matrix")
	if x.Data != nil || x.Bytes() != 136 {
		t.Errorf("after Open the matrix has %d bytes in memory, Bytes() = %d; want 0 and 136", len(x.Data), x.Bytes())
	}
	room := make([]byte, 100)
	second, err := x.Load(1, 2, room)
	if err != nil || !bytes.Equal(second.Data, bytes.Repeat([]byte{1}, 68)) || second.Rows() != 1 || &second.Data[0] != &room[0] {
		t.Errorf("Load(1, 2) = %+v, %v; want the second row in the given buffer", second, err)
	}
	whole, err := x.Load(0, 2, nil)
	if err != nil || len(whole.Data) != 136 {
		t.Errorf("Load(0, 2) = %+v, %v; want both rows", whole, err)
	}
	fromFile, fromMemory := make([]float32, 64), make([]float32, 64)
	if err := errors.Join(x.Dequantize(fromFile, 64), whole.Dequantize(fromMemory, 64)); err != nil || !slices.Equal(fromFile, fromMemory) {
		t.Errorf("values from the file are %v, from memory %v, %v", fromFile, fromMemory, err)
	}
	var b bytes.Buffer
	if err := Write(&b, f.Metadata, f.Tensors); err != nil || !bytes.Equal(b.Bytes(), small(t)) {
		t.Errorf("writing what is still in the file gave %d bytes, %v; want the file", b.Len(), err)
	}
}

func TestAClosedFileKeepsItsMetadataAndRefusesReads(t *testing.T) {
	f := open(t, onDisk(t))
	for range 2 {
		if err := f.Close(); err != nil {
			t.Errorf("Close() = %v, want no error", err)
		}
	}
	if s, _ := f.Metadata.String("a.text"); s != "тернарный" {
		t.Errorf("metadata after Close reads %q", s)
	}
	if err := f.Tensor("matrix").Dequantize(make([]float32, 64), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Dequantize after Close = %v, want os.ErrClosed", err)
	}
}

func TestAFileThatIsTruncatedOrOverwrittenWhileItIsOpenIsNoticed(t *testing.T) {
	data := small(t)
	cut := data[:len(data)-150]
	for name, change := range map[string]func(path string){
		"truncated":               func(path string) { rewrite(t, path, cut, time.Now()) },
		"truncated, touched back": func(path string) { rewrite(t, path, cut, time.Now().Add(-time.Hour)) },
		"overwritten":             func(path string) { rewrite(t, path, data, time.Now()) },
	} {
		t.Run(name, func(t *testing.T) {
			path := onDisk(t)
			f := open(t, path)
			if err := f.Unchanged(); err != nil {
				t.Fatalf("Unchanged() of an unchanged file = %v", err)
			}
			change(path)
			if err := f.Unchanged(); !errors.Is(err, ErrChanged) {
				t.Errorf("Unchanged() = %v, want ErrChanged", err)
			}
		})
	}
}

func TestReadingBeyondTheEndOfATruncatedFileIsAnError(t *testing.T) {
	path := onDisk(t)
	f := open(t, path)
	if err := os.Truncate(path, int64(len(small(t))-150)); err != nil {
		t.Fatal(err)
	}
	x := f.Tensor("matrix")
	if _, err := x.Load(0, 2, nil); !errors.Is(err, ErrChanged) {
		t.Errorf("Load = %v, want ErrChanged", err)
	}
	if err := x.Dequantize(make([]float32, 64), 64); !errors.Is(err, ErrChanged) {
		t.Errorf("Dequantize = %v, want ErrChanged", err)
	}
}

func TestAFileReplacedByRenamingLivesOn(t *testing.T) {
	path := onDisk(t)
	f := open(t, path)
	other := filepath.Join(filepath.Dir(path), "other.gguf")
	rewrite(t, other, []byte("something else"), time.Now())
	if err := os.Rename(other, path); err != nil {
		t.Skip("this system does not replace open files: ", err)
	}
	if err := f.Unchanged(); err != nil {
		t.Errorf("Unchanged() = %v, want no error", err)
	}
	if x, err := f.Tensor("matrix").Load(0, 2, nil); err != nil || len(x.Data) != 136 {
		t.Errorf("Load = %+v, %v; want the matrix of the opened file", x, err)
	}
}
