package batcher

import (
	"math"
	"slices"
	"time"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models"
	"github.com/lutra-lm/lutra/models/kv"
)

// draftSelector decides which guesses about streams a step computes: it asks
// the drafters, picks the likeliest guesses, and learns how often they are right.
type draftSelector struct {
	now      func() time.Time
	onError  func(error) // Options.OnDraftError
	slowdown float64     // Options.PrefillSlowdown
	vocab    int
	ahead    int                 // guesses of a step
	cost     *schedule.CostModel // nil: guesses need not be worth their time
	steps    *schedule.CostModel // the same, in any case
	kv       *kv.Cache
	most     int // guesses a stream and step
	drafters []drafterState
	asked    []*Guess
	options  draftOptions
	taken    []int         // scratch of options
	spent    time.Duration // on the drafts of the step under way
	drafted  int           // steps in a row with guesses that took time
	period   int           // such steps until one without shows again what that takes
}

// periodLeast and periodMost bound period. It doubles as long as steps without guesses take what was expected.
const (
	periodLeast = 4
	periodMost  = 32
	unexpected  = 0.25 // how far off a step's time is, as a logarithm
)

func newDraftSelector(c *setup, cache *kv.Cache, cost *schedule.CostModel) draftSelector {
	d := draftSelector{now: c.opt.Now, onError: c.opt.OnDraftError, slowdown: c.opt.PrefillSlowdown, vocab: c.bounds.vocab, ahead: c.bounds.ahead, steps: cost, kv: cache}
	var mustPay bool
	if d.most, mustPay, _ = c.opt.Speculation.limit(); mustPay {
		d.cost = cost
	}
	for _, drafter := range c.opt.Drafters {
		d.drafters = append(d.drafters, newDrafterState(drafter))
	}
	return d
}

// kind returns how the guesses that a span computes were made.
func (d *draftSelector) kind(p *span) DraftKind { return d.drafters[p.drafter].Kind() }

// extend adds guesses to the planned streams. In a probe, and after a period, drafters that take time are
// not asked, so that it stays known what steps take without.
func (d *draftSelector) extend(spans []span, l *schedule.Limits, probe bool) {
	d.spent = 0
	if d.most == 0 {
		return
	}
	for i := range d.drafters {
		d.drafters[i].price = 0
	}
	n, rows := 0, 0
	for _, p := range spans {
		n, rows = n+p.n+p.forced, rows+p.s.task.demand.Rows(p.n)+p.forced-p.unsampled
	}
	room := l.Tokens
	if d.cost != nil {
		room = schedule.WholeTiles(n)
	}
	if room = min(room-n, l.Rows-rows, d.ahead); room < 1 {
		return
	}
	for i := range spans {
		if p := &spans[i]; p.n == 1 && p.s.task.demand.Left() == 1 && !p.followed && p.forced == 0 {
			p.asked = d.prepare(p.s, min(room, d.most))
		}
	}
	probe = probe || d.drafted >= d.period
	for by := range d.drafters {
		d.consult(spans, by, n, room, probe)
	}
	if d.drafted++; !slices.ContainsFunc(d.drafters, func(dr drafterState) bool { return dr.price > 0 }) {
		d.drafted = 0
	}
	d.options = offers(d.options[:0], spans)
	d.taken = d.options.take(d.taken, n, room, d.cost, worthwhile, free)
	for _, o := range d.options {
		p := &spans[o.span]
		p.draft = p.s.task.drafts.by[p.drafter].Tokens[:o.taken]
	}
}

// prepare prepares a request for up to k guesses, and reports whether there can be any.
func (d *draftSelector) prepare(s *Sequence, k int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.generates() {
		return false
	}
	if k = min(k, s.ahead(), d.kv.Ahead(s.task.kv)); k < 1 {
		return false
	}
	own := d.draftsOf(s)
	at := s.advance()
	own.text = append(own.text[:0], s.content.tokens...)
	for i := range own.by {
		g := &own.by[i]
		g.Text, g.Prompt, g.Params, g.Most, g.Tokens = own.text, s.content.prompt, s.request.params, k, g.Tokens[:0]
		g.Params.Constraint = at
	}
	return true
}

// draftsOf returns what drafters guess of a stream.
func (d *draftSelector) draftsOf(s *Sequence) *drafts {
	own := &s.task.drafts
	if own.by == nil {
		own.by = make([]guess, len(d.drafters))
		for i := range own.by {
			own.by[i].rate, own.by[i].own = d.drafters[i].rate, d.drafters[i].rate
		}
	}
	return own
}

// follower returns the drafter, by number, that reads the model's hidden states; nil: none does.
func (d *draftSelector) follower() (by int, f Follower) {
	for by := range d.drafters {
		if f, ok := d.drafters[by].Drafter.(Follower); ok && d.most > 0 && !d.drafters[by].failed {
			return by, f
		}
	}
	return 0, nil
}

