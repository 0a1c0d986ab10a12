package batcher

import (
	"fmt"
	"math"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// setup tells a sequence what its engine can take, and how it is tuned.
type setup struct {
	opt    Options
	bounds bounds
	// variant computes the sequences; nil: the model as it is.
	variant *models.Variant
}

// bounds say what a model and its cache can take.
type bounds struct {
	limit     int // longest sequence in tokens
	vocab     int
	outputs   int // numbers a row of logits
	pooling   models.Pooling
	whole     bool // a sequence is computed in one step
	generates bool // rows of logits are the vocabulary's
	recurrent bool // what has been computed cannot be taken back, but for guesses of the last step
	ahead     int  // guesses of a step, of all sequences together
}

// newBounds returns the bounds of a model and its cache, for sequences of at most context tokens;
// 0: as many as the model takes.
func newBounds(m models.Model, cache *kv.Cache, context int) bounds {
	c := m.Config()
	b := bounds{
		limit: cache.Blocks() * cache.BlockLen(), vocab: c.Vocab, outputs: c.Outputs, pooling: c.Pooling,
		whole: c.Bidirectional, generates: c.Generates(), recurrent: cache.Shape().State > 0,
	}
	switch {
	case !b.recurrent:
		b.ahead = math.MaxInt
	case c.GuessBytes > 0:
		b.ahead = GuessesMost
	}
	if b.whole && scarce(cache) {
		b.limit = cache.Residuals() * cache.BlockLen()
	}
	for _, n := range []int{context, c.Context} {
		if n > 0 {
			b.limit = min(b.limit, n)
		}
	}
	return b
}

// StepResiduals returns how many residuals a step of one sequence takes. A cache with 4 bits must have as many, unless
// each of its blocks has one.
func StepResiduals(stepTokens, blockLen int) int { return (stepTokens+blockLen-1)/blockLen + 1 }

// scarce tells whether residuals can be lacking where blocks are not.
func scarce(c *kv.Cache) bool { return c.Residuals() > 0 && c.Residuals() < c.Blocks() }

// checkTokens fails unless tokens may follow have others.
func (b *bounds) checkTokens(have int, tokens []int32) error {
	if have+len(tokens) > b.limit {
		return fmt.Errorf("%w: %d tokens, room for %d", ErrTooLong, have+len(tokens), b.limit)
	}
	for i, id := range tokens {
		if id < 0 || int(id) >= b.vocab {
			return fmt.Errorf("%w: id %d at position %d, vocabulary of %d", ErrToken, id, have+i, b.vocab)
		}
	}
	return nil
}

// checkGenerates fails for models whose outputs are scores or hidden states.
func (b *bounds) checkGenerates() error {
	if !b.generates {
		return fmt.Errorf("%w: the model gives %d numbers, not logits of %d tokens", sampling.ErrSample, b.outputs, b.vocab)
	}
	return nil
}
