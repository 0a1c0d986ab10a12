package offload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestAFileIsHashedOnceForAllStartsUntilItChanges(t *testing.T) {
	s := DefaultSettings()
	s.Path = filepath.Join(t.TempDir(), "prefixes")
	found := 0
	of := func(f *Folder, state, digest string) {
		t.Helper()
		got, err := f.digest(state, func() (string, error) { found++; return digest, nil })
		if err != nil || got != digest {
			t.Errorf("%q is %s, %v, want %s", state, got, err, digest)
		}
	}
	start := func() *Folder { return NewFolder(s, zerolog.Nop()) }
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	expect := func(what string, want int) {
		t.Helper()
		if found != want {
			t.Errorf("%s: %d files hashed, want %d", what, found, want)
		}
		found = 0
	}

	of(start(), "one", a)
	of(start(), "one", a)
	expect("two starts", 1)
	of(start(), "one, changed", b)
	expect("a change", 1)
	of(start(), "", a)
	of(start(), "", a)
	expect("nothing tells", 2)
	of(start(), "no hash", "digest")
	of(start(), "no hash", "digest")
	expect("what is no hash", 2)

	files, _ := filepath.Glob(filepath.Join(s.Path, "*.sha256"))
	if len(files) != 2 {
		t.Fatalf("files: %q, want one of each state", files)
	}
	for _, damage := range []func(string) error{
		func(path string) error { return os.WriteFile(path, []byte(a[:63]), 0o600) },
		func(path string) error { return os.WriteFile(path, []byte(a[:63]+"?"), 0o600) },
		func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		for _, path := range files {
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
		}
		of(start(), "one", a)
		expect("a damaged file", 1)
	}
	for _, path := range files {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}

	f := start()
	of(f, "one", a)
	f.now = func() time.Time { return time.Now().Add(s.Keep / 2) }
	of(f, "one", a) // is used
	f.now = func() time.Time { return time.Now().Add(s.Keep + time.Hour) }
	f.makeRoom(0)
	of(f, "one", a)
	expect("a file that was used", 1)
	f.now = func() time.Time { return time.Now().Add(3 * s.Keep) }
	f.makeRoom(0)
	of(f, "one", a)
	expect("a file that nobody has used for long", 1)
	if _, _, err := f.Remove([]string{"another"}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	of(f, "one", a)
	expect("another model's files removed", 0)
	if _, _, err := f.Remove(nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	of(f, "one", a)
	expect("all files removed", 1)
	want := errors.New("gone")
	if _, err := f.digest("two", func() (string, error) { return "", want }); !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func TestTheNextStoreOfAFileNeedNotReadIt(t *testing.T) {
	folder := t.TempDir()
	tokens := tokensOf(1, 600)
	for start, want := range []int{0, 600} {
		r := newRig(t, folder, 0, nil)
		r.Close()
		hashed := 0
		r.Store = New(r.folder, r.cache, Sources{State: "model.gguf, unchanged", Digest: func(context.Context) (string, error) {
			hashed++
			return strings.Repeat("c", 64), nil
		}})
		if got := r.restore(t, tokens); got != want {
			t.Errorf("start %d: %d tokens, want %d", start, got, want)
		}
		r.save(t, tokens)
		r.Close()
		if hashed != 1-start {
			t.Errorf("start %d: hashed %d times", start, hashed)
		}
	}
}
