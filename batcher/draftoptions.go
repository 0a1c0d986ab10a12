package batcher

import "github.com/lutra-lm/lutra/batcher/schedule"

// draftOption holds the guesses about one stream that a step may compute.
type draftOption struct {
	span  int
	rate  float64 // how often one is right
	most  int     // number of guesses
	taken int     // how many of them are to be computed
	guess *guess  // the request to a drafter; nil: the guesses are there already
}

// chance returns the probability that the next guess and all before it are right.
func (o *draftOption) chance() float64 {
	c := o.rate
	for range o.taken {
		c *= o.rate
	}
	return c
}

// draftOptions holds the choices of drafted tokens for one step.
type draftOptions []draftOption

// askFor lists the guesses that a drafter, number by, may be asked for: about the streams for which its own have
// been right more often than the present ones. With mayBegin it may read texts that are new to it. askFor appends
// them to asked, and all that the step may compute to options.
func askFor(asked []*Guess, options draftOptions, spans []span, by int, mayBegin bool) ([]*Guess, draftOptions) {
	for i := range spans {
		p := &spans[i]
		if !p.asked {
			continue
		}
		g := &p.s.task.drafts.by[by]
		switch rate := p.rate(); {
		case g.rate > rate && (g.begun || mayBegin):
			asked = append(asked, &g.Guess)
			options = append(options, draftOption{span: i, rate: g.rate, most: g.Most, guess: g})
		case p.offered > 0:
			options = append(options, draftOption{span: i, rate: rate, most: p.offered})
		}
	}
	return asked, options
}

// ask sets how many guesses each drafter's request is for: those that are taken.
func (o draftOptions) ask() {
	for i := range o {
		if g := o[i].guess; g != nil {
			g.Most = o[i].taken
		}
	}
}

// begin notes that what was asked for has been drafted, and reports whether texts were read
// for it.
func (o draftOptions) begin() (reading bool) {
	for i := range o {
		if g := o[i].guess; g != nil && g.Most > 0 {
			reading = reading || !g.begun || len(g.Tokens) == 0
			g.begun = true
		}
	}
	return reading
}

// offers lists what the spans have been given.
func offers(options draftOptions, spans []span) draftOptions {
	for i := range spans {
		if p := &spans[i]; p.offered > 0 {
			options = append(options, draftOption{span: i, rate: p.rate(), most: p.offered})
		}
	}
	return options
}

// take takes at most room guesses from the options, likeliest first. With the cost of steps, guesses have to be
// worth their time. It takes as many as give a step of n tokens the best yield, and none if the gain is less than a
// factor of least. It takes none either before it is known how long a step of n tokens takes. price is the seconds
// that drafting the taken ones costs. cost is nil if they need not pay. taken is scratch, and returned.
func (o draftOptions) take(taken []int, n, room int, cost *schedule.CostModel, least float64, price func() float64) []int {
	best, sure := 0.0, float64(n)
	var alone float64 // no step of more rows takes less time; the first step of all may have met cold caches
	if cost != nil {
		alone = cost.Time(n)
		best = float64(n) / alone * least
	}
	if taken = taken[:0]; cost != nil && !cost.Tried(n) {
		return taken
	}
	most := 0
	for k := 1; k <= room; k++ {
		i, chance := o.likeliest()
		if i < 0 {
			break
		}
		o[i].taken++
		taken = append(taken, i)
		sure += chance
		if cost == nil {
			most = k
		} else if yield := sure / (max(alone, cost.Optimistic(n+k)) + price()); yield > best {
			best, most = yield, k
		} else if chance < leastChance {
			break
		}
	}
	for _, i := range taken[most:] {
		o[i].taken--
	}
	return taken
}

// leastChance bounds from below the probability of a guess that is examined after guesses that do not pay.
const leastChance = 0.02

// likeliest returns the option whose next guess is most likely right, and how likely
// that is; -1 when there is none left.
func (o draftOptions) likeliest() (best int, chance float64) {
	best = -1
	for i := range o {
		if o[i].taken == o[i].most {
			continue
		}
		if c := o[i].chance(); best < 0 || c > chance {
			best, chance = i, c
		}
	}
	return best, chance
}

// free returns the price of guesses that have been drafted.
func free() float64 { return 0 }
