// Package resident says which pieces of a model are in memory where not all of them
// fit, and which go out for others.
package resident

// Set is which of many pieces have one of fewer slots. Work wants pieces in turns:
// those of one turn are in memory together. For another piece the one goes out that
// the fewest turns have wanted of late. Of equals it is the one that was wanted last:
// layers have their turns in a circle, so that it will be wanted again the latest.
// A Set is for one goroutine.
type Set struct {
	slot  []int32  // [pieces] none: it has no slot
	piece []int32  // [slots] none: the slot is free
	uses  []uint32 // [pieces] turns that wanted it, halved every so many turns
	last  []uint64 // [pieces] the last such turn
	turn  uint64
}

const none = -1

// halved is after how many turns what counted so far counts half.
const halved = 1 << 12

// New makes a set in which all slots are free. There is at least one.
func New(pieces, slots int) *Set {
	s := &Set{slot: make([]int32, pieces), piece: make([]int32, slots), uses: make([]uint32, pieces), last: make([]uint64, pieces)}
	for i := range s.slot {
		s.slot[i] = none
	}
	for i := range s.piece {
		s.piece[i] = none
	}
	return s
}

// Begin begins a turn for the first n of the wanted pieces, as many as there are
// slots; the others want a later turn. It changes their order: those that are in
// memory come first, so that none of them goes out for another.
func (s *Set) Begin(wanted []int32) (n int) {
	for i, p := range wanted {
		if s.slot[p] == none {
			continue
		}
		copy(wanted[n+1:i+1], wanted[n:i])
		wanted[n] = p
		n++
	}
	n = min(len(wanted), len(s.piece))
	if s.turn++; s.turn%halved == 0 {
		for i := range s.uses {
			s.uses[i] /= 2
		}
	}
	for _, p := range wanted[:n] {
		s.uses[p]++
		s.last[p] = s.turn
	}
	return n
}

// Slot is where a piece is; ok is false if it is not in memory.
func (s *Set) Slot(piece int32) (slot int, ok bool) {
	return int(s.slot[piece]), s.slot[piece] != none
}

// Place gives a piece of the turn that has none a slot: a free one, or that of a piece
// that the turn does not want and that goes out.
func (s *Set) Place(piece int32) (slot int) {
	slot = none
	for i, p := range s.piece {
		if p == none {
			slot = i
			break
		}
		if s.last[p] != s.turn && (slot == none || s.before(p, s.piece[slot])) {
			slot = i
		}
	}
	if out := s.piece[slot]; out != none {
		s.slot[out] = none
	}
	s.piece[slot], s.slot[piece] = piece, int32(slot)
	return slot
}

// before tells whether a goes out before b.
func (s *Set) before(a, b int32) bool {
	if s.uses[a] != s.uses[b] {
		return s.uses[a] < s.uses[b]
	}
	return s.last[a] > s.last[b]
}

// Slots is how many pieces fit into memory.
func (s *Set) Slots() int { return len(s.piece) }
