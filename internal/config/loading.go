package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lutra-lm/lutra/internal/settings"
	"github.com/lutra-lm/lutra/models"
	numbered "github.com/lutra-lm/lutra/models/gguf/parts"
	"github.com/lutra-lm/lutra/models/huggingface"
)

// Loading says which models can be served besides those that are listed, and how many are in
// memory.
type Loading struct {
	Dir       string `yaml:"dir"`        // folder of GGUF files; empty: none
	Cache     bool   `yaml:"cache"`      // models that have been pulled
	Memory    string `yaml:"memory"`     // bytes with a unit ("12GiB") that all models take; "auto": what is free
	KeepAlive string `yaml:"keep_alive"` // how long a model stays after its last request; "forever": until room is wanted
	Queue     int    `yaml:"queue"`      // requests that may wait for models to load
}

// forever is the KeepAlive of models that stay until room is wanted.
const forever = "forever"

// Bytes returns the memory that models may take, 0 for "auto".
func (l *Loading) Bytes() (int64, error) { return size(l.Memory) }

// Stays returns how long models stay after their last request; negative: until room is wanted.
func (l *Loading) Stays() (time.Duration, error) { return stays(l.KeepAlive) }

// Stays returns what Loading.Stays does, for the model; nil: as that says.
func (m *Model) Stays() (*time.Duration, error) {
	if m.KeepAlive == "" {
		return nil, nil
	}
	d, err := stays(m.KeepAlive)
	return &d, err
}

func stays(text string) (time.Duration, error) {
	if text == forever || text == "" {
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is neither %s nor a time such as 5m or 0s", text, forever)
	}
	return d, nil
}

// mostWaiting bounds Loading.Queue.
const mostWaiting = 1 << 16

// validate returns the faults, each with the name of its setting.
func (l *Loading) validate() (faults []error) {
	if _, err := l.Bytes(); err != nil {
		faults = append(faults, fmt.Errorf("memory: %w", err))
	}
	if _, err := l.Stays(); err != nil {
		faults = append(faults, fmt.Errorf("keep_alive: %w", err))
	}
	if l.Queue < 1 || l.Queue > mostWaiting {
		faults = append(faults, fmt.Errorf("queue: %d is outside 1..%d", l.Queue, mostWaiting))
	}
	if l.Dir != "" {
		if info, err := os.Stat(l.Dir); err != nil || !info.IsDir() {
			faults = append(faults, fmt.Errorf("dir: %s is not a folder", l.Dir))
		}
	}
	return faults
}

// mostFiles bounds the models of a folder.
const mostFiles = 1 << 12

// Within returns the models of Dir and of the folders in it, by name: files that end in .gguf, of
// models in parts the first, and folders of safetensors. What goes with a vision model is none.
func (l *Loading) Within() (list []Model, err error) {
	if l.Dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return nil, err
	}
	paths := filesOf(l.Dir, entries)
	for _, e := range entries {
		if sub := filepath.Join(l.Dir, e.Name()); e.IsDir() {
			within, err := os.ReadDir(sub)
			if err != nil {
				return nil, err
			}
			if huggingface.Is(sub) {
				paths = append(paths, sub)
			}
			paths = append(paths, filesOf(sub, within)...)
		}
	}
	if len(paths) > mostFiles {
		return nil, fmt.Errorf("%s has %d models, more than %d", l.Dir, len(paths), mostFiles)
	}
	for _, path := range paths {
		list = append(list, Model{Path: path, Name: models.NameOf(path)})
	}
	slices.SortStableFunc(list, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// filesOf returns the paths of models in a folder.
func filesOf(dir string, entries []os.DirEntry) (paths []string) {
	for _, e := range entries {
		name := e.Name()
		if n, split := numbered.Parse(name); filepath.Ext(name) != ".gguf" || split && n.No != 1 || strings.HasPrefix(name, "mmproj") {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}
	return paths
}

// Differences returns the keys of settings that differ, except the settings of models and of where
// they are found.
func (c *Config) Differences(other *Config) (keys []string) {
	mine, its := settings.Keys(c), settings.Keys(other)
	for _, key := range slices.Sorted(maps.Keys(mine)) {
		if key != "models" && key != "loading.dir" && key != "loading.cache" && !reflect.DeepEqual(mine[key].Interface(), its[key].Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}
