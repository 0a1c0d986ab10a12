package gguf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/disk"
	"github.com/lutra-lm/lutra/models/gguf/parts"
)

// openRest opens the other parts of the model whose first lies at path, and adds
// their tensors. What it has opened is f's to close, also after an error.
func (f *File) openRest(path string) error {
	name, err := f.partName(path)
	if err != nil {
		return err
	}
	from := make([]int, len(f.Tensors), 2*len(f.Tensors)) // the part of each tensor, for errors
	for no := 2; no <= name.Count; no++ {
		file := name.Part(no)
		s, err := disk.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: part %d of %d is missing: %w", file, no, name.Count, fs.ErrNotExist)
		} else if err != nil {
			return err
		}
		f.files = append(f.files, s)
		part, err := parse(s, f)
		if err == nil {
			err = f.belongs(part, no)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for i := range part.Tensors {
			t := part.Tensors[i]
			if at, twice := f.byName[t.Name]; twice {
				return fmt.Errorf("%s: tensor %q: %w: it is in %s too", file, t.Name, ErrFormat, filepath.Base(name.Part(from[at]+1)))
			}
			f.byName[t.Name] = len(f.Tensors)
			f.Tensors, from = append(f.Tensors, t), append(from, no-1)
		}
	}
	if n, ok := f.Metadata.Uint(keySplitTensors); ok && n != uint64(len(f.Tensors)) {
		return fmt.Errorf("%s: key %q: %w: %d tensors are announced, the %d parts hold %d", path, keySplitTensors, ErrFormat, n, name.Count, len(f.Tensors))
	}
	for key := range f.Metadata { // they are of the files, not of the model
		if strings.HasPrefix(key, keySplit) {
			delete(f.Metadata, key)
		}
	}
	return nil
}

// partName holds the name of a first part against what it says of itself.
func (f *File) partName(path string) (parts.Name, error) {
	count := f.parts()
	no, ok := f.Metadata.Uint(keySplitNo)
	name, named := parts.Parse(path)
	switch {
	case count > parts.Max:
		return name, fmt.Errorf("%s: key %q: %w: %d parts, at most %d are read", path, keySplitCount, ErrUnsupported, count, parts.Max)
	case !ok || no >= count:
		return name, fmt.Errorf("%s: key %q: %w: %v is no part of %d", path, keySplitNo, ErrFormat, f.Metadata[keySplitNo], count)
	case !named:
		return name, fmt.Errorf("%s: %w: it is one of %d parts, whose names must end in -%05d-of-%05d.gguf, so that the others are found", path, ErrUnsupported, count, no+1, count)
	case uint64(name.Count) != count || uint64(name.No) != no+1:
		return name, fmt.Errorf("%s: %w: by its name it is part %d of %d, by its keys part %d of %d", path, ErrFormat, name.No, name.Count, no+1, count)
	case no > 0:
		return name, fmt.Errorf("%s: %w: it is part %d of %d; open the first, %s", path, ErrUnsupported, no+1, count, filepath.Base(name.Part(1)))
	}
	return name, nil
}

// belongs reports why a file is not part no of f.
func (f *File) belongs(part *File, no int) error {
	if n := part.parts(); n != f.parts() {
		return fmt.Errorf("key %q: %w: it is of a model in %d parts, the first file is of one in %d", keySplitCount, ErrFormat, n, f.parts())
	}
	if n, ok := part.Metadata.Uint(keySplitNo); !ok || n != uint64(no-1) {
		return fmt.Errorf("key %q: %w: it is %v, want %d: the files are in another order than their names", keySplitNo, ErrFormat, part.Metadata[keySplitNo], no-1)
	}
	for _, key := range slices.Sorted(maps.Keys(part.Metadata)) {
		v := part.Metadata[key]
		own := strings.HasPrefix(key, keySplit) && key != keySplitTensors || key == keyAlignment
		if first, ok := f.Metadata[key]; ok && !own && !reflect.DeepEqual(v, first) {
			return fmt.Errorf("key %q: %w: it is %s, in the first part %s: the files are of different models", key, ErrFormat, brief(v), brief(first))
		}
	}
	for _, number := range slices.Sorted(maps.Keys(part.types)) {
		typ := part.types[number]
		if other, ok := f.types[number]; ok && other != typ {
			return fmt.Errorf("%w: storage type %d stands for %v, in earlier parts for %v", ErrUnsupported, uint32(number), typ, other)
		}
		if f.types == nil {
			f.types = map[Type]Type{}
		}
		f.types[number] = typ
	}
	return nil
}

// brief returns a value for a message.
func brief(v any) string { return clip(fmt.Sprint(v)) }
