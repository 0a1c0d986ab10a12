package batcher

import (
	"cmp"
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models"
)

// task is what the step loop knows of a sequence.
//
//	        settle          admit          deliver, settle
//	parked ───────▶ waiting ─────▶ active ─────────────────▶ idle
//	   ▲               ▲             │ preempt     settle     │ │
//	   │               └─────────────┘ ◀──────────────────────┘ │
//	   └───────────────────────── evict ◀───────────────────────┘
type task struct {
	want    schedule.Want // what the caller waits for; Have == Target: nothing
	kv      *models.KVSeq // have is its Len between steps; nil: no blocks, have == 0
	list    list
	seen    uint64 // the epoch that want was made of
	reached int    // the most positions that were ever computed
	begun   bool
	tried   int // Engine.freed when there were too few blocks to admit it
	twinship
	guesses
	readership
}

// list says which list a sequence is in.
type list uint8

const (
	parked  list = iota // no blocks, no work
	waiting             // Engine.waiting
	active              // Engine.active
	idle                // Engine.idle
	retired             // closed, blocks given back
)

// older orders sequences by age: forks stand behind their parent and before
// whatever was opened later; background ones count as younger than they are.
func older(a, b *Sequence) int {
	return cmp.Or(cmp.Compare(a.age, b.age), cmp.Compare(a.id, b.id))
}

// move puts s into another list.
func (e *Engine) move(s *Sequence, to list) {
	lists := [...]*[]*Sequence{waiting: &e.waiting, active: &e.active, idle: &e.idle, retired: nil}
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
		e.idle = append(e.idle, s)
		e.freed++
	}
}

// settle makes s.want of what its caller asks, and moves s where it belongs.
func (e *Engine) settle(s *Sequence) {
	if s.list == retired {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		e.retire(s)
		return
	}
	s.seen = s.epoch
	if s.stale < s.want.Have {
		s.cut(s.stale)
	}
	s.forget(s.stale)
	s.stale = math.MaxInt
	s.seal()
	if f := s.fork; f != nil && s.want.Have >= f.at-1 {
		e.branch(s, f)
		s.fork = nil
		s.cond.Broadcast()
	}
	s.want = s.wanted()
	s.digest()
	if s.want.OutFrom < s.want.Have { // a row is wanted of a position computed before
		s.cut(s.want.OutFrom)
	}
	switch busy := s.want.Left() > 0; {
	case busy && s.kv != nil:
		e.move(s, active)
	case busy:
		e.move(s, waiting)
	case s.kv != nil:
		e.move(s, idle)
	default:
		e.move(s, parked)
	}
}

// wanted translates the caller's order. Locked.
func (s *Sequence) wanted() schedule.Want {
	n := len(s.tokens)
	w := schedule.Want{Have: s.want.Have, Target: s.want.Have, OutFrom: schedule.NoRows, Background: s.quiet}
	switch {
	case s.fork != nil:
		w.Target = s.fork.at - 1
	case s.order.kind == wantTokens && !s.stalled, s.order.kind == wantLogits:
		w.Target, w.OutFrom = n, n-1
	case s.order.kind == wantScores:
		w.Target, w.OutFrom = n-1, len(s.order.scored)
	}
	return w
}

// cut drops computed positions from n on.
func (s *Sequence) cut(n int) {
	s.kv.Truncate(n)
	s.want.Have = n
}

// seal offers what was computed to the prefix cache. Locked.
func (s *Sequence) seal() {
	if s.kv != nil {
		s.kv.Seal(s.tokens)
	}
}

// branch gives f's forks their share of the computed blocks.
func (e *Engine) branch(s *Sequence, f *fork) {
	if s.kv == nil {
		return
	}
	n := min(s.want.Have, f.at)
	for _, k := range f.kids {
		k.kv = s.kv.Fork()
		k.want.Have = s.want.Have
		k.cut(n)
		k.want.Target, k.want.OutFrom, k.reached = n, schedule.NoRows, n
		e.move(k, idle)
	}
}

