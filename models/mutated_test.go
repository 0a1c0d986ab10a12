package models

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lutra-lm/lutra/internal/mutate"
	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models/gguf"
)

// mutations are good files, and what is done with others that are like them.
type mutations struct {
	good []string                           // in words
	try  func(t *testing.T, choices []byte) // loads one that the choices make, and computes with it
}

// chosen returns a good file of n, and what is changed of it.
func chosen(n int, choices []byte) (int, *mutate.Choices) {
	if len(choices) == 0 {
		return 0, mutate.New(nil)
	}
	return int(choices[0]) % n, mutate.New(choices[1:])
}

// mutatedFiles are GGUF files of all architectures: models that write, embed, rank and score.
func mutatedFiles(t testing.TB) mutations {
	pool := pool.New(1)
	t.Cleanup(pool.Close)
	files := tinyFiles(t)
	names := slices.Sorted(maps.Keys(files))
	return mutations{names, func(t *testing.T, choices []byte) {
		i, c := chosen(len(names), choices)
		data := mutate.GGUF(files[names[i]], unsaid, c)
		f, err := gguf.Parse(data)
		if err != nil {
			return
		}
		tryWithin(t, pool, f, len(data), fmt.Sprintf("%s with %x", names[i], choices))
	}}
}

// mutatedDirectories are directories of safetensors.
func mutatedDirectories(t testing.TB) mutations {
	pool := pool.New(1)
	t.Cleanup(pool.Close)
	found, err := filepath.Glob(filepath.Join(directories, "*", "config.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v", directories, err)
	}
	var names []string
	all := t.TempDir()
	for _, config := range found {
		name := filepath.Base(filepath.Dir(config))
		names = append(names, name)
		if err := os.CopyFS(filepath.Join(all, name), os.DirFS(filepath.Dir(config))); err != nil {
			t.Fatal(err)
		}
	}
	return mutations{names, func(t *testing.T, choices []byte) {
		i, c := chosen(len(names), choices)
		dir := filepath.Join(all, names[i])
		size, restore := inDirectory(t, dir, c)
		defer restore()
		f, err := Open(dir)
		if err != nil {
			regular(t, fmt.Sprintf("%s with %x", names[i], choices), err)
			return
		}
		defer f.Close()
		tryWithin(t, pool, f, size, fmt.Sprintf("%s with %x", names[i], choices))
	}}
}

// inDirectory changes a file of a directory, and returns how many bytes all have.
func inDirectory(t *testing.T, dir string, c *mutate.Choices) (size int, restore func()) {
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	path := files[c.Below(len(files))]
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := good
	switch filepath.Ext(path) {
	case ".json":
		bad = mutate.JSON(good, c)
	case ".safetensors":
		bad = mutate.Safetensors(good, c)
	}
	put(t, path, bad)
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			size += int(info.Size())
		}
	}
	return size, func() { put(t, path, good) }
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// mutatedAdapters are adapters, GGUF files and directories, each with the model that it is of.
func mutatedAdapters(t testing.TB) mutations {
	all := t.TempDir()
	bases := map[string]*Bundle{}
	var paths []string
	for _, name := range []string{"llama-all.gguf", "qwen3_moe-modules.gguf", "llama-all", "llama-ranks", "llama-some", "phi3-fused", "qwen3_moe-experts", "qwen3_moe-modules", "deepseek2-latent", "deepseek2-v3-all"} {
		from, to := filepath.Join(loras, name), filepath.Join(all, name)
		base, _, _ := strings.Cut(name, "-")
		if strings.HasPrefix(name, "deepseek2-v3") {
			base = "deepseek2-v3"
		}
		if bases[name] = bases[base]; bases[name] == nil {
			bases[base] = loadBase(t, base, 1, LoadOptions{})
			bases[name] = bases[base]
		}
		var err error
		if isDirectory(from) {
			err = os.CopyFS(to, os.DirFS(from))
		} else {
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, to)
	}
	return mutations{paths, func(t *testing.T, choices []byte) {
		i, c := chosen(len(paths), choices)
		path := paths[i]
		b := bases[filepath.Base(path)]
		if isDirectory(path) {
			_, restore := inDirectory(t, path, c)
			defer restore()
		} else {
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, err := gguf.Parse(slices.Clone(good))
			if err != nil {
				t.Fatal(err)
			}
			defer put(t, path, good)
			put(t, path, mutate.GGUF(f, nil, c))
		}
		what := fmt.Sprintf("%s with %x", filepath.Base(path), choices)
		guarded(t, what, func() {
			a, err := b.LoadAdapter("a", path, nil)
			if err != nil {
				regular(t, what, err)
				return
			}
			defer a.Close()
			v, err := b.Variant(Use{a, 1})
			if err != nil {
				return
			}
			compute(b, v)
		})
	}}
}

// tryWithin tries a file, which must not take memory out of proportion to its size.
func tryWithin(t *testing.T, pool *pool.Pool, f *gguf.File, size int, what string) {
	if took := tryModel(t, pool, f, what); took > 100*uint64(size)+64<<20 {
		t.Errorf("%s: %d MiB are allocated for a file of %d KiB", what, took>>20, size>>10)
	}
}

var mutated = map[string]func(testing.TB) mutations{"files": mutatedFiles, "directories": mutatedDirectories, "adapters": mutatedAdapters}

func TestHostileModelsAreRefusedOrCompute(t *testing.T) {
	sweep.Full(t)
	for name, all := range mutated {
		t.Run(name, func(t *testing.T) {
			m := all(t)
			for seed := range sweep.Of(t, 400, 4000) {
				m.try(t, binary.LittleEndian.AppendUint64([]byte{byte(seed)}, rand.New(rand.NewPCG(uint64(seed), 0)).Uint64()))
			}
		})
	}
}

// fuzzed tries what the fuzzer's bytes choose.
func fuzzed(f *testing.F, m mutations) {
	for i := range m.good {
		f.Add([]byte{byte(i)})
	}
	f.Fuzz(m.try)
}

func FuzzHostileFiles(f *testing.F)       { fuzzed(f, mutatedFiles(f)) }
func FuzzHostileDirectories(f *testing.F) { fuzzed(f, mutatedDirectories(f)) }
func FuzzHostileAdapters(f *testing.F)    { fuzzed(f, mutatedAdapters(f)) }
