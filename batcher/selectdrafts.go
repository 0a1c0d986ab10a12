package batcher

import (
	"time"

	"github.com/lutra-lm/lutra/batcher/schedule"
)

// draftSelector decides which guesses about streams a step computes: it asks
// the drafters, picks the likeliest guesses, and learns how often they are right.
type draftSelector struct {
	opt      *Options
	counts   *Stats
	cost     *schedule.CostModel
	bounds   bounds
	most     int  // guesses a stream and step
	mustPay  bool // guesses have to be worth their time
	drafters []drafterState
	asked    []*Guess
	options  []draftOption
	taken    []int         // indexes of options, in the order of their guesses
	spent    time.Duration // on the drafts of the step under way
}

func newDraftSelector(e *Engine) draftSelector {
	d := draftSelector{opt: &e.opt, counts: &e.stats.counts, cost: &e.planner.cost, bounds: e.bounds}
	d.most, d.mustPay, _ = e.opt.Speculation.limit()
	for _, drafter := range e.opt.Drafters {
		d.drafters = append(d.drafters, drafterState{Drafter: drafter, rate: rateAtFirst[drafter.Kind()], costFactor: 1})
	}
	return d
}

// kind is how the guesses that a span computes were made.
func (d *draftSelector) kind(p *span) DraftKind { return d.drafters[p.drafter].Kind() }

// extend adds guesses to the planned streams.
func (d *draftSelector) extend(spans []span, l *schedule.Limits) {
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
	if d.mustPay {
		room = schedule.WholeTiles(n)
	}
	if room = min(room-n, l.Rows-rows); room < 1 {
		return
	}
	for i := range spans {
		if p := &spans[i]; p.n == 1 && p.s.task.demand.Left() == 1 && !p.followed && p.forced == 0 {
			p.asked = d.prepare(p.s, min(room, d.most))
		}
	}
	for by := range d.drafters {
		d.draft(spans, by, n, room)
	}
	d.options = d.options[:0]
	for i := range spans {
		if p := &spans[i]; p.offered > 0 {
			d.options = append(d.options, draftOption{span: i, rate: p.s.task.drafts.by[p.drafter].rate, most: p.offered})
		}
	}
	d.selectDrafts(n, room, worthwhile, free)
	for _, o := range d.options {
		p := &spans[o.span]
		p.draft = p.s.task.drafts.by[p.drafter].Tokens[:o.taken]
	}
}

// ask prepares a request for up to k guesses, and reports whether there can be any.
func (d *draftSelector) prepare(s *Sequence, k int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.request
	if s.epoch != s.task.seen || o.kind != wantTokens {
		return false
	}
	if k = min(k, o.left-1, d.bounds.limit-len(s.content.tokens)-1, d.opt.Unread-len(s.content.unread)-1); k < 1 {
		return false
	}
	if s.task.drafts.by == nil {
		s.task.drafts.by = make([]guess, len(d.drafters))
		for i := range s.task.drafts.by {
			s.task.drafts.by[i].rate = d.drafters[i].rate
		}
	}
	at := s.stand()
	s.task.drafts.text = append(s.task.drafts.text[:0], s.content.tokens...)
	for i := range s.task.drafts.by {
		g := &s.task.drafts.by[i]
		g.Text, g.Prompt, g.Params, g.Most, g.Tokens = s.task.drafts.text, s.content.prompt, o.params, k, g.Tokens[:0]
		g.Params.Constraint = at
	}
	return true
}

// draftOption is the guesses about one stream that a step may compute.
type draftOption struct {
	span  int
	rate  float64 // how often one is right
	most  int     // number of guesses
	taken int     // how many of them are to be computed
	guess *guess  // the request to a drafter; nil: the guesses are there already
}

// chance is the probability that the next guess and all before it are right.
func (o *draftOption) chance() float64 {
	c := o.rate
	for range o.taken {
		c *= o.rate
	}
	return c
}

// free is the price of guesses that have been drafted.
func free() float64 { return 0 }

// selectDrafts takes guesses from the options, likeliest first, at most room. If
// guesses have to pay, it takes as many as give a step of n tokens the best yield
// for its time, and none if the gain is less than a factor of least. price is
// the seconds that drafting the taken ones costs.
func (d *draftSelector) selectDrafts(n, room int, least float64, price func() float64) {
	base := float64(n) / d.cost.Time(n)
	best, sure := base*least, float64(n)
	d.taken = d.taken[:0]
	most := 0
	for k := 1; k <= room; k++ {
		i, chance := d.likeliest()
		if i < 0 {
			break
		}
		d.options[i].taken++
		d.taken = append(d.taken, i)
		sure += chance
		if !d.mustPay {
			most = k
		} else if yield := sure / (d.cost.Optimistic(n+k) + price()); yield > best {
			best, most = yield, k
		} else if chance < 0.02 {
			break
		}
	}
	for _, i := range d.taken[most:] {
		d.options[i].taken--
	}
}

// likeliest is the option whose next guess is most likely right, and how likely
// that is; -1 when there is none left.
func (d *draftSelector) likeliest() (best int, chance float64) {
	best = -1
	for i := range d.options {
		o := &d.options[i]
		if o.taken == o.most {
			continue
		}
		if c := o.chance(); best < 0 || c > chance {
			best, chance = i, c
		}
	}
	return best, chance
}
