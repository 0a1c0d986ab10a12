package gguf

import (
	"fmt"

	"github.com/lutra-lm/lutra/models/disk"
)

// Assemble makes a File of metadata and tensors that come from files of another format; each
// tensor is At its bytes. All that they are made of is in files, which Unchanged and
// Digest look at in that order, and which belong to the File from now on. Its Version is 0.
func Assemble(md Metadata, tensors []Tensor, files []*disk.Source) (*File, error) {
	f := &File{Metadata: md, Tensors: tensors, byName: make(map[string]int, len(tensors)), files: files}
	for i := range tensors {
		t := &tensors[i]
		if _, twice := f.byName[t.Name]; twice {
			return nil, fmt.Errorf("gguf: tensor %q: %w: the name occurs twice", clip(t.Name), ErrFormat)
		}
		if len(t.Name) > maxTensorName || len(t.Dims) > maxDims {
			return nil, fmt.Errorf("gguf: tensor %q: %w: a name of %d bytes, or a shape of %d dimensions", clip(t.Name), ErrFormat, len(t.Name), len(t.Dims))
		}
		if _, err := t.Type.Size(t.Dims); err != nil {
			return nil, fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
		}
		f.byName[t.Name] = i
	}
	return f, nil
}

// At returns t with its blocks in s, from offset on.
func (t Tensor) At(s *disk.Source, offset int64) Tensor {
	t.put(s, offset)
	return t
}