// admit gives waiting sequences their place in the pool, oldest first, as long
// as what was promised to the active ones remains.
func (e *Engine) admit() {
	for i := 0; i < len(e.waiting); {
		s := e.waiting[i]
		if len(e.active) > 0 && s.tried == e.freed {
			return // nothing has changed for the first in line
		}
		s.mu.Lock()
		switch {
		case s.epoch != s.seen, e.follows(s): // changed since it was settled; a better moment comes
			i++
		case !e.enter(s):
			s.tried = e.freed
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if s.want.Left() == 0 { // the prefix cache had it all
			e.settle(s)
		}
	}
}

// prefix are the tokens of s that the prefix cache may supply. Locked.
func (s *Sequence) prefix() []int32 { return s.tokens[:min(s.want.Target, s.want.OutFrom)] }

// follows tells whether an active prompt is about to compute blocks that s
// could then take from the prefix cache. Locked.
func (e *Engine) follows(s *Sequence) bool {
	own, l := s.prefix(), e.kv.BlockLen()
	for _, a := range e.active {
		if a.want.Left() < l || a.want.Background && !s.want.Background { // which may take its time
			continue
		}
		a.mu.Lock()
		n := common(own, a.tokens[:min(a.want.Target, len(a.tokens))])
		a.mu.Unlock()
		if n/l*l > a.want.Have {
			return true
		}
	}
	return false
}

// common is the length of the longest common prefix.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// yield makes the youngest background sequence give its blocks to s, if s is
// not of that kind and comes before it.
func (e *Engine) yield(s *Sequence) bool {
	if len(e.active) == 0 || s.want.Background {
		return false
	}
	victim := e.active[len(e.active)-1]
	if !victim.want.Background || older(s, victim) > 0 {
		return false
	}
	e.preempt(victim)
	return true
}

// lent is how much of a new prompt may be computed at once, whatever it delays.
const lent = 2 * Tile

// enter makes s active if its blocks can be had without taking them from
// active sequences of its class; alone it always can. Locked.
func (e *Engine) enter(s *Sequence) bool {
	kv := e.kv.Open(s.prefix())
	own := kv.Need(s.want.Target - kv.Len())
	for own+e.promised() > e.kv.Free()+e.evictable() && e.yield(s) {
	}
	need, alone := own+e.promised(), len(e.active) == 0
	if !alone && need > e.kv.Free()+e.evictable() {
		kv.Release()
		return false
	}
	for need > e.kv.Free() && e.evict() {
	}
	if !alone && need > e.kv.Free() {
		kv.Release()
		return false
	}
	s.kv, s.want.Have = kv, kv.Len()
	if !s.begun {
		s.begun = true
		e.box.begun()
		e.counts.PrefixQueries += int64(len(s.prefix()))
		e.counts.PrefixHits += int64(s.want.Have)
		s.timing.CachedPrompt = s.want.Have
		if !s.want.Background {
			e.fresh += min(s.want.Left(), lent)
		}
	}
	e.move(s, active)
	return true
}

// promised is the number of blocks that active sequences will take soon: all
// of a prompt, one more for what comes after.
func (e *Engine) promised() int {
	n := 0
	for _, s := range e.active {
		n += s.kv.Need(s.want.Left()) + 1
	}
	return n
}

// evictable bounds the number of blocks that idle sequences can give.
func (e *Engine) evictable() int {
	n, l := 0, e.kv.BlockLen()
	for _, s := range e.idle {
		n += (s.want.Have + l - 1) / l
	}
	return n
}

// evict takes the blocks of the sequence that is idle for the longest time.
func (e *Engine) evict() bool {
	if len(e.idle) == 0 {
		return false
	}
	s := e.idle[0]
	e.release(s)
	e.move(s, parked)
	e.counts.Evictions++
	return true
}

// preempt takes the blocks of an active sequence, which is recomputed later.
func (e *Engine) preempt(s *Sequence) {
	e.release(s)
	e.move(s, waiting)
	e.counts.Preemptions++
	s.mu.Lock()
	s.timing.Preemptions++
	s.mu.Unlock()
}

// release gives the blocks of s back. What was sealed stays in the prefix
// cache until others need it.
func (e *Engine) release(s *Sequence) {
	s.forgetGuesses()
	if s.kv != nil {
		s.kv.Release()
		s.kv, s.want.Have = nil, 0
		e.freed++
	}
}

// retire forgets a closed sequence.
func (e *Engine) retire(s *Sequence) {
	e.release(s)
	e.move(s, retired)
	e.box.leave(s, s.begun)
}
