package cli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/lutra-lm/lutra/internal/output"
	"github.com/lutra-lm/lutra/internal/usage"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/tokenizer"
)

// perplexityReport is what `perplexity --json` prints.
type perplexityReport struct {
	Perplexity float64 `json:"perplexity"`
	Error      float64 `json:"standard_error"`
	Tokens     int     `json:"tokens"` // predicted
	Context    int     `json:"context"`
}

func newPerplexity() *cobra.Command {
	var r referenceFlags
	var textFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "perplexity",
		Short: "Measure how well a model predicts a text",
		Long: `Cuts the text into pieces of --context tokens and averages over the second
half of each, where every token has at least half a context before it; the way
llama.cpp's llama-perplexity does it, so that figures compare.`,
		Example: `  lutra perplexity --model model.gguf --file wiki.test.raw
  lutra perplexity --model model.gguf --file wiki.test.raw --context 512 --kv-type int8 --json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if textFile == "" {
				return usage.Errorf("--file is needed")
			}
			if cmd.Flags().Changed("context") && r.context < 4 {
				return usage.Errorf("--context: %d is too short", r.context)
			}
			text, err := readText(textFile, cmd.InOrStdin())
			if err != nil {
				return err
			}
			return r.withScorer(func(b *models.Bundle, score scorer) error {
				n := b.Model.Config().Context
				tokens := b.Tokenizer.Encode(nil, text, tokenizer.Options{AddSpecial: true})
				bar := output.Progress(cmd.ErrOrStderr(), len(tokens)/n, "pieces")
				report, err := perplexity(b.Tokenizer, tokens, n, score, func() { _ = bar.Add(1) })
				if err != nil {
					return err
				}
				if asJSON {
					return output.JSON(cmd.OutOrStdout(), report)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "perplexity %.4f ± %.4f over %d tokens, context %d\n",
					report.Perplexity, report.Error, report.Tokens, report.Context)
				return err
			})
		},
	}
	r.register(cmd.Flags(), 512)
	cmd.Flags().StringVar(&textFile, "file", "", "text `FILE`, - for standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// perplexity is exp of the mean negative log-likelihood over the second halves
// of the pieces of n tokens. A BOS takes the first place of each piece where
// the model wants one.
func perplexity(tok *tokenizer.Tokenizer, tokens []int32, n int, score scorer, done func()) (perplexityReport, error) {
	if len(tokens) < n {
		return perplexityReport{}, fmt.Errorf("the text has %d tokens, fewer than one piece of %d", len(tokens), n)
	}
	bos, hasBOS := tok.BOS()
	hasBOS = hasBOS && tokens[0] == bos
	var sum, squares float64
	count := 0
	piece := make([]int32, n)
	for lo := 0; lo+n <= len(tokens); lo += n {
		copy(piece, tokens[lo:])
		if hasBOS {
			piece[0] = bos
		}
		err := score(piece, func(t int, logits []float32) error {
			if t >= n/2 && t+1 < n {
				nll := -logProbability(logits, piece[t+1])
				sum += nll
				squares += nll * nll
				count++
			}
			return nil
		})
		if err != nil {
			return perplexityReport{}, err
		}
		done()
	}
	mean := sum / float64(count)
	deviation := math.Sqrt(max(squares/float64(count)-mean*mean, 0) / float64(max(count-1, 1)))
	ppl := math.Exp(mean)
	return perplexityReport{Perplexity: ppl, Error: ppl * deviation, Tokens: count, Context: n}, nil
}
