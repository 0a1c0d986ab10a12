package offload

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Folder is where the files of all models are. Each process has its own for the same folder.
type Folder struct {
	path  string
	size  int64
	keep  time.Duration
	log   zerolog.Logger
	now   func() time.Time
	write func(path string, data []byte) error

	mu      sync.Mutex // one at a time evicts
	scanned time.Time  // when the files were last counted
	bytes   atomic.Int64
	files   atomic.Int64
	evicted atomic.Int64
	failing struct {
		sync.Mutex
		until time.Time // when it is tried again
		said  bool
	}
}

// NewFolder returns the folder of settings, which must be valid. It is made when something is written.
func NewFolder(s Settings, log zerolog.Logger) *Folder {
	return &Folder{path: s.Path, size: s.bytes(), keep: s.Keep, log: log, now: time.Now, write: writeFile}
}

// FolderStats count the files of all models, as last counted, and those that this process has evicted.
type FolderStats struct{ Bytes, Files, Evicted int64 }

// Stats counts what there is.
func (f *Folder) Stats() FolderStats {
	return FolderStats{f.bytes.Load(), f.files.Load(), f.evicted.Load()}
}

// Bounds of what is read of a folder that others may have filled.
const (
	mostModels = 1 << 10
	mostFiles  = 1 << 20
	mostAbout  = 64 << 10
)

// Times of a folder.
const (
	rescan  = time.Minute // how long a count of files holds
	silence = time.Minute // how long nothing is written after that has failed
	stale   = time.Hour   // how old a partial file is whose writer has been killed
)

// modelPattern matches the folders of models.
var modelPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)

// aboutName is the file that says what a model is, for people.
const aboutName = "model.json"

// About describes the model of some files.
type About struct {
	Model   string `json:"model"`  // the name that it was served by
	SHA256  string `json:"sha256"` // of its file
	KV      string `json:"kv"`
	Kernels string `json:"kernels"`
	Build   string `json:"build"` // the beginning of the program's SHA-256
}

// dirOf returns the folder of a model.
func (f *Folder) dirOf(model Hash) string {
	return filepath.Join(f.path, hex.EncodeToString(model[:16]))
}

// prepare makes the folder of a model, and says in it what the model is.
func (f *Folder) prepare(dir string, about About) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, aboutName)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'))
}

// entry is a file of a model.
type entry struct {
	path  string
	name  string
	depth int
	bytes int64
	used  time.Time
}

// models returns the folders of models.
func (f *Folder) models() (dirs []string, err error) {
	err = each(f.path, mostModels, func(e fs.DirEntry) {
		if e.IsDir() && modelPattern.MatchString(e.Name()) {
			dirs = append(dirs, filepath.Join(f.path, e.Name()))
		}
	})
	return dirs, err
}

// entries returns the files of a model, and removes partial ones whose writer is gone.
func (f *Folder) entries(dir string) (list []entry, err error) {
	err = each(dir, mostFiles, func(e fs.DirEntry) {
		depth, ours := depthOf(e.Name())
		left := strings.HasPrefix(e.Name(), partial)
		if !ours && !left {
			return
		}
		info, err := e.Info()
		if regular(info, err) != nil {
			return
		}
		path := filepath.Join(dir, e.Name())
		if left {
			if f.now().Sub(info.ModTime()) > stale {
				_ = os.Remove(path) // another may have
			}
			return
		}
		used := info.ModTime()
		if used.After(f.now()) { // of a clock that was wrong
			used = f.now()
		}
		list = append(list, entry{path, e.Name(), depth, info.Size(), used})
	})
	return list, err
}

// each calls do with the entries of a folder, most of them at most.
func each(dir string, most int, do func(fs.DirEntry)) error {
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("offload: %s is no folder", dir)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // only read
	for n := 0; n < most; {
		list, err := d.ReadDir(256)
		for _, e := range list {
			do(e)
		}
		n += len(list)
		if err != nil || len(list) == 0 {
			break
		}
	}
	return nil
}