// follow tells the drafter that reads hidden states of what the step has computed and was right.
func (d *draftSelector) follow(spans []span, b *models.Batch) {
	by, f := d.follower()
	if f == nil || !b.KeepStates {
		return
	}
	begin := d.now()
	for i := range b.Spans {
		sp, s := &b.Spans[i], spans[i].s
		at := int(b.Positions[sp.Start])
		n := min(s.task.demand.Computed-at, sp.End-sp.Start)
		s.mu.Lock()
		reads := n > 0 && !s.changed() && s.request.kind == wantTokens
		var g *Guess
		if reads {
			own := d.draftsOf(s)
			own.text = append(own.text[:0], s.content.tokens[:at+n]...)
			g = &own.by[by].Guess
			g.Text, g.Root, g.Salt = own.text, s.setup.variant.KVRoot(), s.salt
		}
		s.mu.Unlock()
		if reads {
			width := len(b.States) / len(b.Tokens)
			f.Follow(g, at, b.Tokens[sp.Start:sp.Start+n], b.States[sp.Start*width:(sp.Start+n)*width])
		}
	}
	if err := f.Read(); err != nil {
		d.fail(&d.drafters[by], err)
	}
	d.spent += d.now().Sub(begin)
}

// fail gives a drafter up.
func (d *draftSelector) fail(dr *drafterState, err error) {
	dr.failed = true
	if d.onError != nil {
		d.onError(err)
	}
}

// consult asks a drafter for guesses about the streams for which it has been right
// more often than the drafters before it.
func (d *draftSelector) consult(spans []span, by, n, room int, probe bool) {
	dr, base := &d.drafters[by], d.steps.Time(n)
	if dr.failed {
		return
	}
	dr.balance *= 1 - balanceShift
	_, follows := dr.Drafter.(Follower) // which reads all texts anyway
	d.asked, d.options = askFor(d.asked[:0], d.options[:0], spans, by, d.cost == nil || follows || dr.balance >= -base)
	trial, priced := false, dr.Price(d.asked) > 0
	if priced {
		if d.cost != nil && probe {
			return
		}
		dr.credit = min(dr.credit+trials*base, base)
		trial = !d.limitToProfitable(dr, n, room)
	}
	if len(d.asked) == 0 {
		return
	}
	extra := math.Inf(1)
	if d.slowdown > 0 {
		extra = base * (d.slowdown - 1)
	}
	took, err := d.call(dr, extra)
	if err != nil {
		return
	}
	for i := range spans {
		if p := &spans[i]; p.asked {
			p.choose(by, d.vocab)
		}
	}
	switch {
	case trial:
		dr.credit -= took
	case priced:
		reading := d.options.begin()
		d.asked = slices.DeleteFunc(d.asked, func(g *Guess) bool { return len(g.Tokens) == 0 })
		dr.charge(d.asked, took, extra, reading)
	}
}

// call lets a drafter guess, and returns how many seconds that took. One that has failed is
// given up: the streams go on without its guesses.
func (d *draftSelector) call(dr *drafterState, extra float64) (took float64, err error) {
	begin := d.now()
	if err := dr.Draft(d.asked, extra); err != nil {
		d.fail(dr, err)
		return 0, err
	}
	spent := d.now().Sub(begin)
	d.spent += spent
	return spent.Seconds(), nil
}

// limitToProfitable reduces what is asked of a drafter that takes time to what is
// worth that time. Streams that it is due to be tried for get one token.
// It reports whether anything is worth it; if not, trials need credit.
func (d *draftSelector) limitToProfitable(dr *drafterState, n, room int) (pays bool) {
	all := d.asked
	d.taken = d.options.take(d.taken, n, room, d.cost, worthDrafting, func() float64 {
		d.options.ask()
		return dr.cost(all)
	})
	d.options.ask()
	for _, o := range d.options {
		pays = pays || o.guess != nil && o.taken > 0
	}
	kept := all[:0]
	for _, o := range d.options {
		switch g := o.guess; {
		case g == nil:
		case o.taken > 0:
			g.pause = 0
			kept = append(kept, &g.Guess)
		case (pays || dr.credit > 0) && g.due():
			g.Most = 1
			kept = append(kept, &g.Guess)
		}
	}
	d.asked = kept
	return pays
}

// judge notes whether the guesses about the token after i others, which were
// all right, are right too.
func (d *draftSelector) judge(p *span, i int, id int32) {
	by := p.s.task.drafts.by
	for n := range by {
		if g := &by[n]; i < len(g.Tokens) && (i == 0 || n == p.drafter && i <= len(p.draft)) {
			d.drafters[n].judge(g, g.Tokens[i] == id)
		}
	}
}

// settle notes what the guesses of a step have saved, or what it took without.
func (d *draftSelector) settle(st *step) {
	if st.Drafted == [DraftKinds]int{} && d.steps.Known() {
		if d.period = min(2*max(d.period, 1), periodMost); math.Abs(math.Log(st.computing()/d.steps.Time(st.Tokens))) > unexpected {
			d.period = max(d.period/4, periodLeast)
		}
	}
	for i := range d.drafters {
		k := d.drafters[i].Kind()
		d.drafters[i].settle(st.shares.streams, st.Drafted[k], st.Accepted[k], d.steps)
	}
}
