package reference

import (
	"fmt"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/models/tokenizer"
)

// Report is the object of `perplexity --json`.
type Report struct {
	Perplexity float64 `json:"perplexity"`
	Error      float64 `json:"standard_error"`
	Tokens     int     `json:"tokens"` // predicted
	Context    int     `json:"context"`
}

// Perplexity returns exp of the mean negative log-likelihood over the second halves
// of the pieces of n tokens. Each piece begins with a BOS if the model
// uses one. After an error the report is of the pieces before it, none if there is none.
func Perplexity(tok *tokenizer.Tokenizer, tokens []int32, n int, score Scorer, done func()) (Report, error) {
	if len(tokens) < n {
		return Report{}, fmt.Errorf("the text has %d tokens, fewer than one piece of %d", len(tokens), n)
	}
	bos, hasBOS := tok.BOS()
	hasBOS = hasBOS && tokens[0] == bos
	var sum, squares float64
	count := 0
	report := func() Report {
		if count == 0 {
			return Report{}
		}
		mean := sum / float64(count)
		deviation := math.Sqrt(max(squares/float64(count)-mean*mean, 0) / float64(max(count-1, 1)))
		ppl := math.Exp(mean)
		return Report{Perplexity: ppl, Error: ppl * deviation, Tokens: count, Context: n}
	}
	piece := make([]int32, n)
	for lo := 0; lo+n <= len(tokens); lo += n {
		copy(piece, tokens[lo:])
		if hasBOS {
			piece[0] = bos
		}
		whole := report()
		err := score(piece, func(t int, logits []float32) error {
			if t >= n/2 && t+1 < n {
				nll := -LogProbability(logits, piece[t+1])
				sum += nll
				squares += nll * nll
				count++
			}
			return nil
		})
		if err != nil {
			return whole, err
		}
		done()
	}
	return report(), nil
}

// LogProbability returns the natural logarithm of softmax(logits)[id], in double
// precision.
func LogProbability(logits []float32, id int32) float64 {
	return float64(logits[id]) - logSum(logits)
}

// logSum returns the natural logarithm of the sum of exp(logits), in double precision.
func logSum(logits []float32) float64 {
	top := slices.Max(logits)
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x - top))
	}
	return float64(top) + math.Log(sum)
}
