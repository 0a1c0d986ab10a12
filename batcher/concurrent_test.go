package batcher

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/toy"
)

// Unlike in the histories, callers here change their minds while a step runs.
func TestClientsThatActDuringStepsGetTheRightTokens(t *testing.T) {
	m := &toy.Model{Vocab: 40, Before: func(*models.Batch) error { time.Sleep(time.Millisecond); return nil }}
	opt := DefaultOptions()
	opt.Context, opt.StepTokens, opt.Unread = 60, Tile, 4
	start(t, m, 24, 4, opt, func(t *testing.T, r rig) {
		const clients = 12
		done := make(chan struct{})
		for i := range clients {
			go func() {
				defer func() { done <- struct{}{} }()
				rnd := rand.New(rand.NewPCG(uint64(i), 3))
				h := &history{t: t, m: m, e: r.Engine, next: rnd.IntN}
				for range 100 {
					h.act(rnd)
				}
				for _, c := range append(h.clients, h.kin...) {
					c.s.Close()
				}
			}()
		}
		for range clients {
			<-done
		}
		if st := r.Stats(); st.Preemptions == 0 || st.Evictions == 0 {
			t.Errorf("too easy: %+v", st)
		}
	})
}

// act runs one operation to its end, or until a random moment.
func (h *history) act(r *rand.Rand) {
	if len(h.clients) == 0 || r.IntN(6) == 0 {
		h.open()
		return
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Duration(r.IntN(30_000))*time.Microsecond)
	defer cancel()
	c := h.clients[r.IntN(len(h.clients))]
	switch r.IntN(8) {
	case 0:
		h.add(c, r.IntN(6), r.IntN(40))
	case 1:
		if forks, err := c.s.Fork(ctx, 2); err == nil { // they die with ctx
			if _, err := forks[0].Logits(ctx); err != nil && !h.tolerable(c, err) {
				h.t.Errorf("Logits of a fork: %v", err)
			}
			if forks[0].Len() != len(c.tokens) {
				h.t.Errorf("a fork holds %d tokens, want %d", forks[0].Len(), len(c.tokens))
			}
		}
	case 2:
		h.fork(h.t.Context(), c, 2)
		h.clients, h.kin = append(h.clients, h.kin...), nil
	case 3:
		h.logits(ctx, c)
	case 4:
		h.scores(ctx, c)
	default:
		h.generate(c, c.s.Generate(ctx, c.params), 1+r.IntN(12))
	}
}
