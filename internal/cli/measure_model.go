package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// modelOptions describe a model of random weights.
type modelOptions struct {
	shape        string
	blocks, head string // storage types of the layers' matrices, and of embedding and output
	seed         uint64 // of the weights
}

// defaultModelOptions are a model of a billion weights, ternary in its layers.
func defaultModelOptions() modelOptions {
	o := synthetic.DefaultOptions()
	return modelOptions{shape: "falcon3-1b", blocks: o.Blocks.String(), head: o.Head.String(), seed: o.Seed}
}

// writeModel writes a GGUF file of random weights, and leaves no half-written one behind.
func writeModel(path string, o modelOptions) (err error) {
	if path == "" {
		return usage.Errorf("--out is required")
	}
	s, err := synthetic.Named(o.shape)
	if err != nil {
		return usage.Error{Err: err}
	}
	opt, ok := synthetic.DefaultOptions(), false
	opt.Seed = o.seed
	if opt.Blocks, ok = gguf.TypeNamed(o.blocks); !ok {
		return usage.Errorf("--type: there is no storage type %q", usage.Brief(o.blocks))
	}
	if opt.Head, ok = gguf.TypeNamed(o.head); !ok {
		return usage.Errorf("--head: there is no storage type %q", usage.Brief(o.head))
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
