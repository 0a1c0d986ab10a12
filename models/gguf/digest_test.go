package gguf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// anyTime is a turn of Digest that is always had at once.
func anyTime() (end func(), err error) { return func() {}, nil }

func TestADigestIsThatOfTheFilesBytes(t *testing.T) {
	data := bytes.Join([][]byte{small(t), make([]byte, 3<<20)}, nil) // what follows the tensors counts
	want := sha256.Sum256(data)
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for name, f := range map[string]*File{"in memory": held, "in a file": opened} {
		if got, err := f.Digest(anyTime); err != nil || got != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s, %v, want %x", name, got, err, want)
		}
		ended := errors.New("ended")
		if _, err := f.Digest(func() (func(), error) { return nil, ended }); !errors.Is(err, ended) {
			t.Errorf("%s: a turn that fails: %v", name, err)
		}
	}
	a, err := held.Sketch()
	b, err2 := opened.Sketch()
	if err != nil || err2 != nil || a != b || a == "" {
		t.Errorf("sketches of one file are %s, %s, %v, %v", a, b, err, err2)
	}
	if err := os.WriteFile(path+".new", make([]byte, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err == nil { // Windows does not
		if got, err := opened.Digest(anyTime); err != nil || got != hex.EncodeToString(want[:]) {
			t.Errorf("of a file that was replaced: %s, %v, want that of the one that was opened", got, err)
		}
	}
}

func TestAFileThatIsWrittenToHasNoDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, small(t), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Digest(anyTime); !errors.Is(err, ErrChanged) {
		t.Errorf("Digest() = %s, %v, want %v", got, err, ErrChanged)
	}
}

func TestASketchSeesTheHeadAndSamplesOfTheRest(t *testing.T) {
	data := append(small(t), make([]byte, 3<<20)...)
	sketch := func(data []byte) string {
		f, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		s, err := f.Sketch()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	was := sketch(data)
	changed := bytes.Clone(data)
	for i := len(changed) / 2; i < len(changed)/2+100000; i++ { // every 32 KiB of these are looked at
		changed[i] = 1
	}
	if sketch(changed) == was || sketch(data[:len(data)-1]) == was {
		t.Error("other weights, or another size, have the same sketch")
	}
}

func TestAStateIsAnotherOnceTheFileIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state := func() string {
		t.Helper()
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.State()
	}
	data := small(t)
	write(data)
	first, again := state(), state()
	if first == "" || first != again {
		t.Errorf("%q, then %q", first, again)
	}
	longer := append(bytes.Clone(data), make([]byte, 3<<20)...)
	write(longer)
	second := state()
	if second == first {
		t.Error("a longer file has the same state")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	longer[len(longer)-1] = 1
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write(longer)
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && state() == second {
		t.Error("a file in its place, of the same size and time, has the same state")
	}
	held, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Parse(longer)
	if err != nil {
		t.Fatal(err)
	}
	if held.State() == "" || held.State() == other.State() {
		t.Errorf("in memory: %q and %q", held.State(), other.State())
	}
}
