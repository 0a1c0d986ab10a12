package gguf

import "github.com/lutra-lm/lutra/models/disk"

// File is a parsed GGUF file.
type File struct {
	Version  int // 2 or 3
	Metadata Metadata
	Tensors  []Tensor // in file order

	byName map[string]int
	files  []*disk.Source // all parts
	first  *File          // of a part: that with the metadata of all; nil: this one
	types  map[Type]Type  // what each number of several meanings stands for here
}

// Tensor finds the tensor of that name, or nil.
func (f *File) Tensor(name string) *Tensor {
	i, ok := f.byName[name]
	if !ok {
		return nil
	}
	return &f.Tensors[i]
}

// Parts returns the number of files that f was read from.
func (f *File) Parts() int { return len(f.files) }

// The keys that make several files one model. The first file has the metadata of
// all, the others these alone.
const (
	keySplit        = "split."                   // begins them
	keySplitNo      = keySplit + "no"            // of this part, the first being 0
	keySplitCount   = keySplit + "count"         // of parts
	keySplitTensors = keySplit + "tensors.count" // in all parts
	keyAlignment    = "general.alignment"
)

// parts returns how many files the model has according to this one.
func (f *File) parts() uint64 {
	n, _ := f.Metadata.Uint(keySplitCount)
	return n
}
