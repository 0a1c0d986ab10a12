package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/config"
	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
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
		Example: `  lutra convert Qwen3-0.6B -o qwen3-0.6b.gguf
  lutra convert Qwen3-0.6B -o qwen3-0.6b-q8_0.gguf --type Q8_0`,
		Args: arguments("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage.Errorf("-o FILE is required")
			}
			m := config.ModelNamed(args[0])
			if err := m.Get(cmd.Context(), fromHub(cmd)); err != nil {
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
	wordVar(cmd.Flags(), &typ, "type", huggingface.Types[0], huggingface.Types, "storage type of the matrices")
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
	md, tensors, err := huggingface.Encode(f, c.typ)
	if err != nil {
		return fmt.Errorf("%s: %w", c.from, err)
	}
	size, err := c.write(ctx, md, tensors)
	if err == nil {
		err = f.Unchanged()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.to, err)
	}
	_, err = fmt.Fprintf(w, "%s: %d tensors, %s\n", c.to, len(tensors), output.Bytes(size))
	return err
}

// write writes the file beside its place, so that it is there whole or not at all.
func (c *conversion) write(ctx context.Context, md gguf.Metadata, tensors []gguf.Source) (size int64, err error) {
	part, err := os.CreateTemp(filepath.Dir(c.to), filepath.Base(c.to)+".part-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part.Name()))
		}
	}()
	total := int64(0)
	for _, t := range tensors {
		n, _ := t.Type.Size(t.Dims) // which was looked at
		total += int64(n)
	}
	shown := output.Meter{W: c.progress, What: "converting", Bytes: true}
	counted := &countingWriter{w: part, tell: func(n int64) error {
		shown.Set(min(n, total), total)
		return context.Cause(ctx)
	}}
	err = gguf.WriteFrom(counted, md, tensors)
	shown.End()
	err = errors.Join(err, part.Chmod(0o644), part.Sync(), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), c.to)
	}
	return counted.n, err
}

// countingWriter tells how much has been written; tell's error ends the writing.
type countingWriter struct {
	w    io.Writer
	n    int64
	tell func(n int64) error
}

func (c *countingWriter) Write(b []byte) (int, error) {
	if err := c.tell(c.n); err != nil {
		return 0, err
	}
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
