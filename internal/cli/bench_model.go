package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/synthetic"
)

func newBenchModel() *cobra.Command {
	var shape, blocks, head, out string
	opt := synthetic.DefaultOptions()
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Write a GGUF file of random weights, for measuring any engine",
		Long: `Writes a llama-architecture model of a known shape with random weights, the same
bytes for the same seed everywhere: what is needed to hold two engines against each
other without any download. Speed does not depend on the values of weights.`,
		Example: `  lutra bench model --shape falcon3-1b --out falcon3-1b-tq2_0.gguf
  lutra bench model --shape bitnet-2b --type Q4_0 --head Q6_K --out bitnet-2b-q4_0.gguf`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage.Errorf("--out is required")
			}
			s, err := synthetic.Named(shape)
			if err != nil {
				return usage.Error{Err: err}
			}
			var ok bool
			if opt.Blocks, ok = gguf.TypeNamed(blocks); !ok {
				return usage.Errorf("--type: there is no storage type %q", usage.Brief(blocks))
			}
			if opt.Head, ok = gguf.TypeNamed(head); !ok {
				return usage.Errorf("--head: there is no storage type %q", usage.Brief(head))
			}
			return writeSynthetic(out, s, opt)
		},
	}
	f := cmd.Flags()
	wordVar(f, &shape, "shape", "falcon3-1b", shapeNames(), "`SHAPE` of the model")
	f.StringVar(&blocks, "type", opt.Blocks.String(), "storage `type` of the layers' matrices")
	f.StringVar(&head, "head", opt.Head.String(), "storage `type` of embedding and output matrix")
	f.Uint64Var(&opt.Seed, "seed", opt.Seed, "of the weights")
	f.StringVarP(&out, "out", "o", "", "`FILE` to write")
	return cmd
}

// writeSynthetic leaves no half-written file behind.
func writeSynthetic(path string, s synthetic.Shape, opt synthetic.Options) (err error) {
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
