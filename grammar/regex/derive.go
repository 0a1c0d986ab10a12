package regex

import "slices"

// Freeze divides the bytes into classes that no expression tells apart. Sets of
// bytes made later must not tell bytes of a class apart either.
func (a *Arena) Freeze() {
	if a.frozen {
		return
	}
	sign := map[[2]uint64]uint8{}
	a.examples = a.examples[:0]
	// Two sums with different weights are the signature of a byte: the sets that
	// have it.
	var sums [256][2]uint64
	for i := range a.sets {
		h := uint64(i+1) * 0x9e3779b97f4a7c15
		w := [2]uint64{h ^ h>>29, (h ^ h>>31) * 0xbf58476d1ce4e5b9}
		for b := range 256 {
			if a.sets[i].Has(byte(b)) {
				sums[b][0] += w[0]
				sums[b][1] += w[1]
			}
		}
	}
	for b := range 256 {
		if len(a.numbers) > 0 && (b >= '0' && b <= '9' || b == '.' || b == '-') {
			sums[b][0] += uint64(b) << 56
			sums[b][1] ^= uint64(b) << 40
		}
		if a.buckets {
			sums[b] = [2]uint64{uint64(b)}
		}
		class, ok := sign[sums[b]]
		if !ok {
			class = uint8(len(a.examples))
			sign[sums[b]] = class
			a.examples = append(a.examples, byte(b))
		}
		a.classOf[b] = class
	}
	a.order = make([]uint8, len(a.examples))
	for i := range a.order {
		a.order[i] = uint8(i)
	}
	a.frozen = true
}

// Classes returns the number of classes of bytes.
func (a *Arena) Classes() int { return len(a.examples) }

// Class returns the class of each byte.
func (a *Arena) Class() *[256]uint8 { return &a.classOf }

// Example returns a byte of a class.
func (a *Arena) Example(class int) byte { return a.examples[class] }

// Next matches what may follow a byte of the class in what e matches. The
// result is None exactly if nothing may.
func (a *Arena) Next(e Expr, class int) Expr {
	d := a.derive(e, class)
	if d != None && !a.Alive(d) {
		d = None
		a.infos[e].next[class] = None
	}
	return d
}

// Ends reports whether e matches the empty text and no other. The arena is frozen.
func (a *Arena) Ends(e Expr) bool {
	if e == Empty || !a.is(e, nullable) {
		return e == Empty
	}
	for class := range a.examples {
		if a.Next(e, class) != None {
			return false
		}
	}
	return true
}

const notDerived Expr = -1

// derive takes the derivative by a byte of the class, as Next does, but the result may match
// nothing.
func (a *Arena) derive(e Expr, class int) Expr {
	switch e {
	case None, Empty:
		return None
	case All:
		return All
	}
	if !a.work(1) {
		return None
	}
	if next := a.infos[e].next; next == nil {
		if !a.hold(4 * len(a.examples)) {
			return None
		}
		next = make([]Expr, len(a.examples))
		for i := range next {
			next[i] = notDerived
		}
		a.infos[e].next = next
	} else if next[class] != notDerived {
		return next[class]
	}
	d := derivative(&a.algebra, e, a.examples[class], func(k Expr) Expr { return a.derive(k, class) })
	a.infos[e].next[class] = d
	return d
}

// Matches reports whether e matches text. It may be called before Freeze.
func (a *algebra) Matches(e Expr, text string) bool {
	for i := range len(text) {
		e = after(a, e, text[i])
	}
	return a.is(e, nullable)
}

// after returns the derivative by a byte, which is not kept.
func after(a *algebra, e Expr, b byte) Expr {
	return derivative(a, e, b, func(k Expr) Expr { return after(a, k, b) })
}

// derivative takes the derivative of e by a byte from the derivatives of its parts.
func derivative(a *algebra, e Expr, b byte, derive func(Expr) Expr) Expr {
	if !a.work(1) {
		return None
	}
	switch t := a.terms[e]; t.kind {
	case kSet:
		if a.sets[t.a].Has(b) {
			return Empty
		}
		return None
	case kSeq:
		d := a.seq(derive(t.a), t.b)
		if a.is(t.a, nullable) {
			return a.Or(d, derive(t.b))
		}
		return d
	case kAlt, kAnd:
		list := a.lists[t.a]
		ds := make([]Expr, 0, len(list))
		for _, k := range list {
			d := derive(k)
			if d == None && t.kind == kAnd {
				return None
			}
			if d != None {
				ds = append(ds, d)
			}
		}
		if t.kind == kAlt {
			return a.Or(ds...)
		}
		return a.And(ds...)
	case kNot:
		return a.Not(derive(t.a))
	case kRepeat:
		d := derive(t.a)
		if d == None {
			return None
		}
		most := int(t.max)
		if most != Infinite {
			most--
		}
		return a.seq(d, a.Repeat(t.a, max(0, int(t.min)-1), most))
	case kNumber:
		return digitOf(a, t, b)
	case kBucket:
		return hashByte(a, t, b)
	}
	return None
}

