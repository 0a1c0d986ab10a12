package sampling

import "slices"

// TokenSet is a set of token ids, in ascending order and each once. It is not
// changed once it is made, so that all choices of a request share one.
type TokenSet []int32

// NewTokenSet holds the ids of all lists.
func NewTokenSet(lists ...[]int32) TokenSet {
	set := slices.Concat(lists...)
	slices.Sort(set)
	return slices.Clip(slices.Compact(set))
}

// Has reports whether id is in the set, in time that is logarithmic in its size.
func (s TokenSet) Has(id int32) bool {
	_, found := slices.BinarySearch(s, id)
	return found
}

// ordered reports whether s is one that NewTokenSet could have made.
func (s TokenSet) ordered() bool {
	for i := 1; i < len(s); i++ {
		if s[i] <= s[i-1] {
			return false
		}
	}
	return true
}
