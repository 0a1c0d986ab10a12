package batcher

import (
	"cmp"
	"slices"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// modelDrafter guesses what a smaller model of the same vocabulary would say
// (Leviathan 2023, "Fast Inference from Transformers via Speculative
// Decoding"). It samples with the sequence's own parameters and randomness, so
// that equal distributions give equal tokens at any temperature, and no guess
// breaks a constraint.
//
// All guesses are drafted together: each pass adds a token to each. The text of
// a sequence is read, in pieces, when a draft is first wanted for it.
type modelDrafter struct {
	draftPass
	limit int    // longest text, in tokens
	call  uint64 // calls of Draft
	open  []*reading
}

// NewModelDrafter makes a drafter of a model that has the vocabulary of the one
// it drafts for. It owns m and kv; pool, which may be nil, samples. The drafter
// is for one engine.
func NewModelDrafter(m models.Model, cache *kv.Cache, pool *pool.Pool) Drafter {
	return newModelDrafter(m, cache, pool)
}

func newModelDrafter(m models.Model, cache *kv.Cache, pool *pool.Pool) *modelDrafter {
	d := &modelDrafter{draftPass: newDraftPass(m, cache, pool), limit: cache.Blocks() * cache.BlockLen()}
	if n := m.Config().Context; n > 0 {
		d.limit = min(d.limit, n)
	}
	return d
}

// reading tracks how far the model has come with a text.
type reading struct {
	d      *modelDrafter
	kv     *kv.Sequence // nil: nothing is kept
	tokens []int32      // that kv holds
	// ahead holds tokens and guesses, of a model with recurrent layers, whose states go back to no text; nil: kv does.
	ahead *kv.Sequence
	used  uint64 // the call of its last use
}

// Close gives the blocks back.
func (r *reading) Close() {
	if r.kv == nil {
		return
	}
	r.comeBack()
	r.kv.Release()
	r.kv, r.tokens = nil, r.tokens[:0]
	i := slices.Index(r.d.open, r)
	r.d.open = slices.Delete(r.d.open, i, i+1)
}

func (d *modelDrafter) Kind() DraftKind { return DraftModel }

func (d *modelDrafter) Draft(guesses []*Guess, extra float64) error {
	d.call++
	d.pass = d.pass[:0]
	d.batch.Reset()
	room := d.affordable(extra)
	for _, g := range guesses {
		room -= d.read(g, room)
	}
	for len(d.batch.Tokens) > 0 {
		if err := d.forward(); err != nil {
			return err
		}
		d.next()
	}
	for _, r := range d.open {
		r.comeBack()
	}
	return nil
}

// mostRead bounds the tokens of texts that are read in one go.
const mostRead = 16 * Tile

// affordable returns how many tokens of unread texts can be read in that many seconds; a
// tile in any case.
func (d *modelDrafter) affordable(seconds float64) int {
	n := Tile
	for d.cost.Known() && n < mostRead && d.cost.Time(2*n) <= seconds {
		n *= 2
	}
	return n
}

// read adds to the pass what the model has not read of a text. That is all of it if there is little, so that a
// token follows, else as much as room allows. It returns how much of the room that took.
func (d *modelDrafter) read(g *Guess, room int) int {
	n := len(g.Text)
	if d.call == 1 { // one pass shows what further ones cost
		g.Most = min(g.Most, 1)
	}
	if g.Most = min(g.Most, d.limit-n); g.Most < 1 {
		return 0
	}
	r := d.recall(g)
	have, took := r.kv.Len(), 0
	if n-have > Tile {
		if took = min(n-1-have, room); took == 0 || !d.grow(r.kv, took) {
			return 0
		}
		d.batch.Add(r.kv, have, 0, g.Text[have:have+took]...)
	} else if d.grow(r.kv, n-have) {
		d.batch.Add(r.kv, have, 1, g.Text[have:]...)
		d.pass = append(d.pass, g)
	}
	r.tokens = append(r.tokens, g.Text[have:r.kv.Len()]...)
	return took
}

// recall returns the reading of a guess's text as far as it is right, the last token
// excepted, for that one's logits are wanted.
func (d *modelDrafter) recall(g *Guess) *reading {
	r, ok := g.Notes.(*reading)
	if !ok {
		r = &reading{d: d}
		g.Notes = r
	}
	last := len(g.Text) - 1
	if r.kv == nil {
		r.kv = d.kv.Open(g.Text[:last])
		r.tokens = append(r.tokens[:0], g.Text[:r.kv.Len()]...)
		d.open = append(d.open, r)
	}
	r.used = d.call
	same := common(r.tokens, g.Text[:last])
	r.kv.Truncate(same)
	r.tokens = r.tokens[:r.kv.Len()]
	r.kv.Seal(r.tokens)
	return r
}

// goAhead returns what guesses are computed in.
func (r *reading) goAhead() *kv.Sequence {
	if r.d.kv.Shape().State == 0 {
		return r.kv
	}
	if r.ahead == nil {
		r.ahead = r.kv.Fork()
	}
	return r.ahead
}

// comeBack forgets guesses.
func (r *reading) comeBack() {
	if r.ahead != nil {
		r.ahead.Release()
		r.ahead = nil
	}
}

// grow makes room for n more tokens in s, at the expense of those that were not
// guessed for in this call.
func (d *modelDrafter) grow(s *kv.Sequence, n int) bool {
	for s.Grow(n) != nil {
		oldest := slices.MinFunc(d.open, func(a, b *reading) int { return cmp.Compare(a.used, b.used) })
		if oldest.used == d.call {
			return false
		}
		oldest.Close()
	}
	return true
}

// next takes over what was drawn, and makes the next pass of it.
func (d *modelDrafter) next() {
	d.batch.Reset()
	kept := d.pass[:0]
	for i, g := range d.pass {
		if !d.take(i) {
			continue
		}
		r := g.Notes.(*reading)
		if len(g.Tokens) >= g.Most {
			continue
		}
		s := r.goAhead()
		at := s.Len()
		if !d.grow(s, 1) {
			continue
		}
		last := g.Tokens[len(g.Tokens)-1]
		if s == r.kv {
			r.tokens = append(r.tokens, last)
		}
		d.batch.Add(s, at, 1, last)
		kept = append(kept, g)
	}
	d.pass = kept
}
