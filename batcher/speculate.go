package batcher

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Speculation is how many tokens of a stream may be computed before they are
// known: a step then computes guesses behind the stream's last token as well,
// and keeps what sampling confirms. Every token is sampled from the logits,
// position and tokens that it would be sampled from otherwise, so they are the
// same tokens, with any parameters.
type Speculation string

// The speculations beside numbers, which mean so many whatever they cost.
const (
	SpeculateAuto Speculation = "auto" // as many as pay, in lanes that the step has begun anyway
	SpeculateOff  Speculation = "off"
)

// draftsMost bounds the guesses a stream has in a step: more than half a tile is seldom right.
const draftsMost = Tile/2 - 1

// limit is the number of guesses a stream, and whether they have to pay.
func (s Speculation) limit() (n int, pays bool, err error) {
	switch s {
	case SpeculateAuto:
		return draftsMost, true, nil
	case SpeculateOff, "":
		return 0, false, nil
	}
	n, err = strconv.Atoi(string(s))
	if err != nil || n < 0 || n > draftsMost {
		return 0, false, fmt.Errorf("batcher: speculation = %q, want auto, off or a number to %d", string(s), draftsMost)
	}
	return n, false, nil
}

// source is a drafter as an engine knows it.
type source struct {
	Drafter
	rate   float64 // how often its guesses are right, of late; where new sequences begin
	judged int     // guesses that rate is made of
	credit float64 // seconds that may go to finding out whether it pays by now
	// balance is the seconds that its guesses have saved of late, less those that
	// it has read texts for; price what the guesses of the step under way cost.
	balance, price float64
}

// guesses is what the step loop knows of a stream's drafts.
type guesses struct {
	text []int32 // a copy of the stream's tokens
	by   []guess // one a source
}

// guess is what a source says. Its first token is held against what is sampled
// even if it is not computed.
type guess struct {
	Guess
	rate   float64 // how often it is right, of late
	judged int     // guesses that rate is made of
	begun  bool    // it has been decided that the text is worth reading
}

// What a source's guesses are worth before they have been judged: a model that
// somebody has chosen to draft is given a chance.
var rateAtFirst = [DraftKinds]float64{DraftLookup: 0.3, DraftModel: 0.7}

const (
	rateForget   = 0.15
	sourceForget = 0.02
	worthwhile   = 1.03 // least gain of speed
	trials       = 0.02 // share of the time that a drafter that does not pay is tried for
	balanceShift = 1.0 / 512
)

// forgetGuesses gives back what drafters keep of s.
func (s *Sequence) forgetGuesses() {
	for i := range s.by {
		if g := &s.by[i]; g.Notes != nil {
			g.Notes.Close()
			g.Notes, g.begun = nil, false
		}
	}
}

// ask prepares to ask for up to k guesses, if there can be any.
func (e *Engine) ask(s *Sequence, k int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.order
	if s.epoch != s.seen || o.kind != wantTokens {
		return false
	}
	if k = min(k, o.left-1, e.limit-len(s.tokens)-1, e.opt.Unread-len(s.unread)-1); k < 1 {
		return false
	}
	if s.by == nil {
		s.by = make([]guess, len(e.sources))
		for i := range s.by {
			s.by[i].rate = e.sources[i].rate
		}
	}
	s.text = append(s.text[:0], s.tokens...)
	for i := range s.by {
		g := &s.by[i]
		g.Text, g.Prompt, g.Params, g.Most, g.Tokens = s.text, s.prompt, o.params, k, g.Tokens[:0]
	}
	return true
}

// speculate adds guesses to the planned streams.
func (e *Engine) speculate(l *limits) error {
	if e.drafts == 0 {
		return nil
	}
	n, rows := 0, 0
	for _, p := range e.spans {
		n, rows = n+p.n, rows+p.s.rows(p.n)
	}
	room := l.tokens
	if e.draftsPay {
		room = wholeTiles(n)
	}
	if room = min(room-n, l.rows-rows); room < 1 {
		return nil
	}
	for i := range e.spans {
		if p := &e.spans[i]; p.n == 1 && p.s.left() == 1 && !p.ridden {
			p.asked = e.ask(p.s, min(room, e.drafts))
		}
	}
	for by := range e.sources {
		if err := e.draft(by, n, room); err != nil {
			return err
		}
	}
	e.bets = e.bets[:0]
	for i := range e.spans {
		if p := &e.spans[i]; p.most > 0 {
			e.bets = append(e.bets, bet{span: i, rate: p.s.by[p.by].rate, most: p.most})
		}
	}
	e.wager(n, room, free)
	for _, b := range e.bets {
		p := &e.spans[b.span]
		p.draft = p.s.by[p.by].Tokens[:b.taken]
	}
	return nil
}

// draft asks a source for guesses about the streams that it knows better than
// the sources before it.
func (e *Engine) draft(by, n, room int) error {
	src, base := &e.sources[by], e.pace.time(n)
	src.price, src.balance = 0, src.balance*(1-balanceShift)
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
			e.bets = append(e.bets, bet{span: i, rate: g.rate, most: g.Most, of: &g.Guess})
		case p.most > 0:
			e.bets = append(e.bets, bet{span: i, rate: rate, most: p.most})
		}
	}
	trial := false
	if src.Price(e.asks) > 0 {
		if e.draftsPay && e.counts.Steps%probe == 0 {
			return nil // so that it stays known what steps take without
		}
		src.credit = min(src.credit+trials*base, base)
		trial = !e.commission(src, n, room)
	}
	if len(e.asks) == 0 {
		return nil
	}
	spare := math.Inf(1)
	if e.opt.PromptStretch > 0 {
		spare = base * (e.opt.PromptStretch - 1)
	}
	begin := e.opt.Now()
	if err := src.Draft(e.asks, spare); err != nil {
		return err
	}
	took := e.opt.Now().Sub(begin)
	e.drafting += took
	for i := range e.spans {
		if p := &e.spans[i]; p.asked {
			e.choose(p, by)
		}
	}
	if trial {
		src.credit -= took.Seconds()
		return nil
	}
	for i := range e.bets {
		if b := &e.bets[i]; b.of != nil {
			e.spans[b.span].s.by[by].begun = true
		}
	}
	e.asks = slices.DeleteFunc(e.asks, func(g *Guess) bool { return len(g.Tokens) == 0 })
	src.price = src.Price(e.asks)
	src.balance -= min(max(0, took.Seconds()-src.price), spare)
	return nil
}

// settleUp notes what the guesses of a step with so many streams have saved.
func (e *Engine) settleUp(st *StepStats, streams int) {
	for i := range e.sources {
		src := &e.sources[i]
		if src.price == 0 || streams == 0 {
			continue
		}
		k := src.Kind()
		each := e.pace.time(streams) / float64(streams)
		src.balance += float64(st.Accepted[k])*each - (e.pace.time(streams+st.Drafted[k]) - e.pace.time(streams)) - src.price
	}
}

// commission reduces what is asked of a source that takes its time to what
// pays, or else to one token, if there is credit to try the source. It tells
// whether something pays.
func (e *Engine) commission(src *source, n, room int) bool {
	all := e.asks
	e.wager(n, room, func() float64 {
		for i := range e.bets {
			if b := &e.bets[i]; b.of != nil {
				b.of.Most = b.taken
			}
		}
		return src.Price(all)
	})
	kept := all[:0]
	for i := range e.bets {
		if b := &e.bets[i]; b.of != nil && b.taken > 0 {
			b.of.Most = b.taken
			kept = append(kept, b.of)
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
