package batcher

// bet is guesses about one stream that a step may compute.
type bet struct {
	span  int
	rate  float64 // how often one is right
	most  int     // guesses there are
	taken int     // of them to be computed
	of    *guess  // what a source is asked; nil: there are guesses already
}

// chance is how likely the next guess is right: if those before it are.
func (b *bet) chance() float64 {
	c := b.rate
	for range b.taken {
		c *= b.rate
	}
	return c
}

// free is the price of guesses that have been drafted.
func free() float64 { return 0 }

// wager takes guesses from the bets, likeliest first: at most room, and no more
// than make a step of n tokens yield most for its time, if they have to pay; the
// gain has to be a factor of least. price is how many seconds drafting those
// that are taken costs.
func (e *Engine) wager(n, room int, least float64, price func() float64) {
	base := float64(n) / e.cost.Time(n)
	best, sure := base*least, float64(n)
	e.taken = e.taken[:0]
	most := 0
	for k := 1; k <= room; k++ {
		i, chance := e.likeliest()
		if i < 0 {
			break
		}
		e.bets[i].taken++
		e.taken = append(e.taken, i)
		sure += chance
		if !e.draftsPay {
			most = k
		} else if yield := sure / (e.cost.Optimistic(n+k) + price()); yield > best {
			best, most = yield, k
		} else if chance < 0.02 {
			break
		}
	}
	for _, i := range e.taken[most:] {
		e.bets[i].taken--
	}
}

// likeliest is the bet whose next guess is most likely right, and how likely
// that is; -1 when there is none left.
func (e *Engine) likeliest() (best int, chance float64) {
	best = -1
	for i := range e.bets {
		b := &e.bets[i]
		if b.taken == b.most {
			continue
		}
		if c := b.chance(); best < 0 || c > chance {
			best, chance = i, c
		}
	}
	return best, chance
}
