package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAModelIsKnownByTheDigestOfItsFile(t *testing.T) {
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, appendix B.1
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("m-00002-of-00002.gguf", "c")
	blob := strings.Repeat("7", 64)
	write(blob, "of the hub")
	link := filepath.Join(dir, "link.gguf")
	if err := os.Symlink(blob, link); err != nil {
		t.Skip("no symbolic links here")
	}
	for path, want := range map[string]string{write("m.gguf", "abc"): abc, write("m-00001-of-00002.gguf", "ab"): abc, link: blob} {
		if got, err := (Model{Path: path}).Digest(t.Context()); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
	s, err := Model{Embedded: "lutra-tiny-s"}.Digest(t.Context())
	l, err2 := Model{Embedded: "lutra-tiny-l"}.Digest(t.Context())
	if err := errors.Join(err, err2); err != nil || len(s) != 64 || s == l {
		t.Errorf("embedded models: %s, %s, %v", s, l, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Model{Path: filepath.Join(dir, "m.gguf")}).Digest(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context has ended: %v", err)
	}
}
