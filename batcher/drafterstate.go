package batcher

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/schedule"
)

// drafterState is a drafter as an engine knows it.
type drafterState struct {
	Drafter
	rate   float64 // how often its guesses have been right of late; the rate of new sequences
	judged int     // guesses that rate is made of
	credit float64 // seconds that may go to finding out whether it pays by now
	// balance is the seconds that its guesses have saved of late, less those spent
	// on reading texts; price is what the guesses of the step under way cost.
	balance, price float64
	// costFactor is how many times its Price drafting takes: Price counts the model's steps alone.
	costFactor float64
	failed     bool // it is not asked any more
}

// cost is how many seconds guesses are expected to take.
func (dr *drafterState) cost(guesses []*Guess) float64 { return dr.costFactor * dr.Price(guesses) }

// How often guesses are assumed right before any has been judged. A model that
// somebody has chosen for drafting gets a chance.
var rateAtFirst = [DraftKinds]float64{DraftLookup: 0.3, DraftModel: 0.7}

const (
	rateForget    = 0.15
	drafterForget = 0.02
	worthwhile    = 1.03 // least gain of speed
	worthDrafting = 1.1  // likewise where drafting takes time, of which less is known
	trials        = 0.02 // share of the time that goes to trying a drafter that does not pay
	balanceShift  = 1.0 / 512
)

// draft asks a drafter for guesses about the streams for which its guesses have
// been right more often than those of the drafters before it.
func (d *draftSelector) draft(spans []span, by, n, room int) {
	dr, base := &d.drafters[by], d.cost.Time(n)
	if dr.failed {
		return
	}
	dr.balance *= 1 - balanceShift
	d.asked, d.options = d.asked[:0], d.options[:0]
	for i := range spans {
		p := &spans[i]
		if !p.asked {
			continue
		}
		g := &p.s.task.drafts.by[by]
		switch rate := p.rate(); {
		case g.rate > rate && (g.begun || !d.mustPay || dr.balance >= -base):
			d.asked = append(d.asked, &g.Guess)
			d.options = append(d.options, draftOption{span: i, rate: g.rate, most: g.Most, guess: g})
		case p.offered > 0:
			d.options = append(d.options, draftOption{span: i, rate: rate, most: p.offered})
		}
	}
	trial, priced := false, dr.Price(d.asked) > 0
	if priced {
		if d.mustPay && d.counts.Steps%probeInterval == 0 {
			return // so that it stays known what steps take without
		}
		dr.credit = min(dr.credit+trials*base, base)
		trial = !d.limitToProfitable(dr, n, room)
	}
	if len(d.asked) == 0 {
		return
	}
	extra := math.Inf(1)
	if d.opt.PrefillSlowdown > 0 {
		extra = base * (d.opt.PrefillSlowdown - 1)
	}
	begin := d.opt.Now()
	if err := dr.Draft(d.asked, extra); err != nil {
		d.drop(dr, err)
		return
	}
	took := d.opt.Now().Sub(begin)
	d.spent += took
	for i := range spans {
		if p := &spans[i]; p.asked {
			d.choose(p, by)
		}
	}
	switch {
	case trial:
		dr.credit -= took.Seconds()
	case priced:
		d.charge(dr, took.Seconds(), extra)
	}
}

// charge accounts for the time that drafting took. It may have taken longer than
// expected because texts had to be read, for which there were extra seconds, or
// because the expectation was wrong.
func (d *draftSelector) charge(dr *drafterState, took, extra float64) {
	reading := false
	for i := range d.options {
		if g := d.options[i].guess; g != nil && g.Most > 0 {
			reading = reading || !g.begun || len(g.Tokens) == 0
			g.begun = true
		}
	}
	d.asked = slices.DeleteFunc(d.asked, func(g *Guess) bool { return len(g.Tokens) == 0 })
	if dr.price = dr.cost(d.asked); len(d.asked) == 0 {
		reading = true
	}
	switch over := took - dr.price; {
	case reading:
		dr.balance -= min(max(0, over), extra)
	case over > 0: // as in schedule.CostModel, slow ones count for less
		dr.costFactor *= 1 + schedule.Forget*schedule.SlowWeight*min(over/dr.price, schedule.Outlier)
	default:
		dr.costFactor *= 1 + schedule.Forget*max(over/dr.price, -0.5)
	}
}

