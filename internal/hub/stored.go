package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/lutra-lm/lutra/models/gguf/parts"
)

// Stored is a model of the cache, or what has come of one.
type Stored struct {
	Ref      Ref    // of the first part, if there are several
	Path     string // of the file
	Size     int64  // bytes; of parts that have begun to come
	Modified time.Time
	Missing  int64 // bytes that have not come, of as many
	Parts    int   // files that the model lies in
	Lacking  int   // parts of several that are not complete
}

// List finds the GGUF models and the checkpoints of the cache, by name; companions of them too.
func (h *Hub) List() ([]Stored, error) {
	entries, err := os.ReadDir(h.o.Cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var all []Stored
	for _, e := range entries {
		ref, ok := refOf(e.Name())
		if !ok {
			continue
		}
		d := h.folder(ref)
		here, err := d.stored(ref)
		if err != nil {
			return nil, err
		}
		all = append(all, byModel(here, d.partial(ref))...)
	}
	slices.SortFunc(all, func(a, b Stored) int { return strings.Compare(a.Ref.String(), b.Ref.String()) })
	return all, nil
}

// byModel puts the parts of each model together. Of a part that is there, what
// comes of another version does not count.
func byModel(complete, partial []Stored) (list []Stored) {
	at := map[string]int{} // first part to its model in list
	seen := map[Ref]bool{}
	for i, s := range append(complete, partial...) {
		s.Parts = 1
		if s.Ref.File == "" && i >= len(complete) && slices.ContainsFunc(complete, func(c Stored) bool { return c.Ref == s.Ref }) {
			continue
		}
		if k, known := at[s.Ref.ID()]; known && s.Ref.File == "" {
			list[k].Size, list[k].Missing = list[k].Size+s.Size, list[k].Missing+s.Missing
			continue
		} else if s.Ref.File == "" {
			at[s.Ref.ID()] = len(list)
		}
		n, split := parts.Parse(s.Ref.File)
		if !split {
			list = append(list, s)
			continue
		}
		if seen[s.Ref] {
			continue
		}
		seen[s.Ref] = true
		first := n.Part(1)
		k, known := at[first]
		if !known {
			k, at[first] = len(list), len(list)
			list = append(list, Stored{Ref: s.Ref.with(first), Path: s.Path, Parts: n.Count, Lacking: n.Count})
		}
		m := &list[k]
		if n.No == 1 {
			m.Path = s.Path
		}
		m.Size, m.Missing = m.Size+s.Size, m.Missing+s.Missing
		if s.Modified.After(m.Modified) {
			m.Modified = s.Modified
		}
		if i < len(complete) {
			m.Lacking--
		}
	}
	return list
}

// refOf reads the name of a repository's folder.
func refOf(folder string) (Ref, bool) {
	if rest, ok := strings.CutPrefix(folder, ollamaFolder); ok {
		words := strings.Split(rest, "--")
		if len(words) != 3 || slices.ContainsFunc(words, func(w string) bool { return !validOllamaWord(w) }) {
			return Ref{}, false
		}
		return Ref{Owner: words[0], Repo: words[1], Tag: words[2]}, true
	}
	rest, ok := strings.CutPrefix(folder, hubFolder)
	owner, repo, two := strings.Cut(rest, "--")
	return Ref{Owner: owner, Repo: repo}, ok && two && validRepoWord(owner) && validRepoWord(repo)
}

// stored returns the files of all snapshots; of several versions the newest.
func (d repoFolder) stored(ref Ref) (list []Stored, err error) {
	commits, err := d.snapshots()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, commit := range commits {
		files, err := d.models(commit)
		if err != nil {
			return nil, err
		}
		if s, ok := d.storedCheckpoint(ref, commit, files); ok && !seen[configFile] {
			seen[configFile] = true
			list = append(list, s)
		}
		for _, f := range filter(files, isGGUF) {
			path := d.pointer(commit, f)
			if info, err := os.Stat(path); err == nil && !seen[f] {
				seen[f] = true
				list = append(list, Stored{Ref: ref.with(f), Path: path, Size: info.Size(), Modified: info.ModTime()})
			}
		}
	}
	return list, nil
}

// partial returns the files of which a part has come.
func (d repoFolder) partial(ref Ref) (list []Stored) {
	for _, path := range ending(filepath.Join(d.path, "blobs"), incomplete) {
		info, err := os.Stat(path)
		j := readAnyJournal(path + ".json")
		if err != nil || j == nil || validFile(j.File) != nil {
			continue
		}
		if ofCheckpoint(j.File) { // which has the name of its repository
			j.File = ""
		}
		list = append(list, Stored{Ref: ref.with(j.File), Path: path, Size: j.Size, Modified: info.ModTime(), Missing: j.Size - j.done()})
	}
	return list
}

// ending returns the files of a folder whose names end in suffix; none where there is no
// such folder.
func ending(dir, suffix string) (paths []string) {
	entries, _ := os.ReadDir(dir) // what can be read
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// Remove deletes a model of the cache, or with neither File nor Quant all that
// there is of a repository, and returns how many bytes that frees.
func (h *Hub) Remove(ref Ref) (freed int64, err error) {
	d := h.folder(ref)
	if err := d.idle(); err != nil {
		return 0, err
	}
	before, err := diskUse(d.path)
	if err != nil {
		return 0, fmt.Errorf("%s %w", ref, ErrAbsent)
	}
	if ref.File == "" && ref.Quant == "" {
		err = os.RemoveAll(d.path)
	} else {
		err = d.remove(ref)
	}
	after, _ := diskUse(d.path) // nothing is left where there is no folder
	return before - after, err
}

// idle says who uses a repository's folder, if anybody does.
func (d repoFolder) idle() error {
	for _, path := range ending(d.locks, ".lock") {
		if checkPlain(path) != nil {
			continue // nobody locks what is no file
		}
		l := flock.New(path)
		free, err := l.TryLock()
		_ = l.Close() // it was only tried
		if err == nil && !free {
			return fmt.Errorf("%s is being downloaded by another process", filepath.Base(d.path))
		}
	}
	return nil
}

// remove deletes a model, all its parts, from all snapshots, and the blobs that no
// snapshot links to then.
func (d repoFolder) remove(ref Ref) error {
	here, err := d.stored(ref)
	if err != nil {
		return err
	}
	begun := d.partial(ref)
	var names, firsts []string
	for _, s := range append(here, begun...) {
		names, firsts = append(names, s.Ref.File), append(firsts, parts.First(s.Ref.File))
	}
	slices.Sort(firsts)
	firsts = slices.Compact(firsts)
	file := parts.First(ref.File)
	if !slices.Contains(firsts, file) { // a companion can be removed by its own name
		if file, err = choose(ref, firsts); err != nil {
			return err
		}
	}
	commits, err := d.snapshots()
	if err != nil {
		return err
	}
	ofModel := func(name string) bool { return parts.First(name) == file }
	var blobs []string
	for _, commit := range commits {
		for _, name := range filter(names, ofModel) {
			pointer := d.pointer(commit, name)
			if blob, ok := d.linked(pointer); ok {
				blobs = append(blobs, blob)
			}
			if err := os.Remove(pointer); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			d.prune(filepath.Dir(pointer))
		}
	}
	for _, p := range begun {
		if ofModel(p.Ref.File) {
			if err := errors.Join(os.Remove(p.Path), os.Remove(p.Path+".json")); err != nil {
				return err
			}
		}
	}
	return d.removeUnlinked(blobs)
}

// linked returns the blob that a snapshot's file links to.
func (d repoFolder) linked(pointer string) (blob string, ok bool) {
	target, err := os.Readlink(pointer)
	if err != nil {
		return "", false
	}
	if blob = filepath.Clean(target); !filepath.IsAbs(target) {
		blob = filepath.Join(filepath.Dir(pointer), target)
	}
	return blob, filepath.Dir(blob) == filepath.Join(d.path, "blobs")
}

// removeUnlinked deletes those blobs that nothing links to.
func (d repoFolder) removeUnlinked(blobs []string) error {
	kept := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(d.path, "snapshots"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSymlink != 0 {
			if blob, ok := d.linked(p); ok {
				kept[blob] = true
			}
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, b := range blobs {
		if kept[b] {
			continue
		}
		if err := os.Remove(b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(kept) == 0 && len(blobs) > 0 {
		return d.removeEmpty()
	}
	return nil
}

// prune deletes folders of a snapshot that have become empty.
func (d repoFolder) prune(dir string) {
	for root := filepath.Join(d.path, "snapshots"); dir != root && len(dir) > len(root); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // it is not empty
			return
		}
	}
}

// removeEmpty deletes what is left of a repository without files.
func (d repoFolder) removeEmpty() error {
	for _, part := range []string{"blobs", "snapshots"} {
		if left, err := os.ReadDir(filepath.Join(d.path, part)); err == nil && len(left) > 0 {
			return nil
		}
	}
	return os.RemoveAll(d.path)
}

// diskUse adds up the bytes of a folder's plain files; it follows no links.
func diskUse(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n, err
}
