package batcher

import (
	"context"
	"errors"

	"github.com/lutra-lm/lutra/models"
)

// ErrNoEmbedding says that a model gives no hidden states.
var ErrNoEmbedding = errors.New("batcher: the model embeds no texts")

// Embed computes what is pending and returns the hidden states of all tokens so far,
// pooled as the model does: [Config.Outputs], not normalised. For their mean every
// position is computed anew; the prefix cache cannot help.
func (s *Sequence) Embed(ctx context.Context) ([]float32, error) {
	switch s.e.bounds.pooling {
	case models.PoolingNone:
		return nil, ErrNoEmbedding
	case models.PoolingLast:
		return s.Logits(ctx)
	case models.PoolingFirst:
		o, err := s.await(ctx, request{kind: wantFirst, row: make([]float32, s.e.bounds.outputs)})
		if err == nil {
			err = models.CheckFinite(o.row)
		}
		if err != nil {
			return nil, err
		}
		return o.row, nil
	}
	o, err := s.await(ctx, request{kind: wantMean, sum: make([]float64, s.e.bounds.outputs)})
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

// addRows adds n rows, from number first on, to the sum of an order for their mean:
// one position after the other, so that steps of other sizes change nothing. Locked.
func (s *Sequence) addRows(n int, row func(i int) []float32, first int) {
	o := &s.request
	for i := range n {
		for k, x := range row(first + i) {
			o.sum[k] += float64(x)
		}
	}
	o.summed += n
	if s.task.demand.LogitsFrom = o.summed; o.summed == s.task.demand.Target {
		o.kind = nothing
		s.cond.Broadcast()
	}
}
