package batcher

import (
	"context"
	"errors"
	"testing"

	"github.com/lutra-lm/lutra/internal/sweep"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// states makes a toy model whose hidden state of a position is [token, position].
func states(p models.Pooling) *toy.Model {
	return &toy.Model{Vocab: 64, Outputs: 2, Pooling: p, Logits: func(tokens []int32, row []float32) {
		row[0], row[1] = float32(tokens[len(tokens)-1]), float32(len(tokens)-1)
	}}
}

func TestHiddenStatesArePooledAsTheModelSays(t *testing.T) {
	sweep.NoRace(t)
	prompt := make([]int32, 100)
	for i := range prompt {
		prompt[i] = int32(i % 40)
	}
	for _, c := range []struct {
		pooling models.Pooling
		want    [2]float32
	}{
		{models.PoolingMean, [2]float32{(2*780 + 190) / 100.0, 49.5}},
		{models.PoolingLast, [2]float32{19, 99}},
	} {
		for _, rows := range []int{4, 128} { // one step or many
			m := states(c.pooling)
			opt := DefaultOptions()
			opt.StepRows = rows
			e := New(m, m.NewCache(32, 16), opt)
			ctx, cancel := context.WithCancel(t.Context())
			go e.Run(ctx)
			for range 2 { // the second time the prefix cache has the prompt
				s, err := e.Open(ctx, prompt)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.Embed(ctx)
				if err != nil || len(got) != 2 || [2]float32(got) != c.want {
					t.Errorf("pooling %d, %d rows a step: %v, %v, want %v", c.pooling, rows, got, err, c.want)
				}
				s.Close()
			}
			cancel()
		}
	}
}

func TestAModelWithoutPoolingEmbedsNothingAndOneWithItWritesNothing(t *testing.T) {
	for _, m := range []*toy.Model{{}, {Vocab: 64, Outputs: 64, Pooling: models.PoolingMean}} {
		e := New(m, m.NewCache(8, 16), DefaultOptions())
		ctx, cancel := context.WithCancel(t.Context())
		go e.Run(ctx)
		s, err := e.Open(ctx, []int32{1, 2})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Embed(ctx)
		speaks := e.setup.bounds.checkGenerates()
		if none := m.Pooling == models.PoolingNone; errors.Is(err, ErrNoEmbedding) != none || (speaks == nil) != none {
			t.Errorf("pooling %d: Embed() fails with %v, writing with %v", m.Pooling, err, speaks)
		}
		cancel()
	}
}
