package batcher

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/lutra-lm/lutra/kernels/pool"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// mtpDrafter guesses what the model's own layer for a further token says (DeepSeek-AI 2024, "DeepSeek-V3", §2.2:
// multi-token prediction). A row of it stands for a token and the model's hidden state before it:
//
//	tokens     a ──────── b ──────── c         (sampled)
//	model      h(a) ────▶ h(b) ────▶
//	MTP             b,h(a)     c,h(b) ──▶ d     (guessed)
//
// For further guesses its own hidden states take the place of the model's. The states come from each step of the engine.
// What the engine's prefix cache had, the layer's own cache mostly has too: a row there is a position less, so it wants
// the token after the prefix as well. If it lacks rows, the layer reads what is computed from then on.
type mtpDrafter struct {
	draftPass
	width int // of a hidden state
	trail []*trail
	call  uint64
}

// NewMTPDrafter makes a drafter of a model's predictor, which reads the hidden states of the engine that it is for.
func NewMTPDrafter(predictor models.Model, cache *kv.Cache, pool *pool.Pool) Drafter {
	return &mtpDrafter{draftPass: newDraftPass(predictor, cache, pool), width: predictor.Config().Hidden}
}

// trail holds the rows of a sequence that the layer has read, and the states that further ones need.
type trail struct {
	d      *mtpDrafter
	kv     *kv.Sequence // nil: nothing is kept
	first  int          // the token of the first row, in the sequence; 1: of all, which others may share
	tokens []int32      // computed by the model, from first on
	last   int32        // the token of the last row, which the model may compute next
	states []float32    // before the tokens that kv does not hold, and before the next one
	used   uint64       // the call of its last use
}

// Close gives the blocks back.
func (r *trail) Close() {
	if r.kv == nil {
		return
	}
	r.kv.Release()
	r.kv, r.tokens, r.states = nil, r.tokens[:0], r.states[:0]
	i := slices.Index(r.d.trail, r)
	r.d.trail = slices.Delete(r.d.trail, i, i+1)
}

// Kind implements Drafter.
func (d *mtpDrafter) Kind() DraftKind { return DraftMTP }

// Follow implements Follower. What does not go on where the last step ended begins anew.
func (d *mtpDrafter) Follow(g *Guess, at int, tokens []int32, states []float32) {
	r, ok := g.Notes.(*trail)
	if !ok {
		r = &trail{d: d}
		g.Notes = r
	}
	if r.kv == nil || at != r.first+len(r.tokens) || r.kv.Len() > len(r.tokens) && r.last != tokens[0] {
		r.Close()
		r.open(g, at)
		d.trail = append(d.trail, r)
		tokens = tokens[1:] // the layer has its row, or there is no state before it
	}
	r.used = d.call
	r.tokens, r.states = append(r.tokens, tokens...), append(r.states, states...)
}

// open begins with the rows that the cache has, if they are all before token number at, and that one.
func (r *trail) open(g *Guess, at int) {
	c := r.d.kv
	var first [4]byte // whose row there is none of, though the others follow it
	binary.LittleEndian.PutUint32(first[:], uint32(g.Text[0]))
	before := g.Text[1 : at+1]
	if r.kv = c.OpenSalted(g.Root, sha256.Sum256(append(g.Salt[:], first[:]...)), before); r.kv.Len() == at {
		r.first, r.tokens = 1, append(r.tokens[:0], before...)
		return
	}
	r.kv.Release()
	r.kv, r.first = c.Open(nil), at+1
}

// seal lets other sequences have the blocks that are full, of rows that stand for tokens, if these are all.
func (r *trail) seal(tokens []int32) {
	if r.first == 1 {
		r.kv.Seal(tokens)
		return
	}
	r.kv.Settle()
}

// Read implements Follower. Tokens wait until a guess is wanted for their sequence, or their rows fill a block.
func (d *mtpDrafter) Read() error {
	d.batch.Reset()
	d.pass = d.pass[:0]
	for i := 0; i < len(d.trail); i++ {
		r := d.trail[i]
		n, block := len(r.tokens)-r.kv.Len(), d.kv.BlockLen()
		if len(r.tokens)/block <= r.kv.Len()/block {
			continue
		}
		if !d.grow(r, n) {
			r.Close()
			i--
			continue
		}
		d.add(r, n, 0, r.tokens[len(r.tokens)-n:]...)
	}
	if len(d.batch.Tokens) == 0 {
		return nil
	}
	if err := d.forward(); err != nil {
		return err
	}
	for _, r := range d.trail {
		if r.kv.Len() == len(r.tokens) {
			r.seal(r.tokens)
		}
	}
	return nil
}

// add adds to the pass n rows of r, for which its cache has grown.
func (d *mtpDrafter) add(r *trail, n, out int, tokens ...int32) {
	d.batch.Add(r.kv, r.kv.Len()-n, out, tokens...)
	d.batch.Before = append(d.batch.Before, r.states[:n*d.width]...)
	r.states = append(r.states[:0], r.states[n*d.width:]...)
}

// Draft implements Drafter.
func (d *mtpDrafter) Draft(guesses []*Guess, _ float64) error {
	d.call++
	d.pass = d.pass[:0]
	d.batch.Reset()
	for _, g := range guesses {
		d.begin(g)
	}
	var known []int // rows of the model's own states, of each guess
	for _, g := range d.pass {
		known = append(known, g.Notes.(*trail).kv.Len())
	}
	asked := slices.Clone(d.pass)
	for len(d.batch.Tokens) > 0 {
		d.batch.KeepStates = true
		if err := d.forward(); err != nil {
			return err
		}
		d.next()
	}
	for i, g := range asked {
		if r := g.Notes.(*trail); r.kv != nil {
			r.kv.Truncate(known[i])
			r.seal(g.Text[1:])
		}
	}
	return nil
}

// begin adds to the pass what the layer has not read of a text, the last token included.
func (d *mtpDrafter) begin(g *Guess) {
	r, ok := g.Notes.(*trail)
	if !ok || r.kv == nil || len(g.Text)-1 != r.first+len(r.tokens) || len(g.Text)+g.Most > d.model.Config().Context {
		return
	}
	n := len(g.Text) - r.first - r.kv.Len()
	if n < 1 || len(r.states) != n*d.width {
		return
	}
	r.used = d.call
	if d.grow(r, n) {
		d.add(r, n, 1, g.Text[len(g.Text)-n:]...)
		r.last = g.Text[len(g.Text)-1]
		d.pass = append(d.pass, g)
	}
}

// grow makes room for n more rows of r, at the expense of sequences that were used less recently.
func (d *mtpDrafter) grow(r *trail, n int) bool {
	for r.kv.Grow(n) != nil {
		oldest := r
		for _, o := range d.trail {
			if o.used < oldest.used {
				oldest = o
			}
		}
		if oldest == r {
			return false
		}
		oldest.Close()
	}
	return true
}

// next takes over what was drawn, and makes the next pass of it.
func (d *mtpDrafter) next() {
	states, spans := d.batch.States, slices.Clone(d.batch.Spans)
	d.batch.Reset()
	kept := d.pass[:0]
	for i, g := range d.pass {
		r := g.Notes.(*trail)
		if !d.take(i) || len(g.Tokens) >= g.Most || !d.grow(r, 1) {
			continue
		}
		d.batch.Add(r.kv, r.kv.Len()-1, 1, g.Tokens[len(g.Tokens)-1])
		d.batch.Before = append(d.batch.Before, states[(spans[i].End-1)*d.width:][:d.width]...)
		kept = append(kept, g)
	}
	d.pass = kept
}