// makeRoom removes what is too old, and if more bytes would exceed the size, what was not used for the longest time:
// of a prefix the end first. It returns the names that there are afterwards if it has looked; nil: it has not.
func (f *Folder) makeRoom(more int64) (names map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now().Sub(f.scanned) < rescan && f.bytes.Load()+more <= f.size {
		return nil
	}
	f.scanned = f.now()
	f.removeDigests(f.now().Add(-f.keep))
	dirs, _ := f.models() // none, if it cannot be read
	var all []entry
	for _, dir := range dirs {
		list, _ := f.entries(dir)
		if len(list) == 0 {
			f.removeModel(dir)
		}
		all = append(all, list...)
	}
	total := int64(0)
	for _, e := range all {
		total += e.bytes
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(a.used.Truncate(time.Second).Compare(b.used.Truncate(time.Second)), cmp.Compare(b.depth, a.depth))
	})
	goal := f.size
	if total+more > f.size {
		goal -= f.size / 20 // so that the next file needs no room
	}
	names = map[string]bool{}
	for _, e := range all {
		old := f.now().Sub(e.used) > f.keep
		if !old && total+more <= goal {
			names[e.name] = true
			continue
		}
		if err := os.Remove(e.path); err == nil {
			f.evicted.Add(1)
		} else if !errors.Is(err, fs.ErrNotExist) {
			names[e.name] = true
			continue
		}
		total -= e.bytes
	}
	f.bytes.Store(total)
	f.files.Store(int64(len(names)))
	return names
}

// removeModel removes the folder of a model that has had no files for long.
func (f *Folder) removeModel(dir string) {
	about := filepath.Join(dir, aboutName)
	if info, err := os.Lstat(about); err == nil && f.now().Sub(info.ModTime()) > f.keep {
		_ = os.Remove(about)
		_ = os.Remove(dir) // fails where others have put something
	}
}

// put writes a file of a model. After an error it writes nothing for a while.
func (f *Folder) put(dir, name string, about About, data []byte) error {
	f.failing.Lock()
	defer f.failing.Unlock()
	if f.now().Before(f.failing.until) {
		return errSilent
	}
	err := f.prepare(dir, about)
	if err == nil {
		err = f.write(filepath.Join(dir, name), data)
	}
	if err != nil {
		f.failing.until = f.now().Add(silence)
		if !f.failing.said {
			f.failing.said = true
			f.log.Warn().Err(err).Msg("prefixes cannot be written to kv.disk.path; answers go on without, and it is tried again each minute")
		}
		return err
	}
	f.bytes.Add(int64(len(data)))
	f.files.Add(1)
	f.failing.said = false
	return nil
}

// errSilent says that writing has failed a moment ago.
var errSilent = errors.New("offload: nothing is written for now")

// Model describes the files of one model.
type Model struct {
	About
	Name  string // of its folder
	Files int
	Bytes int64
	Used  time.Time // the last time
}

// List returns what the folder holds, the latest used first. A folder that is not there holds nothing.
func (f *Folder) List() (list []Model, err error) {
	dirs, err := f.models()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, dir := range dirs {
		m := Model{Name: filepath.Base(dir), About: readAbout(dir)}
		entries, err := f.entries(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			m.Files++
			m.Bytes += e.bytes
			if e.used.After(m.Used) {
				m.Used = e.used
			}
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Model) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Name, b.Name)) })
	return list, err
}

// readAbout reads what a folder says of its model; empty: nothing that can be read.
func readAbout(dir string) (a About) {
	path := filepath.Join(dir, aboutName)
	if info, err := os.Lstat(path); regular(info, err) != nil || info.Size() > mostAbout {
		return a
	}
	text, err := os.ReadFile(path)
	if err == nil {
		_ = json.Unmarshal(text, &a) // it is for people alone
	}
	return a
}

// Remove removes the files of the models of these names, of all if there are none, that were not used since a time; the zero
// time: all. It leaves others' files where they are.
func (f *Folder) Remove(models []string, since time.Time) (files int, bytes int64, err error) {
	if len(models) == 0 {
		f.removeDigests(since)
	}
	list, err := f.List()
	for _, m := range list {
		if len(models) > 0 && !slices.Contains(models, m.Model) {
			continue
		}
		dir := filepath.Join(f.path, m.Name)
		entries, listErr := f.entries(dir)
		err = errors.Join(err, listErr)
		left := 0
		for _, e := range entries {
			if !since.IsZero() && e.used.After(since) {
				left++
				continue
			}
			if removeErr := os.Remove(e.path); removeErr == nil {
				files++
				bytes += e.bytes
			} else if !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
		if left == 0 {
			_ = os.Remove(filepath.Join(dir, aboutName))
			_ = os.Remove(dir)
		}
	}
	return files, bytes, err
}
