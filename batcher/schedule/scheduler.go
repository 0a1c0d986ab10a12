package schedule

import (
	"cmp"
	"math"
	"slices"
)

// Tile is the number of token lanes a kernel tile has: lanes of a begun tile
// that carry no token cost nearly as much as those that do.
const Tile = 32

// Demand says what one admitted sequence asks of the coming steps.
type Demand struct {
	Computed   int  // positions computed
	Target     int  // positions wanted; Computed < Target
	LogitsFrom int  // logits are wanted of positions from here on
	Background bool // gives way to the others
	Whole      bool // all is computed in one step, however long it is; its rows do not count
}

// NoRows as Demand.LogitsFrom asks for no logits; sums with it do not overflow.
const NoRows = math.MaxInt32

// Left returns the number of tokens still to compute.
func (w Demand) Left() int { return w.Target - w.Computed }

// Rows returns the number of rows of logits that a chunk of n tokens yields.
func (w Demand) Rows(n int) int { return max(0, w.Computed+n-max(w.Computed, w.LogitsFrom)) }

// chunk returns the largest number of tokens within both bounds.
func (w Demand) chunk(tokens, rows int) int {
	if w.Whole {
		if w.Left() > tokens {
			return 0
		}
		return w.Left()
	}
	return min(w.Left(), tokens, max(0, w.LogitsFrom-w.Computed)+rows)
}

// Limits bound one step. Times are in seconds.
type Limits struct {
	Tokens     int                 // whole tiles
	Rows       int                 // at least 4
	Longest    float64             // a step with streams, unless it has no more than a tile alongside them; 0: any
	Time       func(n int) float64 // expected of a step of n tokens; nil: none
	Optimistic func(n int) float64 // Time, or less where that is not known yet
	Policy
}

// Policy limits what may delay streams and prompts, in this engine and in others.
type Policy struct {
	Credit          [Accounts]float64 // seconds by which each kind of work may delay this step
	BackgroundPays  Account           // whose credit background work takes
	OtherDecoding   bool              // streams of other engines wait for this step
	OtherPrefilling bool              // or their prompts do, which background work delays too
	ShortSteps      bool              // a step of background work alone is no longer than needed to be efficient
}

// Account holds the credit of one kind of work that delays other work.
type Account uint8

// The accounts.
const (
	Prefill         Account = iota // of interactive prompts, which delay streams
	Background                     // of background work, where it delays streams
	BackgroundAhead                // of background work, where it delays prompts alone
	Accounts
)

// Scheduler plans steps: it hands out the lanes of a step to wants.
//
// Interactive streams (one token left) come first; when there are too many they alternate. Then come interactive
// prompts, then background work, each as far as its credit goes alongside what is planned already. Prompts share the
// lanes they get. At least half go to the oldest, so none starves, and the rest to the shortest, so that a short prompt
// need not wait for a long one. Of background streams half the lanes go to the oldest, so that some search ends soon; the
// others alternate.
type Scheduler struct {
	next   [2]int   // of streams: who goes first next time
	lists  [4][]int // scratch: indexes of wants
	grants []int
	Need   [Accounts]float64 // credit that the last plan was short of; 0: it was not
}

// The lists of a scheduler.
const (
	frontStreams = iota
	frontPrompts
	backStreams
	backPrompts
)

// Plan gives every want a number of tokens for the next step; wants are
// oldest first. The result is valid until the next call. Some want always
// gets a token, unless other engines have interactive work.
func (s *Scheduler) Plan(wants []Demand, l Limits) []int {
	s.grants = slices.Grow(s.grants[:0], len(wants))[:len(wants)]
	clear(s.grants)
	s.Need = [Accounts]float64{}
	for i := range s.lists {
		s.lists[i] = s.lists[i][:0]
	}
	for i, w := range wants {
		list := frontStreams
		if w.Left() > 1 {
			list = frontPrompts
		}
		if w.Background {
			list += backStreams - frontStreams
		}
		s.lists[list] = append(s.lists[list], i)
	}
	waiting := len(s.lists[backStreams])+len(s.lists[backPrompts]) > 0
	n, r := s.planFront(wants, l, waiting)
	if waiting && n < l.Tokens {
		s.planBack(wants, l, n, r)
	}
	return s.grants
}

// planFront plans interactive sequences and returns the tokens and rows it gave.
func (s *Scheduler) planFront(wants []Demand, l Limits, leave bool) (n, r int) {
	tokens, rows := l.Tokens, l.Rows
	if leave { // something to the others
		tokens, rows = tokens-Tile/4, rows-2
	}
	streams, later := s.lists[frontStreams], s.lists[frontPrompts]
	if len(later) > 0 {
		n, r = s.planStreams(wants, streams, 0, &s.next[0], tokens-Tile/2, max(1, rows-1))
	} else {
		n, r = s.planStreams(wants, streams, 0, &s.next[0], tokens, rows)
	}
	if len(later) > 0 {
		room := l.Tokens
		switch {
		case n > 0 || l.OtherDecoding:
			room, s.Need[Prefill] = l.Room(n, l.Credit[Prefill], demand(wants, later))
		case leave:
			room = max(Tile/2, l.Tokens*3/4/Tile*Tile)
		}
		got, rows := s.planPrompts(wants, later, min(room, tokens-n), rows-r)
		n, r = n+got, r+rows
	}
	return n, r
}

