package commands

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models"
)

func newLogits() *cobra.Command {
	var r reference.Options
	var tokensFile, outFile string
	cmd := &cobra.Command{
		Use:   "logits",
		Short: "Write the logits after each token, to compare with other engines",
		Long: `Runs token ids through the model and writes float32 little-endian [tokens][vocabulary]
to a file; as a NumPy array when its name ends in .npy.`,
		Example: `  lutra-lab logits --model model.gguf --tokens ids.txt --out logits.npy
  lutra-lab logits --model model.gguf --context 512 --tokens ids.txt --out logits.npy
  echo "1 15043 3186" | lutra-lab logits --model model.gguf --tokens - --out logits.f32`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tokensFile == "" || outFile == "" {
				return usage.Errorf("--tokens and --out are required")
			}
			text, err := readText(cmd.Context(), tokensFile, cmd.InOrStdin())
			if err != nil {
				return err
			}
			r.ContextSet = cmd.Flags().Changed("context")
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			r.Get, r.Loading = cli.FromHub(cmd), shown.Show
			return reference.With(cmd.Context(), &r, func(b *models.Bundle, score reference.Scorer) error {
				cfg := b.Model.Config()
				tokens, err := reference.ParseTokens(text, cfg.Vocab)
				if err != nil {
					return err
				}
				if err := reference.WriteLogits(outFile, tokens, cfg.Outputs, score); err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: float32 [%d][%d]\n", outFile, len(tokens), cfg.Outputs)
				return err
			})
		},
	}
	referenceFlags(cmd.Flags(), &r, 0)
	cmd.Flags().StringVar(&tokensFile, "tokens", "", "`FILE` of token ids, - for standard input")
	cmd.Flags().StringVar(&outFile, "out", "", "`FILE` to write")
	return cmd
}

// readText reads a whole file, or standard input for "-".
func readText(ctx context.Context, path string, stdin io.Reader) (string, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = cli.ReadUntil(ctx, stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	return string(data), err
}
