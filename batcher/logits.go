package batcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/models"
)

// Logits computes what is pending and returns the last position's logits, of
// ids only when given: [Config.Outputs] or [len(ids)], or models.ErrNotFinite.
func (s *Sequence) Logits(ctx context.Context, ids ...int32) ([]float32, error) {
	width := s.setup.bounds.outputs
	for _, id := range ids {
		if id < 0 || int(id) >= width {
			return nil, fmt.Errorf("%w: no logit %d among %d", ErrToken, id, width)
		}
	}
	if len(ids) > 0 {
		width = len(ids)
	}
	o, err := s.await(ctx, request{kind: wantLogits, ids: ids, row: make([]float32, width)})
	if err == nil {
		err = models.CheckFinite(o.row)
	}
	if err != nil {
		return nil, err
	}
	return o.row, nil
}

// PromptLogprobs returns for every position ≥ 1 so far the log-probability of the token there, and the top
// alternatives (echo and logprobs of the completions API, perplexity). Element i is for position i+1. Every position
// is computed anew; the prefix cache cannot help.
func (s *Sequence) PromptLogprobs(ctx context.Context, top int) ([]sampling.Token, error) {
	return s.Scores(ctx, 1, top)
}

// Scores does what PromptLogprobs does, from position from, at least 1, on. Element i is for position from+i, as if
// Generate had sampled that token.
func (s *Sequence) Scores(ctx context.Context, from, top int) ([]sampling.Token, error) {
	p := sampling.Params{TopLogprobs: top}
	if err := errors.Join(p.Validate(), s.setup.bounds.checkGenerates()); err != nil {
		return nil, err
	}
	n := s.Len()
	if n <= from {
		return nil, nil
	}
	o, err := s.await(ctx, request{kind: wantScores, top: top, from: from - 1, scored: make([]sampling.Token, 0, n-from)})
	if err != nil {
		return nil, err
	}
	return o.scored, nil
}

// Embed computes what is pending and returns the hidden states of all tokens so far,
// pooled as the model does: [Config.Outputs], not normalised. For their mean every
// position is computed anew; the prefix cache cannot help.
func (s *Sequence) Embed(ctx context.Context) ([]float32, error) {
	switch s.setup.bounds.pooling {
	case models.PoolingNone:
		return nil, ErrNoEmbedding
	case models.PoolingLast:
		return s.Logits(ctx)
	case models.PoolingFirst:
		o, err := s.await(ctx, request{kind: wantFirst, row: make([]float32, s.setup.bounds.outputs)})
		if err == nil {
			err = models.CheckFinite(o.row)
		}
		if err != nil {
			return nil, err
		}
		return o.row, nil
	}
	o, err := s.await(ctx, request{kind: wantMean, sum: make([]float64, s.setup.bounds.outputs)})
	if err != nil {
		return nil, err
	}
	mean := make([]float32, len(o.sum))
	for i, x := range o.sum {
		mean[i] = float32(x / float64(o.summed))
	}
	if err := models.CheckFinite(mean); err != nil {
		return nil, err
	}
	return mean, nil
}