// planBack plans background sequences alongside n tokens and r rows.
func (s *Scheduler) planBack(wants []Demand, l Limits, n, r int) {
	streams, later := s.lists[backStreams], s.lists[backPrompts]
	room := l.Tokens - n
	if n > 0 || l.OtherDecoding || l.OtherPrefilling {
		room, s.Need[l.BackgroundPays] = l.Room(n, l.Credit[l.BackgroundPays], len(streams)+demand(wants, later))
	}
	if n == 0 && l.ShortSteps {
		room = min(room, l.efficient())
	}
	tokens, rows := room, l.Rows-r
	if len(later) > 0 {
		tokens, rows = tokens-min(room/2, Tile/2), rows-min(1, rows/2)
	}
	sn, sr := s.planStreams(wants, streams, 2, &s.next[1], tokens, rows)
	if len(later) > 0 && n == 0 && sn > 0 && !l.OtherDecoding && !l.OtherPrefilling { // the later ones delay these streams
		room = min(room, sn+l.lanes(sn))
	}
	s.planPrompts(wants, later, min(room, l.Tokens-n)-sn, l.Rows-r-sr)
}

// demand returns the number of tokens that wants of a list have left.
func demand(wants []Demand, list []int) int {
	n := 0
	for _, i := range list {
		n += wants[i].Left()
	}
	return n
}

// Room returns the number of lanes that demand may fill alongside n tokens, as far as credit allows. If that is none, need
// is the credit that the smallest useful piece costs. That piece fills the last tile, and is half a tile at least: its
// lanes cost less together than one by one, so credit is saved for it.
func (l *Limits) Room(n int, credit float64, demand int) (lanes int, need float64) {
	most := min(demand, l.Tokens-n)
	least := min(most, WholeTiles(n+Tile/2)-n)
	if l.Time == nil {
		return least, 0
	}
	alone := l.Time(n)
	if cost := l.Time(n+least) - alone; cost > credit {
		return 0, cost
	}
	limit := alone + credit
	if l.Longest > 0 {
		limit = min(limit, l.Longest)
	}
	return l.within(n, least, most, limit), 0
}

// lanes returns the room alongside n background streams that keeps a step's length in bounds.
func (l *Limits) lanes(n int) int {
	most := l.Tokens - n
	least := min(most, WholeTiles(n+Tile/2)-n)
	if l.Time == nil {
		return least
	}
	if l.Longest == 0 {
		return most
	}
	return l.within(n, least, most, l.Longest)
}

// efficient returns the least number of tiles, in tokens, whose tokens take nearly
// as little time each as the tokens of any larger step.
func (l *Limits) efficient() int {
	each := func(n int) float64 { return l.Optimistic(n) / float64(n) }
	best := each(Tile)
	for n := 2 * Tile; n <= l.Tokens; n *= 2 {
		best = min(best, each(n))
	}
	n := Tile
	for n < l.Tokens && each(n) > 1.1*best {
		n *= 2
	}
	return min(n, l.Tokens)
}

// within returns the largest number of lanes in [lo, hi], or lo, with which a step
// alongside n tokens is expected to end within limit.
func (l *Limits) within(n, lo, hi int, limit float64) int {
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if l.Time(n+mid) <= limit {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// WholeTiles rounds n tokens up to lanes.
func WholeTiles(n int) int { return (n + Tile - 1) / Tile * Tile }

// planStreams gives one token each to the streams of a list. When they are too
// many, one in share of the tokens goes to the first in the list (share 0:
// none) and the others alternate, from next on. It returns the tokens and rows it gave.
func (s *Scheduler) planStreams(wants []Demand, list []int, share int, next *int, tokens, rows int) (n, r int) {
	give := func(i int) bool {
		need := wants[i].Rows(1)
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
		*next %= len(list)
	} else {
		*next = 0
	}
	for k := range list {
		at := (*next + k) % len(list)
		if !give(list[at]) {
			*next = at
			break
		}
	}
	return n, r
}

// planPrompts shares tokens among the prompts of a list, which it reorders,
// and returns the tokens and rows it gave.
func (s *Scheduler) planPrompts(wants []Demand, list []int, tokens, rows int) (n, r int) {
	give := func(i, most int) {
		w := wants[i]
		w.Computed += s.grants[i]
		got := w.chunk(min(most, tokens-n), rows-r)
		s.grants[i] += got
		if n += got; !w.Whole {
			r += w.Rows(got)
		}
	}
	if len(list) == 0 || tokens <= 0 {
		return 0, 0
	}
	oldest := list[0]
	give(oldest, (tokens+1)/2)
	if w := wants[oldest]; s.grants[oldest] == 0 && w.Whole { // it may be longer than any step is meant to be
		s.grants[oldest], n = w.Left(), w.Left()
	}
	rest := list[1:]
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(wants[a].Left(), wants[b].Left()), cmp.Compare(a, b))
	})
	for _, i := range rest {
		give(i, tokens)
	}
	give(oldest, tokens)
	return n, r
}
