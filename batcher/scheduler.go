package batcher

import (
	"cmp"
	"math"
	"slices"
)

// want is what one admitted sequence asks of the coming steps.
type want struct {
	have       int  // positions computed
	target     int  // positions wanted; have < target
	outFrom    int  // logits are wanted of positions from here on
	background bool // gives way to the others
}

// noRows as want.outFrom asks for no logits; sums with it do not overflow.
const noRows = math.MaxInt32

// left is the number of tokens still to compute.
func (w want) left() int { return w.target - w.have }

// rows is the number of rows of logits that a chunk of n tokens yields.
func (w want) rows(n int) int { return max(0, w.have+n-max(w.have, w.outFrom)) }

// chunk is the largest number of tokens within both bounds.
func (w want) chunk(tokens, rows int) int {
	return min(w.left(), tokens, max(0, w.outFrom-w.have)+rows)
}

// limits bound one step. Times are in seconds.
type limits struct {
	tokens  int                 // whole tiles
	rows    int                 // at least 4
	longest float64             // a step with streams, unless it has no more than a tile beside them; 0: any
	time    func(n int) float64 // expected of a step of n tokens; nil: none
	hoped   func(n int) float64 // time, or less if it is not known
	terms
}

// terms are what other work, in this engine and in others, makes of limits.
type terms struct {
	credit  [works]float64 // what work that delays other may take of this step
	back    work           // the account that background work draws on
	guests  bool           // streams of other engines wait for this one
	awaited bool           // or their prompts, which background work delays too
	brief   bool           // a step of background work alone is no longer than needed to be efficient
}

// work is a kind of work that delays other.
type work uint8

const (
	workPrompts    work = iota // of interactive sequences: delays streams
	workBackground             // all of background sequences, where it delays streams
	workAhead                  // likewise, where it delays prompts alone
	works
)

// scheduler plans steps. It does no I/O and knows no KV cache: it hands out
// the lanes of a step to wants.
//
// Interactive streams (one token left) come first; when there are too many
// they take turns. Then interactive prompts, then background work, each as far
// as its credit goes beside what is planned already. Prompts share the lanes
// they get: at least half go to the oldest, so none starves, and the rest to
// the shortest, so that a short prompt need not wait for a long one. Of
// background streams half the lanes go to the oldest, so that some search
// ends soon, and for the others they take turns.
type scheduler struct {
	turn   [2]int   // of streams: who goes first next time
	lists  [4][]int // scratch: indexes of wants, see list
	grants []int
	part   [3]int         // lanes of the last plan: streams, prompts, background
	need   [works]float64 // credit that the last plan was short of; 0: it was not
}

// The lists of a scheduler.
const (
	frontStreams = iota
	frontPrompts
	backStreams
	backPrompts
)

// plan gives every want a number of tokens for the next step; wants are
// oldest first. The result is valid until the next call. Some want always
// gets a token, unless other engines have interactive work.
func (s *scheduler) plan(wants []want, l limits) []int {
	s.grants = slices.Grow(s.grants[:0], len(wants))[:len(wants)]
	clear(s.grants)
	s.part, s.need = [3]int{}, [works]float64{}
	for i := range s.lists {
		s.lists[i] = s.lists[i][:0]
	}
	for i, w := range wants {
		list := frontStreams
		if w.left() > 1 {
			list = frontPrompts
		}
		if w.background {
			list += backStreams - frontStreams
		}
		s.lists[list] = append(s.lists[list], i)
	}
	waiting := len(s.lists[backStreams])+len(s.lists[backPrompts]) > 0
	n, r := s.planFront(wants, l, waiting)
	if waiting {
		s.planBack(wants, l, n, r)
	}
	return s.grants
}

// planFront plans interactive sequences and returns the tokens and rows it gave.
func (s *scheduler) planFront(wants []want, l limits, leave bool) (n, r int) {
	tokens, rows := l.tokens, l.rows
	if leave { // something to the others
		tokens, rows = tokens-Tile/4, rows-2
	}
	streams, later := s.lists[frontStreams], s.lists[frontPrompts]
	if len(later) > 0 {
		n, r = s.planStreams(wants, streams, 0, &s.turn[0], tokens-Tile/2, max(1, rows-1))
	} else {
		n, r = s.planStreams(wants, streams, 0, &s.turn[0], tokens, rows)
	}
	s.part[0] = n
	if len(later) > 0 {
		room := l.tokens
		switch {
		case n > 0 || l.guests:
			room, s.need[workPrompts] = l.room(n, l.credit[workPrompts], demand(wants, later))
		case leave:
			room = max(Tile/2, l.tokens*3/4/Tile*Tile)
		}
		got, rows := s.planPrompts(wants, later, min(room, tokens-n), rows-r)
		s.part[1] = got
		n, r = n+got, r+rows
	}
	return n, r
}

