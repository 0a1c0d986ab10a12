package text

// Matcher finds a pattern in what comes piece by piece (Knuth, Morris, Pratt 1977). How
// far it has come is a number: how many of the last pieces are the pattern's first.
type Matcher[T comparable] struct {
	Pattern []T
	shorter []int // by length of a match: that of the next shorter one with the same end
}

// NewMatcher finds a pattern.
func NewMatcher[T comparable](pattern []T) Matcher[T] {
	m := Matcher[T]{pattern, make([]int, len(pattern)+1)}
	for n := 2; n <= len(pattern); n++ {
		m.shorter[n] = m.Next(m.shorter[n-1], pattern[n-1])
	}
	return m
}

// Next returns the match after one more piece.
func (m *Matcher[T]) Next(n int, piece T) int {
	for n > 0 && (n == len(m.Pattern) || m.Pattern[n] != piece) {
		n = m.shorter[n]
	}
	if n < len(m.Pattern) && m.Pattern[n] == piece {
		n++
	}
	return n
}

// Within returns the longest match of at most most pieces that ends where one of n does.
func (m *Matcher[T]) Within(n, most int) int {
	for n > max(most, 0) {
		n = m.shorter[n]
	}
	return n
}
