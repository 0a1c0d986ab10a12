package device

import "fmt"

// ExpTable is where the table of OpExpTable is kept: the start of TCM.
const ExpTable uint32 = 0

// Arena divides a device's memory: TCM, whose start is kept for the table of powers,
// what stays for good from the end of TCM upwards, and scratch above it.
type Arena struct {
	TCM, Scratch Stack
	kept         Stack
	sealed       bool
}

// NewArena divides so many bytes.
func NewArena(memory int) (*Arena, error) {
	if memory < TCMBytes+Align || uint64(memory) > 1<<32 {
		return nil, fmt.Errorf("hexagon: a device's memory has %d bytes, which is not between %d and 4 GiB", memory, TCMBytes+Align)
	}
	return &Arena{
		TCM:  Stack{name: "TCM", next: ExpTableBytes, end: TCMBytes},
		kept: Stack{name: "the device's memory", next: TCMBytes, end: uint64(memory)},
	}, nil
}

// Keep allocates n bytes that are never given back, for weights. It fails once Seal
// has been called.
func (a *Arena) Keep(n int) (uint32, error) {
	if a.sealed {
		return 0, fmt.Errorf("hexagon: weights are allocated before scratch")
	}
	return a.kept.Alloc(n)
}

// Seal ends the weights: what is left of the memory is scratch.
func (a *Arena) Seal() {
	if !a.sealed {
		a.sealed = true
		a.Scratch = Stack{name: "the device's scratch memory", next: a.kept.next, end: a.kept.end}
	}
}

// Stack is memory that is given back in reverse order.
type Stack struct {
	name      string
	next, end uint64
}

// Alloc returns the offset of n bytes, aligned to Align; never 0.
func (s *Stack) Alloc(n int) (uint32, error) {
	at := (s.next + Align - 1) / Align * Align
	if n < 0 || at+uint64(n) > s.end {
		return 0, fmt.Errorf("hexagon: %s has %d of the %d bytes that are needed", s.name, max(at, s.end)-at, n)
	}
	s.next = at + uint64(n)
	return uint32(at), nil
}

// Mark is a height of the stack.
type Mark uint64

// Mark is for Release to return to.
func (s *Stack) Mark() Mark { return Mark(s.next) }

// Release gives back all that was allocated since the mark.
func (s *Stack) Release(m Mark) { s.next = uint64(m) }

// Free is how many bytes Alloc can still return at once.
func (s *Stack) Free() int {
	at := (s.next + Align - 1) / Align * Align
	return int(max(at, s.end) - at)
}
