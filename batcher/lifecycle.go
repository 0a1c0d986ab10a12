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
	want    schedule.Demand // what the caller waits for; Have == Target: nothing
	kv      *kv.Sequence    // want.Have is its Len between steps; nil: no blocks, want.Have == 0
	list    list
	seen    uint64 // the epoch that want was made of
	reached int    // the most positions that were ever computed
	begun   bool
	tried   int // admission.freed when there were too few blocks to admit it
	dedupState
	guesses
	constrained
	flushState
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
	if s.list == to {
		return
	}
	if l := lists[s.list]; l != nil {
		i := slices.Index(*l, s)
		*l = slices.Delete(*l, i, i+1)
	}
	s.list = to
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
	if s.list == retired {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		a.retire(s)
		return
	}
	if s.seen != s.epoch {
		s.late = nil // it was for another wish
	}
	s.seen = s.epoch
	if s.stale < s.want.Computed {
		s.cut(s.stale)
	}
	s.forget(s.stale)
	s.retract(s.stale)
	s.stale = math.MaxInt
	s.seal()
	if f := s.fork; f != nil && s.want.Computed >= f.at-1 {
		a.branch(s, f)
		s.fork = nil
		s.cond.Broadcast()
	}
	s.want = s.wanted()
	s.digest()
	if s.want.LogitsFrom < s.want.Computed { // a row is wanted of a position computed before
		s.cut(s.want.LogitsFrom)
	}
	if s.want.Whole && s.want.Computed > 0 && s.want.Left() > 0 { // what is computed has seen less
		s.cut(0)
	}
	switch busy := s.want.Left() > 0; {
	case busy && s.kv != nil:
		a.move(s, active)
	case busy:
		a.move(s, waiting)
	case s.kv != nil:
		a.move(s, idle)
	default:
		a.move(s, parked)
	}
}

// wanted translates the caller's order. Locked.
func (s *Sequence) wanted() schedule.Demand {
	n := len(s.tokens)
	w := schedule.Demand{Computed: s.want.Computed, Target: s.want.Computed, LogitsFrom: schedule.NoRows, Background: s.background, Whole: s.e.whole}
	switch {
	case s.fork != nil:
		w.Target = s.fork.at - 1
	case s.order.kind == wantTokens && !s.stalled, s.order.kind == wantLogits:
		w.Target, w.LogitsFrom = n, n-1
	case s.order.kind == wantScores:
		w.Target, w.LogitsFrom = n-1, len(s.order.scored)
	case s.order.kind == wantMean:
		w.Target, w.LogitsFrom = n, s.order.summed
	case s.order.kind == wantFirst:
		w.Target, w.LogitsFrom = n, 0
	}
	return w
}

// cut drops computed positions from n on, and of a model with recurrent layers those
// behind the last checkpoint before n: they are computed again.
func (s *Sequence) cut(n int) {
	s.kv.Truncate(n)
	s.want.Computed = s.kv.Len()
}

// seal offers what was computed to the prefix cache, unless it depends on what was
// computed with it.
// Locked.
func (s *Sequence) seal() {
	if s.kv != nil && !s.e.whole {
		s.kv.Seal(s.tokens)
	}
}

// branch gives f's forks their share of the computed blocks.
func (a *admission) branch(s *Sequence, f *fork) {
	for _, k := range f.children {
		k.constrained = s.inherit(f.at)
	}
	if s.kv == nil {
		return
	}
	n := min(s.want.Computed, f.at)
	for _, k := range f.children {
		k.kv = s.kv.Fork()
		k.want.Computed = s.want.Computed
		k.cut(n)
		k.want.Target, k.want.LogitsFrom, k.reached = k.want.Computed, schedule.NoRows, n
		a.move(k, idle)
	}
}