// Alive reports whether e matches anything.
func (a *Arena) Alive(e Expr) bool {
	switch {
	case e == None:
		return false
	case a.is(e, simple), a.is(e, nullable), a.infos[e].life == alive:
		return true
	case a.infos[e].life == dead || a.err != nil:
		return false
	case a.plainlyAlive(e):
		a.infos[e].life = alive
		return true
	}
	yes := false
	switch t := a.terms[e]; t.kind {
	case kSeq:
		yes = a.Alive(t.a) && a.Alive(t.b)
	case kAlt:
		for _, k := range a.lists[t.a] {
			yes = yes || a.Alive(k)
		}
	case kRepeat:
		yes = a.Alive(t.a)
	default:
		return a.search(e)
	}
	a.infos[e].life = dead
	if yes {
		a.infos[e].life = alive
	}
	return yes
}

// plainlyAlive reports whether e is up to n characters that match one other
// expression, which matches so short a text.
func (a *Arena) plainlyAlive(e Expr) bool {
	t := a.terms[e]
	if t.kind != kAnd || len(a.lists[t.a]) != 2 {
		return false
	}
	x, y := a.lists[t.a][0], a.lists[t.a][1]
	if k := a.terms[x]; k.kind != kRepeat || !a.is(k.a, anyChar) {
		x, y = y, x
	}
	k := a.terms[x]
	if k.kind != kRepeat || !a.is(k.a, anyChar) || !a.is(y, simple|content) {
		return false
	}
	most := endless
	if k.max != Infinite {
		most = int(k.max)
	}
	return shortest(&a.algebra, y) <= most && (k.min == 0 || open(&a.algebra, y, most))
}

// open reports whether any text may follow what e matches, whose shortest text has
// most bytes at most.
func open(a *algebra, e Expr, most int) bool {
	switch t := a.terms[e]; t.kind {
	case kSeq:
		return shortest(a, e) <= most && open(a, t.b, endless)
	case kAlt:
		return slices.ContainsFunc(a.lists[t.a], func(k Expr) bool { return open(a, k, most) })
	}
	return a.isAnyText(e)
}

// shortest returns the fewest bytes that an expression matches, if it matches any; fewer
// where it holds an intersection.
func shortest(a *algebra, e Expr) int {
	if n := a.infos[e].shortest; n > 0 {
		return int(n - 1)
	}
	n := 0
	switch t := a.terms[e]; t.kind {
	case kSet:
		n = 1
	case kSeq:
		n = min(endless, shortest(a, t.a)+shortest(a, t.b))
	case kAlt:
		n = endless
		for _, k := range a.lists[t.a] {
			n = min(n, shortest(a, k))
		}
	case kAnd:
		for _, k := range a.lists[t.a] {
			n = max(n, shortest(a, k))
		}
	case kRepeat:
		n = min(endless, shortest(a, t.a)*int(t.min))
	case kNot, kNumber, kBucket:
		if !a.is(e, nullable) {
			n = 1
		}
	}
	a.infos[e].shortest = int32(n + 1)
	return n
}

// search looks for a text that e matches, where the shortest seems near first. After so
// much work it gives up: then e counts as matching nothing. So whatever counts as
// matching something is known to, and leads on by a way that has been found; no text
// comes to a dead end.
func (a *Arena) search(e Expr) bool {
	if !a.frozen {
		return true // Next finds out
	}
	budget := mostSearch
	switch {
	case a.searched < mostSearches/2:
		budget = mostSearches / 2 // as for long texts
	case a.searched > mostSearches:
		budget = fewSearch
	}
	order := slices.Clone(a.order) // searches within this one change it
	from := map[Expr]step{e: {from: None}}
	var queue frontier
	queue.add(e, shortest(&a.algebra, e), 0)
	for {
		x, distance, first, ok := queue.take()
		if !ok {
			break
		}
		for i := first; i < len(order); i++ {
			a.searched++
			if !a.work(1) {
				return false
			}
			if budget--; budget < 0 {
				a.infos[e].life = dead
				a.undecided = true
				return false
			}
			class := order[i]
			d := a.derive(x, int(class))
			if d == None || a.infos[d].life == dead {
				continue
			}
			if a.is(d, simple) || a.is(d, nullable) || a.infos[d].life == alive || a.plainlyAlive(d) || !intersects(&a.algebra, d) && a.Alive(d) {
				a.found(step{x, class}, from)
				return true
			}
			near := shortest(&a.algebra, d)
			if _, seen := from[d]; seen || !intersects(&a.algebra, d) || near > longest(&a.algebra, d) {
				continue
			}
			from[d] = step{x, class}
			if queue.add(d, near, 0); near < distance { // nearer the end: other classes wait
				queue.add(x, distance, i+1)
				break
			}
		}
	}
	if a.err != nil {
		return false
	}
	for x := range from {
		a.infos[x].life = dead
	}
	return false
}

