package grammar

import "math/bits"

// Mask is a set of tokens, a bit each.
type Mask []uint64

// Has reports whether token id is in the set.
func (m Mask) Has(id int32) bool { return m[id/64]>>(id%64)&1 != 0 }

// Count returns the number of tokens in the set.
func (m Mask) Count() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}
