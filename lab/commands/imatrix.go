package commands

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/kernels"
	"github.com/lutra-lm/lutra/lab/quantize"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/gguf"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

func newImatrix() *cobra.Command {
	var r reference.Options
	var textFile, out string
	var head bool
	var chunks int
	cmd := &cobra.Command{
		Use:   "imatrix",
		Short: "Measure which columns of a model's matrices matter to a text",
		Long: `Has the model read a text, in pieces of --context tokens, and writes the sums of squared
inputs of each column of each matrix: an importance matrix, which lutra-lab quantize --imatrix and
llama-quantize weigh errors by. A model in F16 or BF16 and some hundred pieces of varied text
are usual. It prints the perplexity of the text too. Ctrl-C writes what there is.`,
		Example: `  lutra-lab imatrix --model model-f16.gguf --file train.txt --out imatrix.gguf`,
		Args:    cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.ContextSet = cmd.Flags().Changed("context")
			switch {
			case textFile == "" || out == "":
				return usage.Errorf("--file and --out are required")
			case r.ContextSet && r.Context < 4:
				return usage.Errorf("--context: %d is too short", r.Context)
			case chunks < 0:
				return usage.Errorf("--chunks: %d is negative", chunks)
			}
			text, err := readText(cmd.Context(), textFile, cmd.InOrStdin())
			if err != nil {
				return err
			}
			var sums inputSums
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			r.Get, r.Loading, r.Observe = cli.FromHub(cmd), shown.Show, func(of []models.MatrixPart, rows *kernels.Acts) { sums.see(of, rows, head) }
			return reference.With(cmd.Context(), &r, func(b *models.Bundle, score reference.Scorer) error {
				c := b.Model.Config()
				if !c.Generates() {
					return fmt.Errorf("model %s writes no text", b.Name)
				}
				tokens := b.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true})
				n := len(tokens) / c.Context
				if chunks > 0 && chunks < n {
					n, tokens = chunks, tokens[:chunks*c.Context]
				}
				meter := &output.Meter{W: cmd.ErrOrStderr(), What: "pieces"}
				defer meter.End()
				report, err := reference.Perplexity(b.Tokenizer, tokens, c.Context, score, meter.Count(0, n))
				meter.End()
				if n = report.Tokens / (c.Context - c.Context/2 - 1); err != nil && (cmd.Context().Err() == nil || n == 0) {
					return err
				}
				if err := sums.write(out, filepath.Base(textFile), n, c.Context); err != nil {
					return err
				}
				tensors, unseen := sums.Tensors()
				_, printed := fmt.Fprintf(cmd.OutOrStdout(), "%s: %d tensors from %d pieces of %d tokens; perplexity %.4f\n", out, tensors, n, c.Context, report.Perplexity)
				if unseen > 0 {
					_, printed = fmt.Fprintf(cmd.OutOrStdout(), "no token chose %d of the experts' matrices; more text may\n", unseen)
				}
				return errors.Join(printed, err)
			})
		},
	}
	f := cmd.Flags()
	cpuFlags(f, &r, 512)
	f.StringVarP(&textFile, "file", "f", "", "text `FILE`, - for standard input")
	f.StringVarP(&out, "out", "o", "", "`FILE` to write, a GGUF")
	f.IntVar(&chunks, "chunks", 0, "read so many pieces at most, 0 for all")
	f.BoolVar(&head, "process-output", false, "measure the output's matrix too")
	return cmd
}

// inputSums collects what products read.
type inputSums struct {
	mu sync.Mutex
	quantize.Collector
}

// see adds the rows of a product in a layer, with head also of the output.
func (s *inputSums) see(of []models.MatrixPart, rows *kernels.Acts, head bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range of {
		if !head && !strings.HasPrefix(p.Tensor, "blk.") {
			continue
		}
		for i := range rows.N() {
			s.Add(p.Tensor, p.Matrix, p.Matrices, rows.Row(i))
		}
	}
}

func (s *inputSums) write(path, dataset string, chunks, size int) error {
	meta, tensors, err := s.File(dataset, chunks, size)
	if err != nil {
		return err
	}
	return gguf.WriteFile(path, func(w io.Writer) error { return gguf.Write(w, meta, tensors) })
}
