package batcher

import (
	"fmt"
	"time"

	"github.com/lutra-lm/lutra/batcher/sampling"
	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// draftPass runs a model that drafts: each pass adds a token to each of some guesses.
type draftPass struct {
	model models.Model
	kv    *kv.Cache
	cost  schedule.CostModel
	batch models.Batch
	pass  []*Guess // of the pass under way, those that get a token
	draws *sampling.Batch
}

func newDraftPass(m models.Model, cache *kv.Cache, pool *pool.Pool) draftPass {
	return draftPass{model: m, kv: cache, draws: sampling.NewBatch(pool)}
}

// Price adds up the passes.
func (d *draftPass) Price(guesses []*Guess) float64 {
	sum := 0.0
	for depth := 1; ; depth++ {
		rows := 0
		for _, g := range guesses {
			if g.Most >= depth {
				rows++
			}
		}
		if rows == 0 {
			return sum
		}
		if depth == 1 { // after a right guess there are two tokens that it has not read
			rows *= 2
		}
		sum += d.cost.Time(rows)
	}
}

// forward runs the pass and draws the guesses' next tokens.
func (d *draftPass) forward() error {
	begin := time.Now()
	if err := d.model.Forward(&d.batch, d.kv); err != nil {
		return fmt.Errorf("batcher: draft of %d tokens: %w", len(d.batch.Tokens), err)
	}
	d.draws.Reset(len(d.pass))
	c := d.model.Config() // of its tokens the first Outputs are guessed
	for i, g := range d.pass {
		w := d.draws.Add(i, d.batch.Logits[i*c.Outputs:(i+1)*c.Outputs])
		w.Params, w.ID, w.Position, w.Prompt, w.Tokens = g.Params, sampling.Sampled, len(g.Text)+len(g.Tokens), g.Prompt, w.Tokens[:0]
		w.Params.Logprobs, w.Params.TopLogprobs = false, 0
		w.Params.Constraint, w.Vocab = stateAfter(g.Params.Constraint, g.Tokens), c.Vocab
		if id, ok := w.Params.Forced(c.Vocab); ok {
			w.ID = id
		}
		if w.Params.LooksBack() {
			w.Tokens = append(append(w.Tokens, g.Text...), g.Tokens...)
		}
	}
	d.draws.Run()
	d.cost.Observe(len(d.batch.Tokens), time.Since(begin).Seconds())
	return nil
}

// stateAfter returns where a completion stands after further tokens, if it is known what may
// come there: else nothing may, since nobody waits for a guess.
func stateAfter(at sampling.Constraint, tokens []int32) sampling.Constraint {
	if at == nil {
		return nil
	}
	for _, id := range tokens {
		at = at.Next(id)
	}
	if c, ok := at.(sampling.Preparer); ok && !sampling.Ready(c.Prepare().Allowed) {
		return unknown{}
	}
	return at
}

// unknown is a constraint that allows nothing.
type unknown struct{}

func (unknown) Next(int32) sampling.Constraint { return unknown{} }
func (unknown) Allow([]uint64)                 {}

// take adds what was drawn to guess number i of the pass. It reports whether anything was.
func (d *draftPass) take(i int) bool {
	if d.draws.At(i).Err != nil {
		return false // nothing can be sampled, as a constraint may have it
	}
	g := d.pass[i]
	g.Tokens = append(g.Tokens, d.draws.At(i).Token.ID)
	return true
}
