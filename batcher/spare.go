package batcher

import "github.com/lutra-lm/lutra/batcher/schedule"

// fillSpare adds spare sequences to a planned step, as far as it takes at most
// slowdown times as long. Those wait for the next step that it would make too long; those that
// no step of its size has lanes or rows for are dropped. d is what else the engine has to do:
// where nothing of that is planned, neither are they.
func (p *planner) fillSpare(spans []span, limits *schedule.Limits, slowdown float64, d workload, drop func(*Sequence)) []span {
	n, rows := 0, 0
	for i := range spans {
		n += spans[i].n
		rows += spans[i].s.task.demand.Rows(spans[i].n)
	}
	cost := &p.cost
	longest, alone := cost.Time(n)*slowdown, n == 0
	if alone && (d != workload{} || limits.OtherPrefilling) {
		return spans
	}
	for _, s := range p.spare {
		w := &s.task.demand
		k := w.Left()
		switch {
		case n+k > limits.Tokens, rows+w.Rows(k) > limits.Rows, k > Tile: // which has lost its blocks
			drop(s)
		case alone || cost.Time(n+k) <= longest:
			spans = append(spans, span{s: s, n: k})
			n, rows = n+k, rows+w.Rows(k)
		}
	}
	return spans
}