// settle notes what the guesses of a step have saved.
func (d *draftSelector) settle(st *step) {
	for i := range d.drafters {
		dr := &d.drafters[i]
		streams := st.shares.streams
		if dr.price == 0 || streams == 0 {
			continue
		}
		k := dr.Kind()
		each := d.cost.Time(streams) / float64(streams)
		dr.balance += float64(st.Accepted[k])*each - (d.cost.Time(streams+st.Drafted[k]) - d.cost.Time(streams)) - dr.price
	}
}

// limitToProfitable reduces what is asked of a drafter that takes time to what is
// worth that time, or to one token if there is credit to try the drafter. It
// reports whether anything is worth it.
func (d *draftSelector) limitToProfitable(dr *drafterState, n, room int) bool {
	all := d.asked
	d.selectDrafts(n, room, worthDrafting, func() float64 {
		for i := range d.options {
			if o := &d.options[i]; o.guess != nil {
				o.guess.Most = o.taken
			}
		}
		return dr.cost(all)
	})
	kept := all[:0]
	for i := range d.options {
		o := &d.options[i]
		if o.guess == nil {
			continue
		}
		if o.guess.Most = o.taken; o.taken > 0 {
			kept = append(kept, &o.guess.Guess)
		}
	}
	switch {
	case len(kept) > 0:
		d.asked = kept
		return true
	case dr.credit > 0:
		all[0].Most = 1
		d.asked = all[:1]
	default:
		d.asked = nil
	}
	return false
}

// choose takes the guesses of a drafter for a span if they are better than what
// it has.
func (d *draftSelector) choose(p *span, by int) {
	g := &p.s.task.drafts.by[by]
	g.Tokens = g.Tokens[:min(len(g.Tokens), max(0, g.Most))]
	for i, id := range g.Tokens {
		if id < 0 || int(id) >= d.bounds.vocab {
			g.Tokens = g.Tokens[:i]
			break
		}
	}
	if len(g.Tokens) > 0 && g.rate > p.rate() {
		p.drafter, p.offered = by, len(g.Tokens)
	}
}

// rate is how often the guesses that p has are right; -1: it has none.
func (p *span) rate() float64 {
	if p.offered == 0 {
		return -1
	}
	return p.s.task.drafts.by[p.drafter].rate
}

// judge notes whether the guesses about the token behind i others, which were
// all right, are right too.
func (d *draftSelector) judge(p *span, i int, id int32) {
	for by := range p.s.task.drafts.by {
		g, dr := &p.s.task.drafts.by[by], &d.drafters[by]
		if i < len(g.Tokens) && (i == 0 || by == p.drafter && i <= len(p.draft)) {
			right := g.Tokens[i] == id
			g.judged++
			learn(&g.rate, max(rateForget, 1/float64(g.judged+2)), right)
			if dr.Kind() != DraftLookup { // texts differ more in that than models
				dr.judged++
				learn(&dr.rate, max(drafterForget, 1/float64(dr.judged+2)), right)
			}
		}
	}
}

// learn moves a rate to what has just been seen.
func learn(rate *float64, weight float64, right bool) {
	*rate -= weight * *rate
	if right {
		*rate += weight
	}
}

// drop gives up a drafter that has failed. The streams go on without its guesses.
func (d *draftSelector) drop(dr *drafterState, err error) {
	dr.failed = true
	if d.opt.OnDraftError != nil {
		d.opt.OnDraftError(err)
	}
}