// step is a search's way to an expression: by a class of bytes, from another.
type step struct {
	from  Expr
	class uint8
}

// found notes that the expressions on the way to the end of a search match something. Their classes are the first that the
// next search tries: a text and one a byte longer often end alike.
func (a *Arena) found(last step, from map[Expr]step) {
	for s := last; s.from != None; s = from[s.from] {
		a.infos[s.from].life = alive
		i := slices.Index(a.order, s.class)
		copy(a.order[1:i+1], a.order[:i])
		a.order[0] = s.class
	}
}

// frontier is expressions to look at, by how far the end seems.
type frontier struct {
	near [][]looked
	min  int
}

// looked is an expression of which the classes before first have been looked at.
type looked struct {
	e     Expr
	first int
}

// farthest is a distance from which on more does not count.
const farthest = 1 << 10

func (f *frontier) add(e Expr, distance, first int) {
	distance = min(distance, farthest)
	for len(f.near) <= distance {
		f.near = append(f.near, nil)
	}
	f.near[distance] = append(f.near[distance], looked{e, first})
	f.min = min(f.min, distance)
}

// take returns the expression that seems nearest, of several the earliest, with its distance and the first class that is
// to be looked at.
func (f *frontier) take() (e Expr, distance, first int, ok bool) {
	for ; f.min < len(f.near); f.min++ {
		if list := f.near[f.min]; len(list) > 0 {
			f.near[f.min] = list[1:]
			return list[0].e, f.min, list[0].first, true
		}
	}
	return None, 0, 0, false
}

// intersects reports whether only a search tells whether e matches anything.
func intersects(a *algebra, e Expr) bool {
	k := a.terms[e].kind
	return k == kAnd || k == kNot
}

// endless is a room or a length without a bound.
const endless = 1 << 30

// Room returns how many characters of Plain may follow wherever e stands, whichever they
// are; 0 if that is not known.
func (a *Arena) Room(e Expr) int {
	if r := a.infos[e].room; r > 0 {
		return int(r - 1)
	}
	r := a.roomOf(e)
	a.infos[e].room = int32(r + 1)
	return r
}

func (a *Arena) roomOf(e Expr) int {
	switch t := a.terms[e]; t.kind {
	case kSeq:
		if !a.Alive(t.b) {
			return 0
		}
		if a.is(t.a, covers) {
			return min(endless, 1+a.Room(t.b))
		}
		r := a.Room(t.a)
		if a.is(t.a, nullable) {
			r = max(r, a.Room(t.b))
		}
		return r
	case kAlt:
		r := 0
		if a.is(e, covers) {
			r = 1
		}
		for _, k := range a.lists[t.a] {
			r = max(r, a.Room(k))
		}
		return r
	case kRepeat:
		if a.is(t.a, covers) {
			if t.max == Infinite {
				return endless
			}
			return int(t.max)
		}
	case kAnd: // one repetition without a few short texts
		room, others := 0, 0
		for _, k := range a.lists[t.a] {
			if n := a.terms[k]; n.kind == kNot {
				others = max(others, longest(&a.algebra, n.a))
			} else if room > 0 {
				return 0
			} else if room = a.Room(k); room == 0 {
				return 0
			}
		}
		if others < room {
			return room
		}
	}
	return 0
}

// longest returns the most bytes that e matches, endless for no bound.
func longest(a *algebra, e Expr) int {
	if n := a.infos[e].longest; n > 1 {
		return int(n - 2)
	}
	n := endless
	switch t := a.terms[e]; t.kind {
	case kNone, kEmpty:
		n = 0
	case kSet:
		n = 1
	case kSeq:
		n = min(endless, longest(a, t.a)+longest(a, t.b))
	case kAlt:
		n = 0
		for _, k := range a.lists[t.a] {
			n = max(n, longest(a, k))
		}
	case kAnd:
		for _, k := range a.lists[t.a] {
			n = min(n, longest(a, k))
		}
	case kRepeat:
		if l := longest(a, t.a); t.max != Infinite && l < endless/int(t.max) {
			n = l * int(t.max)
		}
	}
	a.infos[e].longest = int32(n + 2)
	return n
}
