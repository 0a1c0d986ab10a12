package batcher

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/schedule"
)

// source is a drafter as an engine knows it.
type source struct {
	Drafter
	rate   float64 // how often its guesses are right, of late; where new sequences begin
	judged int     // guesses that rate is made of
	credit float64 // seconds that may go to finding out whether it pays by now
	// balance is the seconds that its guesses have saved of late, less those that
	// it has read texts for; price what the guesses of the step under way cost.
	balance, price float64
	// dear is how many times its Price drafting takes, which counts the models' steps alone.
	dear   float64
	failed bool // it is not asked any more
}

// cost is how many seconds guesses are expected to take.
func (src *source) cost(guesses []*Guess) float64 { return src.dear * src.Price(guesses) }

// What a source's guesses are worth before they have been judged: a model that
// somebody has chosen to draft is given a chance.
var rateAtFirst = [DraftKinds]float64{DraftLookup: 0.3, DraftModel: 0.7}

const (
	rateForget    = 0.15
	sourceForget  = 0.02
	worthwhile    = 1.03 // least gain of speed
	worthDrafting = 1.1  // likewise where drafting takes time, of which less is known
	trials        = 0.02 // share of the time that a drafter that does not pay is tried for
	balanceShift  = 1.0 / 512
)

// draft asks a source for guesses about the streams that it knows better than
// the sources before it.
func (e *Engine) draft(by, n, room int) {
	src, base := &e.sources[by], e.cost.Time(n)
	if src.failed {
		return
	}
	src.balance *= 1 - balanceShift
	e.asks, e.bets = e.asks[:0], e.bets[:0]
	for i := range e.spans {
		p := &e.spans[i]
		if !p.asked {
			continue
		}
		g := &p.s.by[by]
		switch rate := p.rate(); {
		case g.rate > rate && (g.begun || !e.draftsPay || src.balance >= -base):
			e.asks = append(e.asks, &g.Guess)
			e.bets = append(e.bets, bet{span: i, rate: g.rate, most: g.Most, of: g})
		case p.most > 0:
			e.bets = append(e.bets, bet{span: i, rate: rate, most: p.most})
		}
	}
	trial, priced := false, src.Price(e.asks) > 0
	if priced {
		if e.draftsPay && e.counts.Steps%probe == 0 {
			return // so that it stays known what steps take without
		}
		src.credit = min(src.credit+trials*base, base)
		trial = !e.commission(src, n, room)
	}
	if len(e.asks) == 0 {
		return
	}
	spare := math.Inf(1)
	if e.opt.PromptStretch > 0 {
		spare = base * (e.opt.PromptStretch - 1)
	}
	begin := e.opt.Now()
	if err := src.Draft(e.asks, spare); err != nil {
		e.dropDrafter(src, err)
		return
	}
	took := e.opt.Now().Sub(begin)
	e.drafting += took
	for i := range e.spans {
		if p := &e.spans[i]; p.asked {
			e.choose(p, by)
		}
	}
	switch {
	case trial:
		src.credit -= took.Seconds()
	case priced:
		e.charge(src, took.Seconds(), spare)
	}
}

// charge settles what drafting has taken: more than was expected because texts
// had to be read, for which there were spare seconds, or else because the
// expectation was wrong.
func (e *Engine) charge(src *source, took, spare float64) {
	reading := false
	for i := range e.bets {
		if g := e.bets[i].of; g != nil && g.Most > 0 {
			reading = reading || !g.begun || len(g.Tokens) == 0
			g.begun = true
		}
	}
	e.asks = slices.DeleteFunc(e.asks, func(g *Guess) bool { return len(g.Tokens) == 0 })
	if src.price = src.cost(e.asks); len(e.asks) == 0 {
		reading = true
	}
	switch over := took - src.price; {
	case reading:
		src.balance -= min(max(0, over), spare)
	case over > 0: // as in pace, slow ones count for less
		src.dear *= 1 + schedule.Forget*schedule.SlowWeight*min(over/src.price, schedule.Outlier)
	default:
		src.dear *= 1 + schedule.Forget*max(over/src.price, -0.5)
	}
}

// settleUp notes what the guesses of a step with so many streams have saved.
func (e *Engine) settleUp(st *StepStats, streams int) {
	for i := range e.sources {
		src := &e.sources[i]
		if src.price == 0 || streams == 0 {
			continue
		}
		k := src.Kind()
		each := e.cost.Time(streams) / float64(streams)
		src.balance += float64(st.Accepted[k])*each - (e.cost.Time(streams+st.Drafted[k]) - e.cost.Time(streams)) - src.price
	}
}

// commission reduces what is asked of a source that takes its time to what
// pays, or else to one token, if there is credit to try the source. It tells
// whether something pays.
func (e *Engine) commission(src *source, n, room int) bool {
	all := e.asks
	e.wager(n, room, worthDrafting, func() float64 {
		for i := range e.bets {
			if b := &e.bets[i]; b.of != nil {
				b.of.Most = b.taken
			}
		}
		return src.cost(all)
	})
	kept := all[:0]
	for i := range e.bets {
		b := &e.bets[i]
		if b.of == nil {
			continue
		}
		if b.of.Most = b.taken; b.taken > 0 {
			kept = append(kept, &b.of.Guess)
		}
	}
	switch {
	case len(kept) > 0:
		e.asks = kept
		return true
	case src.credit > 0:
		all[0].Most = 1
		e.asks = all[:1]
	default:
		e.asks = nil
	}
	return false
}

// choose takes the guesses of a source for a span if they are better than what
// it has.
func (e *Engine) choose(p *span, by int) {
	g := &p.s.by[by]
	g.Tokens = g.Tokens[:min(len(g.Tokens), max(0, g.Most))]
	for i, id := range g.Tokens {
		if id < 0 || int(id) >= e.cfg.Vocab {
			g.Tokens = g.Tokens[:i]
			break
		}
	}
	if len(g.Tokens) > 0 && g.rate > p.rate() {
		p.by, p.most = by, len(g.Tokens)
	}
}

// rate is how often the guesses that p has are right; -1: it has none.
func (p *span) rate() float64 {
	if p.most == 0 {
		return -1
	}
	return p.s.by[p.by].rate
}

// judge notes whether the guesses about the token behind i others, which were
// all right, are right too.
func (e *Engine) judge(p *span, i int, id int32) {
	for by := range p.s.by {
		g, src := &p.s.by[by], &e.sources[by]
		if i < len(g.Tokens) && (i == 0 || by == p.by && i <= len(p.draft)) {
			right := g.Tokens[i] == id
			g.judged++
			learn(&g.rate, max(rateForget, 1/float64(g.judged+2)), right)
			if src.Kind() != DraftLookup { // texts differ more in that than models
				src.judged++
				learn(&src.rate, max(sourceForget, 1/float64(src.judged+2)), right)
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
