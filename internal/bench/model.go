package bench

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// ModelOptions describe a model of random weights.
type ModelOptions struct {
	Shape        string
	Blocks, Head string // storage types of the layers' matrices, and of embedding and output
	Layers       int    // 0: as many as the shape has
	Seed         uint64 // of the weights
}

// DefaultModelOptions are a model of a billion weights, ternary in its layers.
func DefaultModelOptions() ModelOptions {
	o := synthetic.DefaultOptions()
	return ModelOptions{Shape: "falcon3-1b", Blocks: o.Blocks.String(), Head: o.Head.String(), Seed: o.Seed}
}

// WriteModel writes a GGUF file of random weights, and leaves no half-written one behind.
func WriteModel(path string, o ModelOptions) (err error) {
	if path == "" {
		return usage.Errorf("--out is required")
	}
	s, err := synthetic.Named(o.Shape)
	if err != nil {
		return usage.Error{Err: err}
	}
	if o.Layers < 0 {
		return usage.Errorf("--layers is %d, want a positive number", o.Layers)
	}
	if o.Layers > 0 {
		s.Layers = o.Layers
	}
	opt, ok := synthetic.DefaultOptions(), false
	opt.Seed = o.Seed
	if opt.Blocks, ok = gguf.TypeNamed(o.Blocks); !ok {
		return usage.Errorf("--type: there is no storage type %q", usage.Brief(o.Blocks))
	}
	if opt.Head, ok = gguf.TypeNamed(o.Head); !ok {
		return usage.Errorf("--head: there is no storage type %q", usage.Brief(o.Head))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("%s: %w", path, errors.Join(err, os.Remove(path)))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := synthetic.Write(w, s, opt); err != nil {
		return err
	}
	return w.Flush()
}
