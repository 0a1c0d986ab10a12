package batcher

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models/kv"
)

// task is what the step loop knows of a sequence.
//
//	        settle          admit          deliver, settle
//	parked ───────▶ waiting ─────▶ active ─────────────────▶ idle
//	   ▲               ▲             │ preempt     settle     │ │
//	   │               └─────────────┘ ◀──────────────────────┘ │
//	   └───────────────────────── evict ◀───────────────────────┘
type task struct {
	demand     schedule.Demand // what the caller waits for; Have == Target: nothing
	kv         *kv.Sequence    // want.Have is its Len between steps; nil: no blocks, want.Have == 0
	list       list
	seen       uint64 // the epoch that want was made of
	reached    int    // the most positions that were ever computed
	begun      bool
	tried      int // admission.freed when there were too few blocks to admit it
	hash       tokenHash
	drafts     drafts
	constraint constraint
	flush      flushState
}

// list says which list a sequence is in.
type list uint8

const (
	parked  list = iota // no blocks, no work
	waiting             // admission.waiting
	active              // admission.active
	idle                // admission.idle
	retired             // closed, blocks given back
)

// older orders sequences by age: forks stand behind their parent and before
// whatever was opened later; background ones count as younger than they are.
func older(a, b *Sequence) int {
	return cmp.Or(cmp.Compare(a.age, b.age), cmp.Compare(a.id, b.id))
}

// move puts s into another list.
func (a *admission) move(s *Sequence, to list) {
	lists := [...]*[]*Sequence{waiting: &a.waiting, active: &a.active, idle: &a.idle, retired: nil}
	if s.task.list == to {
		return
	}
	if l := lists[s.task.list]; l != nil {
		i := slices.Index(*l, s)
		*l = slices.Delete(*l, i, i+1)
	}
	s.task.list = to
	switch to {
	case waiting, active:
		i, _ := slices.BinarySearchFunc(*lists[to], s, older)
		*lists[to] = slices.Insert(*lists[to], i, s)
	case idle:
		a.idle = append(a.idle, s)
		a.freed++
	}
}

// settle updates s.want to what its caller asks, and moves s to the right list.
func (a *admission) settle(s *Sequence) {
	if s.task.list == retired {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		a.retire(s)
		return
	}
	if s.task.seen != s.epoch {
		s.task.constraint.maskReady = nil // it was for another wish
	}
	s.task.seen = s.epoch
	if s.content.cutAt < s.task.demand.Computed {
		s.cut(s.content.cutAt)
	}
	s.resetHash(s.content.cutAt)
	s.task.constraint.cutTo(s.content.cutAt)
	s.content.cutAt = math.MaxInt
	s.seal()
	if f := s.fork; f != nil && s.task.demand.Computed >= f.at-1 {
		a.branch(s, f)
		s.fork = nil
		s.cond.Broadcast()
	}
	s.task.demand = s.nextDemand()
	s.extendHash()
	if s.task.demand.LogitsFrom < s.task.demand.Computed { // a row is wanted of a position computed before
		s.cut(s.task.demand.LogitsFrom)
	}
	if s.task.demand.Whole && s.task.demand.Computed > 0 && s.task.demand.Left() > 0 { // what is computed has seen less
		s.cut(0)
	}
	switch busy := s.task.demand.Left() > 0; {
	case busy && s.task.kv != nil:
		a.move(s, active)
	case busy:
		a.move(s, waiting)
	case s.task.kv != nil:
		a.move(s, idle)
	default:
		a.move(s, parked)
	}
}

// wanted translates the caller's order. Locked.
func (s *Sequence) nextDemand() schedule.Demand {
	n := len(s.content.tokens)
	w := schedule.Demand{Computed: s.task.demand.Computed, Target: s.task.demand.Computed, LogitsFrom: schedule.NoRows, Background: s.background, Whole: s.e.bounds.whole}
	switch {
	case s.fork != nil:
		w.Target = s.fork.at - 1
	case s.request.kind == wantTokens && !s.stalled, s.request.kind == wantLogits:
		w.Target, w.LogitsFrom = n, n-1
	case s.request.kind == wantScores:
		w.Target, w.LogitsFrom = n-1, len(s.request.scored)
	case s.request.kind == wantMean:
		w.Target, w.LogitsFrom = n, s.request.summed
	case s.request.kind == wantFirst:
		w.Target, w.LogitsFrom = n, 0
	}
	return w
}

// cut drops computed positions from n on, and of a model with recurrent layers those
// behind the last checkpoint before n: they are computed again.
func (s *Sequence) cut(n int) {
	s.task.kv.Truncate(n)
	s.task.demand.Computed = s.task.kv.Len()
}

// seal offers what was computed to the prefix cache, unless it depends on what was
// computed with it.
// Locked.
func (s *Sequence) seal() {
	if s.task.kv != nil && !s.e.bounds.whole {
		s.task.kv.Seal(s.content.tokens)
	}
}

// branch gives f's forks their share of the computed blocks.
func (a *admission) branch(s *Sequence, f *fork) {
	for _, k := range f.children {
		k.task.constraint = s.task.constraint.fork(f.at)
	}
	if s.task.kv == nil {
		return
	}
	n := min(s.task.demand.Computed, f.at)
	for _, k := range f.children {
		k.task.kv = s.task.kv.Fork()
		k.task.demand.Computed = s.task.demand.Computed
		k.cut(n)
		k.task.demand.Target, k.task.demand.LogitsFrom, k.task.reached = k.task.demand.Computed, schedule.NoRows, n
		a.move(k, idle)
	}
}
