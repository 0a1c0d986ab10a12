package commands

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/internal/cli"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/lab/reference"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

func newPerplexity() *cobra.Command {
	var r reference.Options
	var textFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "perplexity",
		Short: "Measure how well a model predicts a text",
		Long: `Cuts the text into pieces of --context tokens and averages over the second
half of each, where every token has at least half a context before it. llama.cpp's
llama-perplexity does the same, so figures are comparable. Ctrl-C prints the figure so far.`,
		Example: `  lutra-lab perplexity --model model.gguf --file wiki.test.raw
  lutra-lab perplexity --model model.gguf --file wiki.test.raw --context 512 --kv-type int8 --json`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if textFile == "" {
				return usage.Errorf("--file is required")
			}
			r.ContextSet = cmd.Flags().Changed("context")
			if r.ContextSet && r.Context < 4 {
				return usage.Errorf("--context: %d is too short", r.Context)
			}
			text, err := readText(cmd.Context(), textFile, cmd.InOrStdin())
			if err != nil {
				return err
			}
			shown := cli.Loading{W: cmd.ErrOrStderr()}
			defer shown.End()
			r.Get, r.Loading = cli.FromHub(cmd), shown.Show
			return reference.With(cmd.Context(), &r, func(b *models.Bundle, score reference.Scorer) error {
				c := b.Model.Config()
				if !c.Generates() {
					return fmt.Errorf("model %s writes no text, so that it predicts none", b.Name)
				}
				n := c.Context
				tokens := b.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true})
				meter := &output.Meter{W: cmd.ErrOrStderr(), What: "pieces"}
				defer meter.End()
				report, err := reference.Perplexity(b.Tokenizer, tokens, n, score, meter.Count(0, len(tokens)/n))
				meter.End()
				if err != nil && (cmd.Context().Err() == nil || report.Tokens == 0) {
					return err
				}
				if asJSON {
					return errors.Join(output.JSON(cmd.OutOrStdout(), report), err)
				}
				_, printed := fmt.Fprintf(cmd.OutOrStdout(), "perplexity %.4f ± %.4f over %d tokens, context %d\n",
					report.Perplexity, report.Error, report.Tokens, report.Context)
				return errors.Join(printed, err)
			})
		},
	}
	referenceFlags(cmd.Flags(), &r, 512)
	cmd.Flags().StringVar(&textFile, "file", "", "text `FILE`, - for standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
