package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

// ModelOptions describe a model of random weights.
type ModelOptions struct {
	Shape        string
	Blocks, Head string // storage types of the layers' matrices, and of embedding and output
	Finer        string // of attn_v and ffn_down where llama.cpp's Q4_K_M has more bits; empty: Blocks
	Layers       int    // 0: as many as the shape has
	Seed         uint64 // of the weights
}

// DefaultModelOptions returns a model of a billion weights, ternary in its layers.
func DefaultModelOptions() ModelOptions {
	o := synthetic.DefaultOptions()
	return ModelOptions{Shape: "falcon3-1b", Blocks: o.Blocks.String(), Head: o.Head.String(), Seed: o.Seed}
}

// WriteModel writes a GGUF file of random weights until ctx ends, and leaves no
// half-written one: half a model is none. It returns the file's size; progress goes to errOut, and
// where ctx ended.
func WriteModel(ctx context.Context, path string, o ModelOptions, errOut io.Writer) (size int64, err error) {
	if path == "" {
		return 0, usage.Errorf("--out is required")
	}
	s, err := synthetic.Named(o.Shape)
	if err != nil {
		return 0, usage.Error{Err: err}
	}
	if o.Layers < 0 {
		return 0, usage.Errorf("--layers is %d, want a positive number", o.Layers)
	}
	if o.Layers > 0 {
		s.Layers = o.Layers
	}
	opt, ok := synthetic.DefaultOptions(), false
	opt.Seed = o.Seed
	if opt.Blocks, ok = gguf.TypeNamed(o.Blocks); !ok {
		return 0, usage.Errorf("--type: there is no storage type %q", usage.Brief(o.Blocks))
	}
	if opt.Head, ok = gguf.TypeNamed(o.Head); !ok {
		return 0, usage.Errorf("--head: there is no storage type %q", usage.Brief(o.Head))
	}
	if opt.Finer, ok = gguf.TypeNamed(o.Finer); !ok && o.Finer != "" {
		return 0, usage.Errorf("--finer: there is no storage type %q", usage.Brief(o.Finer))
	}
	total, err := synthetic.Size(s, opt)
	if err != nil {
		return 0, err
	}
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("%s: %w", path, errors.Join(err, os.Remove(path)))
		}
	}()
	meter := &output.Meter{W: errOut, What: "writing " + filepath.Base(path), Bytes: true, Early: true}
	defer meter.End()
	watched := &output.Watched{Context: ctx, W: f, Meter: meter, Total: total}
	w := bufio.NewWriterSize(watched, 1<<20)
	if err = synthetic.Write(w, s, opt); err == nil {
		err = w.Flush()
	}
	if err != nil && ctx.Err() != nil {
		meter.End()
		fmt.Fprintf(errOut, "%s: ended after %s of %s; the file is removed\n", path, output.Bytes(watched.Done), output.Bytes(total))
	}
	return watched.Done, err
}