// planBack plans background sequences beside n tokens and r rows.
func (s *scheduler) planBack(wants []want, l limits, n, r int) {
	streams, later := s.lists[backStreams], s.lists[backPrompts]
	room := l.tokens - n
	if n > 0 || l.guests || l.awaited {
		room, s.need[l.back] = l.room(n, l.credit[l.back], len(streams)+demand(wants, later))
	}
	if n == 0 && l.brief {
		room = min(room, l.efficient())
	}
	tokens, rows := room, l.rows-r
	if len(later) > 0 {
		tokens, rows = tokens-min(room/2, Tile/2), rows-min(1, rows/2)
	}
	sn, sr := s.planStreams(wants, streams, 2, &s.turn[1], tokens, rows)
	if len(later) > 0 && n == 0 && sn > 0 && !l.guests && !l.awaited { // these streams are delayed by what follows
		room = min(room, sn+l.lanes(sn))
	}
	pn, _ := s.planPrompts(wants, later, min(room, l.tokens-n)-sn, l.rows-r-sr)
	s.part[2] = sn + pn
}

// demand is the number of tokens that wants of a list have left.
func demand(wants []want, list []int) int {
	n := 0
	for _, i := range list {
		n += wants[i].left()
	}
	return n
}

// room is the number of lanes that demand may fill beside n tokens, as far as
// credit goes, and when that is none the credit it takes. The least worth
// having is what fills the last tile, and half a tile at least: its lanes cost
// less than they do one by one, so credit is saved for it.
func (l *limits) room(n int, credit float64, demand int) (lanes int, need float64) {
	most := min(demand, l.tokens-n)
	least := min(most, wholeTiles(n+Tile/2)-n)
	if l.time == nil {
		return least, 0
	}
	alone := l.time(n)
	if cost := l.time(n+least) - alone; cost > credit {
		return 0, cost
	}
	limit := alone + credit
	if l.longest > 0 {
		limit = min(limit, l.longest)
	}
	return l.within(n, least, most, limit), 0
}

// lanes is the room beside n background streams: what keeps a step's length.
func (l *limits) lanes(n int) int {
	most := l.tokens - n
	least := min(most, wholeTiles(n+Tile/2)-n)
	if l.time == nil {
		return least
	}
	if l.longest == 0 {
		return most
	}
	return l.within(n, least, most, l.longest)
}

// efficient is the least number of tiles, in tokens, whose tokens take nearly
// as little time each as those of any larger step.
func (l *limits) efficient() int {
	each := func(n int) float64 { return l.hoped(n) / float64(n) }
	best := each(Tile)
	for n := 2 * Tile; n <= l.tokens; n *= 2 {
		best = min(best, each(n))
	}
	n := Tile
	for n < l.tokens && each(n) > 1.1*best {
		n *= 2
	}
	return min(n, l.tokens)
}

// within is the largest number of lanes in [lo, hi], or lo, with which a step
// beside n tokens is expected to end within limit.
func (l *limits) within(n, lo, hi int, limit float64) int {
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if l.time(n+mid) <= limit {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// wholeTiles rounds n tokens up to lanes.
func wholeTiles(n int) int { return (n + Tile - 1) / Tile * Tile }

// planStreams gives one token each to the streams of a list. When they are too
// many, one in share of the tokens goes to the first in the list (share 0:
// none) and the others take turns. It returns the tokens and rows it gave.
func (s *scheduler) planStreams(wants []want, list []int, share int, turn *int, tokens, rows int) (n, r int) {
	give := func(i int) bool {
		need := wants[i].rows(1)
		if n >= tokens || r+need > rows {
			return false
		}
		s.grants[i] = 1
		n, r = n+1, r+need
		return true
	}
	if room := min(tokens, rows); len(list) > room {
		if share > 0 {
			first := max(0, room/share)
			for _, i := range list[:first] {
				give(i)
			}
			list = list[first:]
		}
		*turn %= len(list)
	} else {
		*turn = 0
	}
	for k := range list {
		at := (*turn + k) % len(list)
		if !give(list[at]) {
			*turn = at
			break
		}
	}
	return n, r
}

// planPrompts shares tokens among the prompts of a list, which it reorders,
// and returns the tokens and rows it gave.
func (s *scheduler) planPrompts(wants []want, list []int, tokens, rows int) (n, r int) {
	give := func(i, most int) {
		w := wants[i]
		w.have += s.grants[i]
		got := w.chunk(min(most, tokens-n), rows-r)
		s.grants[i] += got
		n, r = n+got, r+w.rows(got)
	}
	if len(list) == 0 || tokens <= 0 {
		return 0, 0
	}
	oldest := list[0]
	give(oldest, (tokens+1)/2)
	rest := list[1:]
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(wants[a].left(), wants[b].left()), cmp.Compare(a, b))
	})
	for _, i := range rest {
		give(i, tokens)
	}
	give(oldest, tokens)
	return n, r
}
