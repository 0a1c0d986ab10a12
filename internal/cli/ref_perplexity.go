package cli

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/models/tokenizer"
)

// perplexityReport is what `perplexity --json` prints.
type perplexityReport struct {
	Perplexity float64 `json:"perplexity"`
	Error      float64 `json:"standard_error"`
	Tokens     int     `json:"tokens"` // predicted
	Context    int     `json:"context"`
}

// measurePerplexity is exp of the mean negative log-likelihood over the second halves
// of the pieces of n tokens. A BOS takes the first place of each piece where
// the model wants one.
func measurePerplexity(tok *tokenizer.Tokenizer, tokens []int32, n int, score scorer, done func()) (perplexityReport, error) {
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
