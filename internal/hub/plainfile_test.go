package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/hub/hubtest"
)

// odd puts into the place of a file what is none.
var odd = map[string]func(path string) error{
	"a named pipe": makePipe,
	"a device":     func(path string) error { return os.Symlink("/dev/zero", path) },
	"a folder":     func(path string) error { return os.Mkdir(path, 0o700) },
	"more than":    func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
}

// inPlaceOf calls do with a new hub for each kind of what is no file at a path of its
// cache.
func inPlaceOf(t *testing.T, at func(b *bench, d repoFolder) string, do func(kind string, b *bench)) {
	t.Helper()
	for kind, put := range odd {
		b := newBench(t)
		path := at(b, b.folder(tiny))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), put(path)); err != nil {
			t.Logf("no %s here: %v", kind, err)
			continue
		}
		do(kind, b)
	}
}

func TestABranchThatIsNoFileIsRefusedByItsKind(t *testing.T) {
	inPlaceOf(t, func(b *bench, d repoFolder) string {
		b.pulled(t)
		if err := os.Remove(d.ref()); err != nil {
			t.Fatal(err)
		}
		return d.ref()
	}, func(kind string, b *bench) {
		_, found := b.Find(tiny)
		_, pulled := b.Pull(t.Context(), tiny, nil)
		_, listed := b.List()
		for what, err := range map[string]error{"Find": found, "Pull": pulled, "List": listed} {
			if err == nil || !strings.Contains(err.Error(), filepath.Join("refs", "main")) || !strings.Contains(err.Error(), kind) {
				t.Errorf("%s with refs/main as %s: %v", what, kind, err)
			}
		}
	})
}

func TestAPartThatIsNoFileIsRefusedByItsKind(t *testing.T) {
	for what, at := range map[string]func(b *bench, d repoFolder) string{
		"a partial blob": func(b *bench, d repoFolder) string { return d.blob(hubtest.SHA256(b.file)) + incomplete },
		"a lock":         func(b *bench, d repoFolder) string { return d.lock(hubtest.SHA256(b.file)) },
		"a new journal":  func(b *bench, d repoFolder) string { return d.blob(hubtest.SHA256(b.file)) + incomplete + ".json.tmp" },
	} {
		inPlaceOf(t, at, func(kind string, b *bench) {
			if kind == "more than" { // a file that may be there
				return
			}
			if _, err := b.Pull(t.Context(), tiny, nil); err == nil || !strings.Contains(err.Error(), kind) {
				t.Errorf("Pull with %s as %s: %v", what, kind, err)
			}
			if _, err := b.List(); err != nil {
				t.Errorf("List with %s as %s: %v", what, kind, err)
			}
			if _, err := b.Remove(Ref{Owner: tiny.Owner, Repo: tiny.Repo}); err != nil && !errors.Is(err, ErrAbsent) {
				t.Errorf("Remove with %s as %s: %v", what, kind, err)
			}
		})
	}
}

func TestAJournalThatIsNoFileIsNone(t *testing.T) {
	inPlaceOf(t, func(b *bench, d repoFolder) string {
		part := d.blob(hubtest.SHA256(b.file)) + incomplete
		if err := errors.Join(os.MkdirAll(filepath.Dir(part), 0o700), os.WriteFile(part, b.file[:5000], 0o600)); err != nil {
			t.Fatal(err)
		}
		return part + ".json"
	}, func(kind string, b *bench) {
		if list, err := b.List(); err != nil || len(list) > 0 {
			t.Errorf("List with a journal that is %s = %+v, %v", kind, list, err)
		}
		if kind != "a folder" { // which is not ours to delete
			b.pulled(t)
		}
	})
}

func TestATokenThatIsNoFileIsRefusedByItsKind(t *testing.T) {
	for kind, put := range odd {
		path := filepath.Join(t.TempDir(), "token")
		if err := put(path); err != nil {
			continue
		}
		getenv := func(name string) string { return map[string]string{"HF_HUB_CACHE": "/c", "HF_TOKEN_PATH": path}[name] }
		if _, err := FromEnvironment(getenv, ""); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("a token that is %s: %v", kind, err)
		}
	}
}

func TestOddJournalsAreNotListed(t *testing.T) {
	b := newBench(t)
	part := b.folder(tiny).blob(hubtest.SHA256(b.file)) + incomplete
	if err := errors.Join(os.MkdirAll(filepath.Dir(part), 0o700), os.WriteFile(part, b.file[:5000], 0o600)); err != nil {
		t.Fatal(err)
	}
	for journal, listed := range map[string]int{
		`{"file":"a.gguf","size":10500,"part":10000,"have":[5000,0]}`:                                  1,
		`{"file":"a.gguf","size":-1,"part":1000,"have":[]}`:                                            0,
		`{"file":"a.gguf","size":-1,"part":0,"have":null}`:                                             0,
		`{"file":"a.gguf","size":0,"part":1000,"have":[-5]}`:                                           0,
		`{"file":"a.gguf","size":10500,"part":-1000,"have":[]}`:                                        0,
		`{"file":"a.gguf","size":10500,"part":10000,"have":[-1,0]}`:                                    0,
		`{"file":"a.gguf","size":10500,"part":10000,"have":[9223372036854775807,9223372036854775807]}`: 0,
		`{"file":"a.gguf","size":9223372036854775807,"part":9223372036854775807,"have":[1]}`:           0,
		`{"file":"a.gguf","size":10500,"part":10000,"have":[10000,500,500]}`:                           0,
		`{"file":"a.gguf","size":1e99,"part":1000,"have":[]}`:                                          0,
		`{"file":"../a.gguf","size":10500,"part":10000,"have":[5000,0]}`:                               0,
	} {
		if err := os.WriteFile(part+".json", []byte(journal), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := b.List()
		if err != nil || len(list) != listed {
			t.Errorf("List with the journal %s = %+v, %v", journal, list, err)
		}
		for _, s := range list {
			if s.Size != 10500 || s.Missing != 5500 {
				t.Errorf("the journal %s: %d of %d bytes are missing", journal, s.Missing, s.Size)
			}
		}
	}
}

func TestWhatAFullDiskHasAllocatedWantsNoMoreRoom(t *testing.T) {
	for what, c := range map[string]struct {
		contents int // bytes that were written, and are in no journal
		free     int64
		fits     bool
	}{
		"all of it":  {10_500, 0, true},
		"half of it": {4_096, 6_404, true},
		"holes":      {0, 6_404, false},
	} {
		b := newBench(t)
		b.free = func(string) (int64, error) { return c.free, nil }
		part := b.folder(tiny).blob(hubtest.SHA256(b.file)) + incomplete
		if err := os.MkdirAll(filepath.Dir(part), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(part)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(b.file[:c.contents])
		if err := errors.Join(err, f.Truncate(10_500), f.Sync()); err != nil {
			t.Fatal(err)
		}
		if c.contents > 0 && allocated(f) == 0 {
			t.Skip("this system does not say what is allocated")
		}
		f.Close()
		_, err = b.Pull(t.Context(), tiny, nil)
		if c.fits && err != nil || !c.fits && !errors.Is(err, ErrRoom) {
			t.Errorf("%s is allocated, %d bytes are free: Pull = %v", what, c.free, err)
		}
		model, err := b.c.find(t.Context(), tiny)
		if err != nil {
			t.Fatal(err)
		}
		twice := append(model, model...) // the room for several parts is asked for at once
		if err := b.checkRoomForAll(b.folder(tiny), twice); c.fits && err != nil {
			t.Errorf("%s is allocated, %d bytes are free: %v", what, c.free, err)
		}
	}
}
