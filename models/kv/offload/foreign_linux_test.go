package offload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWhatOthersPutIntoTheFolderStaysAndIsNotTrusted(t *testing.T) {
	folder := t.TempDir()
	r := newRig(t, folder, 0, nil)
	r.save(t, tokensOf(0, 512))
	r.Close()
	dirs, err := r.folder.models()
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	files, err := r.folder.entries(dirs[0])
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	foreign := map[string]func(string) error{
		"notes.txt":          func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"0000000f-nothex.kv": func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) },
		"sub":                func(p string) error { return os.MkdirAll(filepath.Join(p, "sub"), 0o700) },
		"00000001-" + strings.Repeat("a", 32) + ".kv": func(p string) error { return os.Symlink("/etc/hostname", p) },
		"00000002-" + strings.Repeat("b", 32) + ".kv": func(p string) error { return os.Mkdir(p, 0o700) },
		"00000003-" + strings.Repeat("c", 32) + ".kv": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	}
	for name, make := range foreign {
		if err := errors.Join(make(filepath.Join(dirs[0], name)), make(filepath.Join(folder, name))); err != nil {
			t.Fatal(err)
		}
	}
	// In the way of the first chunk's name: something that is no file, and huge ones.
	for name, put := range map[string]func(string) error{
		"pipe":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"folder": func(p string) error { return os.Mkdir(p, 0o700) },
		"huge": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte(magic), 0o600), os.Truncate(p, 1<<40))
		},
		"link": func(p string) error { return os.Symlink("/dev/zero", p) },
	} {
		if err := errors.Join(os.RemoveAll(files[0].path), put(files[0].path)); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, folder, 0, nil)
		if got := r.restore(t, tokensOf(0, 512)); got != 0 && got != 256 {
			t.Errorf("%s: %d tokens restored", name, got)
		}
		r.save(t, tokensOf(0, 512))
		r.Close()
		if r.log.Len() > 0 {
			t.Errorf("%s: %s", name, r.log)
		}
	}
	r = newRig(t, folder, 0, func(f *Folder) { f.size = 1 << 20; f.keep = 0 })
	r.Close()
	if _, _, err := r.folder.Remove(nil, time.Time{}); err != nil {
		t.Error(err)
	}
	for name := range foreign {
		for _, dir := range []string{dirs[0], folder} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, path := range []string{filepath.Join(folder, "notes.txt"), filepath.Join(folder, "notes.txt", "below"), "/proc/nothing/here"} {
		r := newRig(t, path, 0, nil)
		if got := r.restore(t, tokensOf(0, 512)); got != 0 {
			t.Errorf("%s: %d tokens restored", path, got)
		}
		r.save(t, tokensOf(0, 512))
		r.Close()
		if n := strings.Count(r.log.String(), "\n"); n != 1 {
			t.Errorf("%s: %d warnings: %s", path, n, r.log)
		}
	}
}
