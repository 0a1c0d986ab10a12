package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/disk"
)

// The names of a model's files in its directory.
const (
	Single = "model.safetensors"            // all tensors
	Index  = "model.safetensors.index.json" // which file has which, where there are several
)

// The bounds of an index: ten times what the largest models have.
const (
	maxIndex = 64 << 20 // bytes
	maxFiles = 1024
)

// Model is the tensors of a directory. It is open until Close.
type Model struct {
	Tensors []Tensor       // file after file, in the order of their places
	Files   []*disk.Source // in the order of their names

	byName map[string]int
}

// Tensor finds the tensor of that name, or nil.
func (m *Model) Tensor(name string) *Tensor {
	if i, ok := m.byName[name]; ok {
		return &m.Tensors[i]
	}
	return nil
}

// Close closes all files.
func (m *Model) Close() error {
	var failed error
	for _, s := range m.Files {
		failed = errors.Join(failed, s.Close())
	}
	return failed
}

// Open opens the model in a directory: by its index, if there is one.
func Open(dir string) (*Model, error) {
	of, err := readIndex(filepath.Join(dir, Index))
	if errors.Is(err, fs.ErrNotExist) {
		return openAll(dir, []string{Single}, nil)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", Index, err)
	}
	files := slices.Compact(slices.Sorted(maps.Values(of)))
	if len(files) > maxFiles {
		return nil, fmt.Errorf("%s: %w: %d files, at most %d are read", Index, ErrFormat, len(files), maxFiles)
	}
	return openAll(dir, files, of)
}

// openAll opens files, of which of says in which each tensor is; nil: there is one.
func openAll(dir string, files []string, of map[string]string) (*Model, error) {
	m := &Model{byName: map[string]int{}}
	err := m.add(dir, files)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if err != nil {
			break
		}
		if m.Tensor(name) == nil {
			err = fmt.Errorf("%s: %w: tensor %q is not in %s", Index, ErrFormat, brief(name), of[name])
		}
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// add opens files and takes their tensors. What it has opened is m's to close, also after
// an error.
func (m *Model) add(dir string, files []string) error {
	for _, file := range files {
		s, err := disk.Open(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		m.Files = append(m.Files, s)
		tensors, err := parse(s)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, t := range tensors {
			if _, twice := m.byName[t.Name]; twice {
				return fmt.Errorf("%s: tensor %q: %w: it is in another file too", file, t.Name, ErrFormat)
			}
			m.byName[t.Name] = len(m.Tensors)
			m.Tensors = append(m.Tensors, t)
		}
	}
	return nil
}

// readIndex reads which file has which tensor.
func readIndex(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxIndex {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrFormat, maxIndex)
	}
	return ParseIndex(text)
}

// ParseIndex reads an index: the file of each tensor. Names that could lead out of the
// directory are refused.
func ParseIndex(text []byte) (map[string]string, error) {
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if len(index.Files) == 0 {
		return nil, fmt.Errorf("%w: weight_map names no tensor", ErrFormat)
	}
	for _, tensor := range slices.Sorted(maps.Keys(index.Files)) {
		if file := index.Files[tensor]; !plain(file) {
			return nil, fmt.Errorf("%w: weight_map: tensor %q is in %q, which is no name of a safetensors file beside the index", ErrFormat, brief(tensor), brief(file))
		}
	}
	return index.Files, nil
}

// plain tells whether a name is a file's in the same directory, on any system.
func plain(file string) bool {
	return len(file) <= maxName && strings.HasSuffix(file, ".safetensors") && filepath.IsLocal(file) && !strings.ContainsAny(file, `/\:`) && !strings.ContainsRune(file, 0)
}

// OpenFile opens the tensors of one file in a directory.
func OpenFile(dir, file string) (*Model, error) {
	return openAll(dir, []string{file}, nil)
}
