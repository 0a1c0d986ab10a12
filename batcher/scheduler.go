package batcher

import (
	"cmp"
	"math"
	"slices"
)

// want is what one admitted sequence asks of the coming steps.
type want struct {
	have    int // positions computed
	target  int // positions wanted; have < target
	outFrom int // logits are wanted of positions from here on
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

// limits bound one step.
type limits struct {
	tokens int // whole tiles
	rows   int // at least 2
	paced  int // lanes that keep the streams' time per token, as measured
}

// scheduler plans steps. It does no I/O and knows no KV cache: it hands out
// the lanes of a step to wants.
//
// Streams (one token left) come first; when there are too many they take
// turns. Prompts share the lanes that remain of a whole number of tiles: at
// least half go to the oldest, so none starves, and the rest to the shortest,
// so that a short prompt need not wait for a long one.
type scheduler struct {
	turn    int
	streams []int // scratch: indexes of wants
	prompts []int
	grants  []int
}

// plan gives every want a number of tokens for the next step; wants are
// oldest first. The result is valid until the next call. Some want always
// gets a token.
func (s *scheduler) plan(wants []want, l limits) []int {
	s.grants = slices.Grow(s.grants[:0], len(wants))[:len(wants)]
	clear(s.grants)
	s.streams, s.prompts = s.streams[:0], s.prompts[:0]
	for i, w := range wants {
		if w.left() == 1 {
			s.streams = append(s.streams, i)
		} else {
			s.prompts = append(s.prompts, i)
		}
	}
	tokens, rows := l.tokens, l.rows
	if len(s.prompts) > 0 { // streams leave something to the prompts
		tokens, rows = tokens-Tile/2, rows-1
	}
	n, r := s.planStreams(wants, tokens, rows)
	if len(s.prompts) > 0 {
		s.planPrompts(wants, l.lanes(n)-n, l.rows-r)
	}
	return s.grants
}

// lanes is the size of a step with n streams. However slow the machine,
// prompts get half a tile: the lanes of a tile cost nearly the same used or not.
func (l limits) lanes(n int) int {
	if n == 0 {
		return l.tokens
	}
	return min(l.tokens, max(l.paced, wholeTiles(n+Tile/2)))
}

// wholeTiles rounds n tokens up to lanes.
func wholeTiles(n int) int { return (n + Tile - 1) / Tile * Tile }

// planStreams returns the tokens and rows it gave.
func (s *scheduler) planStreams(wants []want, tokens, rows int) (n, r int) {
	count := len(s.streams)
	if count == 0 {
		return 0, 0
	}
	start := 0
	if count > min(tokens, rows) {
		start = s.turn % count
	}
	for k := range count {
		i := s.streams[(start+k)%count]
		need := wants[i].rows(1)
		if n == tokens || r+need > rows {
			s.turn = (start + k) % count // who goes first next time
			break
		}
		s.grants[i] = 1
		n, r = n+1, r+need
	}
	return n, r
}

func (s *scheduler) planPrompts(wants []want, tokens, rows int) {
	give := func(i, tokens int) int {
		w := wants[i]
		w.have += s.grants[i]
		n := w.chunk(tokens, rows)
		s.grants[i] += n
		rows -= w.rows(n)
		return n
	}
	oldest := s.prompts[0]
	tokens -= give(oldest, (tokens+1)/2)
	rest := s.prompts[1:]
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(wants[a].left(), wants[b].left()), cmp.Compare(a, b))
	})
	for _, i := range rest {
		tokens -= give(i, tokens)
	}
	give(oldest, tokens)
}
