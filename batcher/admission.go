package batcher

import (
	"math"
	"slices"

	"github.com/lutra-lm/lutra/batcher/schedule"
	"github.com/lutra-lm/lutra/models/kv"
)

// admission decides which sequences hold KV blocks. It lets waiting ones in as long as the promises to the
// active ones can be kept. When no blocks are left it takes some back from idle ones, then from young ones.
type admission struct {
	kv      *kv.Cache
	step    room // held back for the prompts of a step
	undoes  bool // guesses can be taken back of recurrent states
	disk    restorer
	leave   func(s *Sequence) // tells the mailbox of one that is retired
	begun   func()            // likewise of one that has left the queue
	waiting []*Sequence       // have work and no blocks; oldest first
	active  []*Sequence       // have work and blocks; oldest first
	idle    []*Sequence       // have blocks and no work; longest idle first
	freed   int               // counts events that may have freed blocks
	granted int               // tokens of interactive prompts begun since the last plan, as far as they have credit
	counts  admissionCounts
}

// admissionCounts holds the part of Stats that admission counts.
type admissionCounts struct {
	prefixQueries, prefixHits, preemptions, evictions int64
}

// interactive counts the interactive sequences to compute.
func (a *admission) interactive() (d workload) {
	for _, s := range a.active {
		switch {
		case s.task.demand.Background:
		case s.task.demand.Left() > 1:
			d.prompts++
		default:
			d.streams++
		}
	}
	return d
}

// load counts the sequences to compute, by kind.
func (a *admission) load() workload {
	d := a.interactive()
	for _, s := range a.active {
		if s.task.demand.Background {
			d.background++
		}
	}
	return d
}

// requests counts the requests that have an active sequence, and the waiting requests
// that have none.
func (a *admission) requests() (running, waiting int) {
	last := func(seqs []*Sequence, i int) bool { return i+1 == len(seqs) || seqs[i+1].age != seqs[i].age }
	active := a.active
	for i := range a.active {
		if last(a.active, i) {
			running++
		}
	}
	for i, s := range a.waiting { // both are sorted by age
		for len(active) > 0 && active[0].age < s.age {
			active = active[1:]
		}
		if last(a.waiting, i) && (len(active) == 0 || active[0].age != s.age) {
			waiting++
		}
	}
	return running, waiting
}

// takeGranted returns how many tokens of new prompts have got credit since the last call.
func (a *admission) takeGranted() int {
	n := a.granted
	a.granted = 0
	return n
}

