package models

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/kv"
)

// copied is the path of a copy of a reference model, written an hour ago.
func copied(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/golden", name, "model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	return path
}

// overwrite writes zeros over the end of the file at path.
func overwrite(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(make([]byte, 1000), info.Size()-1000)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestAModelWhoseFileIsChangedFailsForGood(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, path string){
		"truncated": func(t *testing.T, path string) {
			if err := os.Truncate(path, 4096); err != nil {
				t.Fatal(err)
			}
		},
		"overwritten": overwrite,
	} {
		t.Run(name, func(t *testing.T) {
			path := copied(t, "llama-tq2_0")
			r := newRunner(t, openModel(t, path, LoadOptions{}), kv.F16)
			r.feed(1, 3, 4, 5)
			change(t, path)
			for range 2 {
				if err := r.seq.Grow(1); err != nil {
					t.Fatal(err)
				}
				r.b.Reset()
				r.b.Add(r.seq, r.seq.Len()-1, 1, 6)
				if err := r.m.Forward(&r.b, r.kv); !errors.Is(err, gguf.ErrChanged) {
					t.Errorf("Forward = %v, want gguf.ErrChanged", err)
				}
			}
		})
	}
}

func TestAModelWhoseFileIsReplacedByRenamingLivesOn(t *testing.T) {
	path := copied(t, "llama-tq2_0")
	r := newRunner(t, openModel(t, path, LoadOptions{}), kv.F16)
	before := slices.Clone(r.feed(1, 3, 4, 5))
	if err := os.Rename(copied(t, "qwen3"), path); err != nil {
		t.Skip("this system does not replace open files: ", err)
	}
	r.seq.Truncate(2)
	if after := r.feed(1, 5); !slices.Equal(before, after) {
		t.Error("a model whose file was replaced by another computes something else")
	}
}

func TestAFileThatIsChangedWhileItLoadsIsRefused(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	path := copied(t, "llama-tq2_0")
	changed := false
	b, err := Load(path, LoadOptions{Pool: pool, Progress: func(int64, int64) {
		if !changed {
			changed = true
			overwrite(t, path)
		}
	}})
	if !errors.Is(err, gguf.ErrChanged) || b != nil {
		t.Errorf("Load of a file that is being written = %v, %v, want gguf.ErrChanged", b, err)
	}
}

func TestProgressOfLoadingGrowsToTheWhole(t *testing.T) {
	pool := pool.New(1)
	defer pool.Close()
	var calls, last, whole int64
	b, err := Load("testdata/golden/llama-tq2_0/model.gguf", LoadOptions{Pool: pool, Progress: func(done, total int64) {
		if done < last || done > total || whole != 0 && total != whole {
			t.Errorf("progress %d of %d after %d of %d", done, total, last, whole)
		}
		calls, last, whole = calls+1, done, total
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if calls < 10 || last != whole || whole < 100<<10 {
		t.Errorf("%d calls, the last one at %d of %d", calls, last, whole)
	}
}
