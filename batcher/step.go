package batcher

import (
	"slices"
	"time"

	"github.com/lutra-lm/lutra/models"
)

// step holds the step under way: what was planned, and what becomes of it.
type step struct {
	StepStats
	began    time.Time
	withheld bool          // background sequences are left out, for want of credit
	waited   time.Duration // part of Duration in which nothing but constraints was worked on
	spans    []span
	shares   shares
}

// usage returns what the step has used.
func (st *step) usage() stepUsage {
	begun := 0
	for i := range st.spans {
		if p := &st.spans[i]; p.n > 1 && !p.s.task.demand.Background && p.s.task.demand.Left() == 1 {
			begun++
		}
	}
	return stepUsage{
		shares: st.shares, tokens: st.Tokens, begun: begun,
		computing: st.computing(), drafting: st.Drafting.Seconds(), withheld: st.withheld,
	}
}

// span holds one sequence's part of a step.
type span struct {
	s        *Sequence
	n        int // tokens
	rows     rows
	leader   *task // the equal sequence that is computed in its place; nil: none
	followed bool  // others take over what it computes

	asked   bool    // its drafts hold guesses for this step
	drafter int     // who made the best ones
	offered int     // how many these are
	draft   []int32 // those that are computed, after the n tokens

	forced    int  // draft is this many tokens that have to come, instead of guesses
	unsampled int  // rows that these do without
	late      bool // no row could be sampled in time
}

// rows locates the rows of a step's logits that a span computes.
type rows struct {
	first int // of the step's
	n     int
	draw  int // the first draw from them, or -1
}

// stepBatch holds what the model computes in one step.
type stepBatch struct {
	models.Batch
	outputs int     // numbers a row of logits
	width   int     // numbers that a probe reads of a row
	tokens  []int32 // scratch
}

// row returns a row of the step's logits.
func (b *stepBatch) row(i int) []float32 { return b.Logits[i*b.outputs : (i+1)*b.outputs] }

// reading returns a copy of what the probe has read of a row; nil: there is no probe.
func (b *stepBatch) reading(i int) []float32 {
	if b.width == 0 {
		return nil
	}
	return slices.Clone(b.Readings[i*b.width : (i+1)*b.width])
}

// add adds a span after the others.
func (b *stepBatch) add(p *span) {
	s := p.s
	b.tokens = append(append(b.tokens[:0], s.content.tokens[s.task.demand.Computed:s.task.demand.Computed+p.n]...), p.draft...)
	b.Add(s.task.kv, s.task.demand.Computed, p.rows.n, b.tokens...)
	b.Spans[len(b.Spans)-1].Variant = s.setup.variant
}

// rate returns how often the guesses that p has are right; -1: it has none.
func (p *span) rate() float64 {
	if p.offered == 0 {
		return -1
	}
	return p.s.task.drafts.by[p.drafter].rate
}

// choose takes the guesses of a drafter, number by, if they are better than what p has.
func (p *span) choose(by, vocab int) {
	g := &p.s.task.drafts.by[by]
	g.Tokens = g.Tokens[:min(len(g.Tokens), max(0, g.Most))]
	for i, id := range g.Tokens {
		if id < 0 || int(id) >= vocab {
			g.Tokens = g.Tokens[:i]
			break
		}
	}
	if len(g.Tokens) > 0 && g.rate > p.rate() {
		p.drafter, p.offered = by, len(g.Tokens)
	}
}
