package batcher

import "github.com/lutra-lm/lutra/batcher/schedule"

// planner asks the scheduler what goes into the next step, and knows what steps cost.
type planner struct {
	scheduler schedule.Scheduler
	cost      schedule.CostModel
	demands   []schedule.Demand
	seqs      []*Sequence     // whose wants they are
	limits    schedule.Limits // of every step, but for the policy
}

// init must be called once, before anything else. p must not be copied after.
func (p *planner) init(opt *Options) {
	p.limits = schedule.Limits{
		Tokens: opt.StepTokens, Rows: opt.StepRows, Longest: opt.StepTime.Seconds(),
		Time: p.cost.Time, Optimistic: p.cost.Optimistic,
	}
}

// gather notes what active sequences demand and counts them by kind, except followers and
// those that wait for what may come next. Background ones that are withheld count, but
// want nothing.
func (p *planner) gather(active []*Sequence, withheld bool) (d workload) {
	p.demands, p.seqs = p.demands[:0], p.seqs[:0]
	for _, s := range active {
		if s.task.constraint.held() {
			continue
		}
		switch {
		case s.task.demand.Background:
			d.background++
			if withheld {
				continue
			}
		case s.task.leader != nil:
		case s.task.demand.Left() > 1:
			d.prompts++
		default:
			d.streams++
		}
		if s.task.leader == nil {
			p.seqs = append(p.seqs, s)
			p.demands = append(p.demands, s.task.demand)
		}
	}
	return d
}

// plan appends the spans of the next step to spans.
func (p *planner) plan(spans []span, l schedule.Limits) []span {
	for i, n := range p.scheduler.Plan(p.demands, l) {
		if n > 0 {
			spans = append(spans, span{s: p.seqs[i], n: n})
		}
	}
	return spans
}
