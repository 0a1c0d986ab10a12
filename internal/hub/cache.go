package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mainRevision is the branch that files are taken from.
const mainRevision = "main"

// incomplete ends the names of blobs of which a part has come. huggingface_hub
// goes on from the length of ETAG.incomplete, and would take one with holes for
// a whole file; hence a name of our own.
const (
	incomplete = ".lutra.incomplete"
	foreign    = ".incomplete"
)

// What begins the names of folders of repositories. Each tag of Ollama's registry has one of
// its own, whose commits are the SHA-256 of manifests.
const (
	hubFolder    = "models--"
	ollamaFolder = "ollama--"
)

// repoFolder is where the cache keeps a repository.
type repoFolder struct {
	path  string
	locks string
}

func (h *Hub) folder(r Ref) repoFolder {
	name := hubFolder + r.Owner + "--" + r.Repo
	if r.Tag != "" {
		name = ollamaFolder + r.Owner + "--" + r.Repo + "--" + r.Tag
	}
	return repoFolder{path: filepath.Join(h.o.Cache, name), locks: filepath.Join(h.o.Cache, ".locks", name)}
}

func (d repoFolder) blob(etag string) string { return filepath.Join(d.path, "blobs", etag) }
func (d repoFolder) lock(etag string) string { return filepath.Join(d.locks, etag+".lock") }
func (d repoFolder) ref() string             { return filepath.Join(d.path, "refs", mainRevision) }

// pointer returns a file of a snapshot.
func (d repoFolder) pointer(commit, file string) string {
	return filepath.Join(d.path, "snapshots", commit, filepath.FromSlash(file))
}

// maxRef bounds the file of a branch; a commit has 40 bytes.
const maxRef = 1024

// main returns the newest commit that was seen; empty: none.
func (d repoFolder) main() (commit string, err error) {
	text, err := readPlain(d.ref(), maxRef)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// setMain notes the newest commit.
func (d repoFolder) setMain(commit string) error {
	if old, err := d.main(); err != nil || old == commit {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(d.ref()), 0o777); err != nil {
		return err
	}
	return replaceFile(d.ref(), []byte(commit))
}

// snapshots returns the commits that the cache has files of: the newest that was
// seen first, then by age.
func (d repoFolder) snapshots() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.path, "snapshots"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	main, err := d.main() // without one, by age alone
	if err != nil {
		return nil, err
	}
	ages := map[string]time.Time{}
	var commits []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.IsDir() {
			commits = append(commits, e.Name())
			ages[e.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(commits, func(a, b string) int {
		if a == main || b == main {
			return cmp.Compare(b2i(b == main), b2i(a == main))
		}
		return ages[b].Compare(ages[a])
	})
	return commits, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// models returns the GGUF files of a snapshot whose blobs are there, and the files of checkpoints.
func (d repoFolder) models(commit string) (files []string, err error) {
	root := filepath.Join(d.path, "snapshots", commit)
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if len(files) > maxFiles {
			return fmt.Errorf("%s has more than %d files", root, maxFiles)
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && (isGGUF(name) || ofCheckpoint(filepath.ToSlash(name))) {
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// link makes a snapshot's file of a blob: a relative link, as huggingface_hub
// makes it, so that the cache can be moved. Where there are no links the file
// itself goes there: moved if it is new, else copied.
func (h *Hub) link(blob, pointer string, isNew bool) error {
	if err := os.MkdirAll(filepath.Dir(pointer), 0o777); err != nil {
		return err
	}
	if err := os.Remove(pointer); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !h.o.Copy {
		target, err := filepath.Rel(filepath.Dir(pointer), blob)
		if err != nil {
			return err
		}
		if os.Symlink(target, pointer) == nil {
			return nil
		}
	}
	if isNew {
		return os.Rename(blob, pointer)
	}
	return copyFile(blob, pointer)
}

// copyFile copies a file whole, or leaves none.
func copyFile(from, to string) (err error) {
	in, err := openPlain(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp := to + ".tmp"
	out, err := openPlain(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(tmp, to)
	}
	if err != nil {
		_ = os.Remove(tmp) // the first error tells more
	}
	return err
}