// admit gives waiting sequences their place in the pool, oldest first, as long
// as what was promised to the active ones remains.
func (a *admission) admit() {
	for i := 0; i < len(a.waiting); {
		s := a.waiting[i]
		if s.task.restore.loading {
			i++
			continue
		}
		if !a.alone() && s.task.tried == a.freed {
			return // nothing has changed for the first in line
		}
		s.mu.Lock()
		switch {
		case s.changed(), a.cachedSoon(s), a.disk.awaits(s): // changed since it was settled, or cheaper later: it is tried again
			i++
		case !a.enter(s):
			s.task.tried = a.freed
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if s.task.demand.Left() == 0 && !s.task.restore.loading { // the prefix cache had it all
			a.settle(s)
		}
	}
}

// cachedSoon reports whether an active prompt is about to compute blocks that s
// could then take from the prefix cache. Locked.
func (a *admission) cachedSoon(s *Sequence) bool {
	own, l := s.task.prefix(s.content.tokens), a.kv.BlockLen()
	for _, o := range a.disk.busy(a.active, a.waiting) {
		if o.setup.variant != s.setup.variant || o.salt != s.salt || o.task.demand.Left() < l || o.task.demand.Background && !s.task.demand.Background { // which may take its time
			continue
		}
		o.mu.Lock()
		n := common(own, o.content.tokens[:min(o.task.demand.Target, len(o.content.tokens))])
		o.mu.Unlock()
		if n/l*l > o.task.demand.Computed {
			o.task.kv.Want(n)
			return true
		}
	}
	return false
}

// alone tells whether no sequence holds blocks that it needs.
func (a *admission) alone() bool { return len(a.active) == 0 && a.disk.reading == 0 }

// displace preempts the youngest sequence for s, if that is a background one and s
// is interactive and older.
func (a *admission) displace(s *Sequence) bool {
	if len(a.active) == 0 || s.task.demand.Background {
		return false
	}
	victim := a.active[len(a.active)-1]
	if !victim.task.demand.Background || older(s, victim) > 0 {
		return false
	}
	a.preempt(victim)
	return true
}

// grantedTokens of a new prompt may be computed at once, whatever they delay.
const grantedTokens = 2 * Tile

// enter makes s active if its blocks can be had without taking them from
// active sequences of its class. If nothing else is active, it always can. Locked.
func (a *admission) enter(s *Sequence) bool {
	t := &s.task
	found := a.kv.OpenSalted(s.setup.variant.KVRoot(), s.salt, t.prefix(s.content.tokens))
	own := needs(found, t.demand.Target-found.Len())
	for !own.plus(a.promised()).within(freeRoom(a.kv).plus(a.evictable())) && a.displace(s) {
	}
	need, alone := own.plus(a.promised()), a.alone()
	if !alone && !need.within(freeRoom(a.kv).plus(a.evictable())) {
		found.Release()
		return false
	}
	for !need.within(freeRoom(a.kv)) && a.evict() {
	}
	if !alone && !need.within(freeRoom(a.kv)) {
		found.Release()
		return false
	}
	t.kv, t.demand.Computed = found, found.Len()
	wantCheckpoints(s)
	if !a.disk.load(s) {
		a.begin(s)
	}
	return true
}

// begin has s, which holds what there was of its prefix, computed from there on. Locked.
func (a *admission) begin(s *Sequence) {
	t := &s.task
	if !t.begun {
		t.begun = true
		a.begun()
		a.counts.prefixQueries += int64(len(t.prefix(s.content.tokens)))
		a.counts.prefixHits += int64(t.demand.Computed)
		s.timing.CachedPrompt = t.demand.Computed
		if !t.demand.Background {
			a.granted += min(t.demand.Left(), grantedTokens)
		}
	}
	a.move(s, active)
}

// promised returns the room that active sequences will take soon: all
// of a prompt, one more for what comes after, and what a step needs.
func (a *admission) promised() room {
	n := a.step
	for _, s := range a.disk.busy(a.active, a.waiting) {
		n = n.plus(needs(s.task.kv, s.task.demand.Target-s.task.kv.Len())).plus(room{blocks: 1})
	}
	return n
}

// evictable bounds the room that idle sequences can give.
func (a *admission) evictable() (n room) {
	l := a.kv.BlockLen()
	for _, s := range a.idle {
		n = n.plus(room{blocks: (s.task.demand.Computed + l - 1) / l, states: 1, residuals: s.task.kv.HeldResiduals()})
	}
	return n
}

// evict takes the blocks of the sequence that is idle for the longest time.
func (a *admission) evict() bool {
	if len(a.idle) == 0 {
		return false
	}
	s := a.idle[0]
	a.release(s)
	a.move(s, parked)
	a.counts.evictions++
	return true
}

// preempt takes the blocks of an active sequence, which is recomputed later.
func (a *admission) preempt(s *Sequence) {
	a.release(s)
	a.move(s, waiting)
	a.counts.preemptions++
}

// release gives the blocks of s back. What was sealed stays in the prefix
// cache until others need it.
func (a *admission) release(s *Sequence) {
	s.task.drafts.close()
	if s.task.kv != nil {
		s.task.kv.Release()
		s.task.kv, s.task.demand.Computed = nil, 0
		a.freed++
	}
}

// retire forgets a closed sequence.
func (a *admission) retire(s *Sequence) {
	a.release(s)
	a.move(s, retired)
	a.leave(s)
}

// reserve grows the caches of the planned sequences, oldest first, and takes
// blocks from others when there are none left. It returns the spans for which
// there is room, and how many sequences lost their blocks.
func (a *admission) reserve(spans []span) (kept []span, preempted int) {
	for i := 0; i < len(spans); i++ {
		s := spans[i].s
		for growFirst(spans[i:], a.kv, a.undoes) != nil {
			if len(spans[i].draft) > 0 { // nobody loses blocks to a guess
				spans[i].draft, spans[i].forced, spans[i].unsampled = nil, 0, 0
				continue
			}
			if a.evict() {
				continue
			}
			// The youngest loses what it has. It is s or younger than s, so
			// this loop has reserved nothing for it yet: only its span goes.
			victim := a.active[len(a.active)-1]
			a.preempt(victim)
			preempted++
			if at := slices.IndexFunc(spans, func(p span) bool { return p.s == victim }); at >= 0 {
				spans = slices.Delete(spans, at, at+1)
			}
			if victim == s {
				i--
				break
			}
		}
	}
	return spans, preempted
}

// growFirst grows the sequence of the first of spans. That its guesses can be undone must not take the recurrent state
// that another span needs. Forced tokens, which are right, do without.
func growFirst(spans []span, cache *kv.Cache, undoes bool) error {
	p := &spans[0]
	guesses := len(p.draft)
	if cache.States() > 0 && guesses > 0 {
		states := 1
		for i := range spans {
			states += spans[i].s.task.kv.NeedState()
		}
		switch room := undoes && states <= cache.FreeStates(); {
		case !room && p.forced < guesses:
			return kv.ErrNoBlocks
		case !room:
			guesses = 0
		}
	}
	if err := p.s.task.kv.Grow(p.n + len(p.draft)); err != nil {
		return err
	}
	return p.s.task.kv.Guess(guesses)
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

// settle updates the demand of s to what its caller asks, and moves s to the right list.
func (a *admission) settle(s *Sequence) {
	t := &s.task
	if t.list == retired {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.restore.loading {
		switch done, all := a.disk.finish(s); {
		case !done:
			return
		case all:
			a.begin(s)
		default: // what was read is found in the cache
			a.release(s)
		}
	}
	if s.err != nil {
		t.save(s, true)
		a.retire(s)
		return
	}
	if s.changed() {
		t.constraint.maskReady = nil // it was for another request
		t.restore.forget()
	}
	t.seen = s.epoch
	if s.content.cutAt < t.demand.Computed {
		t.cut(s.content.cutAt)
	}
	t.hash.reset(s.content.cutAt)
	t.chain.Cut(s.content.cutAt)
	t.constraint.cutTo(s.content.cutAt)
	s.content.cutAt = math.MaxInt
	t.seal(s.content.tokens)
	if f := s.fork; f != nil && t.demand.Computed >= f.at-1 {
		a.branch(s, f)
		s.fork = nil
		s.cond.Broadcast()
	}
	t.demand = s.nextDemand()
	t.hash.extend(s.content.tokens, t.demand.Target)
	if t.demand.LogitsFrom < t.demand.Computed { // a row is wanted of a position computed before
		t.cut(t.demand.LogitsFrom)
	}
	if t.demand.Whole && t.demand.Computed > 0 && t.demand.Left() > 0 { // what is computed has seen less
		t.cut(0)
	}
	switch busy := t.demand.Left() > 0; {
	case busy && t.kv != nil:
		a.move(s, active)
	case busy:
		a.move(s, waiting)
	case t.kv != nil:
		if t.list != idle && !s.stalled {
			t.save(s, true)
		}
		a.move(s, idle)
	default:
		a.move(s, parked)
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
		t := &k.task
		t.kv = s.task.kv.Fork()
		t.demand.Computed = s.task.demand.Computed
		t.cut(n)
		t.demand.Target, t.demand.LogitsFrom, t.reached = t.demand.Computed, schedule.NoRows, n
		a.move(k, idle)
	}
}

// adapters returns the names of the adapters of seqs, sorted.
func adapters(seqs []*Sequence) (names []string) {
	for _, s := range seqs {
		if v := s.setup.variant; v != nil {
			for _, u := range v.Uses {
				names = append(names, u.Adapter.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
