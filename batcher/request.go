package batcher

import (
	"math"

	"github.com/lutra-lm/lutra/batcher/sampling"
)

// kind says what a caller waits for.
type kind uint8

const (
	nothing    kind = iota
	wantTokens      // Generate
	wantLogits      // Logits
	wantScores      // PromptLogprobs
	wantMean        // Embed
	wantFirst       // Embed
)

// request asks the loop for tokens, logits or scores. The loop resets kind to nothing when it
// has been met.
type request struct {
	kind   kind
	run    *generation      // wantTokens: whose
	params sampling.Params  // wantTokens
	left   int              // wantTokens: how many may still be sampled
	ids    []int32          // wantLogits: which; none for all
	row    []float32        // wantLogits: the result
	top    int              // wantScores: alternatives
	from   int              // wantScores: the position before the first token that is asked about
	scored []sampling.Token // wantScores: the result; its length is how far it has come
	sum    []float64        // wantMean: of the rows so far
	summed int              // wantMean: how many these are
}

// generation stands for one call of Generate. left counts what its reader has not had.
type generation struct {
	params sampling.Params
	left   int
}

func newGeneration(p sampling.Params) *generation {
	run := &generation{params: p, left: p.MaxTokens}
	if run.left == 0 {
		run.left = math.MaxInt
	}
	return run
}

// copyLogits copies a row of logits into the result of the request: all of them, or the logits of its ids.
func (r *request) copyLogits(row []float32) {
	if len(r.ids) == 0 {
		copy(r.row, row)
	}
	for i, id := range r.ids {
		r.row[i] = row[id]
	}
}

// addRows adds n rows, from number first on, to the sum of a request for their mean: one
// position after the other, so that steps of other sizes change nothing.
func (r *request) addRows(n int, row func(i int) []float32, first int) {
	for i := range n {
		for k, x := range row(first + i) {
			r.sum[k] += float64(x)
		}
	}
	r.summed += n
}
