package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/convert"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/huggingface"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

func newConvert() *cobra.Command {
	var out, typ string
	cmd := &cobra.Command{
		Use:   "convert DIR",
		Short: "Write a directory of safetensors as a GGUF file",
		Long: `Writes a model as Hugging Face's transformers saves it, a directory or a name of the hub,
as one GGUF file, with the names, orders and keys of llama.cpp's converter. With --type
auto the weights are stored as they are, and the file's answers are the directory's.
TQ1_0, TQ2_0 and I2_S are for ternary weights; other matrices become F16.`,
		Example: `  lutra-lab convert Qwen3-0.6B -o qwen3-0.6b.gguf
  lutra-lab convert Qwen3-0.6B -o qwen3-0.6b-q8_0.gguf --type Q8_0`,
		Args: cli.Arguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage.Errorf("-o FILE is required")
			}
			m := config.ModelNamed(args[0])
			if err := m.Get(cmd.Context(), cli.FromHub(cmd)); err != nil {
				return err
			}
			if !huggingface.Is(m.Path) {
				if err := config.CheckModelFile(m.Path); err != nil {
					return err
				}
				return usage.Errorf("%s is no directory with a config.json", args[0])
			}
			c := conversion{from: m.Path, to: out, typ: typ, progress: cmd.ErrOrStderr()}
			return c.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write")
	cli.WordVar(cmd.Flags(), &typ, "type", convert.Types[0], convert.Types, "storage type of the matrices")
	return cmd
}

// conversion writes the directory from as the file to.
type conversion struct {
	from, to, typ string
	progress      io.Writer
}

func (c *conversion) run(ctx context.Context, w io.Writer) error {
	f, err := huggingface.Open(c.from)
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := tokenizer.New(f.Metadata) // what nobody could read need not be written
	if err != nil {
		return fmt.Errorf("%s: %w", c.from, err)
	}
	for _, warning := range t.Warnings() {
		fmt.Fprintln(c.progress, warning)
	}
	md, tensors, err := convert.Encode(f, c.typ)
	if err != nil {
		return fmt.Errorf("%s: %w", c.from, err)
	}
	size, err := c.write(ctx, f, md, tensors)
	if err != nil {
		return fmt.Errorf("%s: %w", c.to, err)
	}
	_, err = fmt.Fprintf(w, "%s: %d tensors, %s\n", c.to, len(tensors), output.Bytes(size))
	return err
}

// write writes the file, whole or not at all, unless f changes meanwhile.
func (c *conversion) write(ctx context.Context, f *gguf.File, md gguf.Metadata, tensors []gguf.Source) (size int64, err error) {
	meter := &output.Meter{W: c.progress, What: "converting", Bytes: true}
	defer meter.End()
	watched := &output.Watched{Context: ctx, Meter: meter}
	for _, t := range tensors {
		n, _ := t.Type.Size(t.Dims) // which was looked at
		watched.Total += int64(n)
	}
	err = gguf.WriteFile(c.to, func(w io.Writer) error {
		watched.W = w
		if err := gguf.WriteFrom(watched, md, tensors); err != nil {
			return err
		}
		return f.Unchanged()
	})
	return watched.Done, err
}
