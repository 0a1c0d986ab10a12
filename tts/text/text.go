// Package text turns what a model writes into what is delivered of it: whole characters, up
// to a stop string, thoughts apart from the answer.
package text

import (
	"slices"
	"unicode/utf8"
)

// Stream turns the bytes of tokens into deliverable text: always valid UTF-8,
// and never a byte that may still turn out to begin a stop string.
//
//	piece ──▶ partial (an unfinished rune) ──▶ held (a possible stop) ──▶ delivered
type Stream struct {
	Delivered int    // bytes handed out
	Stopped   bool   // a stop string has ended
	Stop      string // that did

	partial []byte // begins a rune that has not ended, at most utf8.UTFMax-1 bytes
	held    []byte // valid UTF-8 that begins some stop string
	stops   []stopString
}

// New returns a stream until a stop string appears: one of kept, which stays in the
// text, or of cut, which does not. Empty ones never match.
func New(cut, kept []string) *Stream {
	t := &Stream{}
	for i, s := range slices.Concat(cut, kept) {
		if s != "" {
			t.stops = append(t.stops, stopString{Matcher: NewMatcher([]byte(s)), keep: i >= len(cut)})
		}
	}
	return t
}

// Clone returns a copy that goes on from here on its own.
func (t *Stream) Clone() *Stream {
	c := *t
	c.partial, c.held, c.stops = slices.Clone(t.partial), slices.Clone(t.held), slices.Clone(t.stops)
	return &c
}

// Push adds a token's bytes and returns the text that can be delivered. After
// a stop string has ended, Stopped is set and all further input is ignored.
//
// The stop that ends first wins, and of those that end together the longest:
// the outcome depends on the bytes alone, not on how tokens divide them. With
// mayStop false none ends here.
func (t *Stream) Push(piece []byte, mayStop bool) string {
	t.partial = append(t.partial, piece...)
	var out []byte
	for !t.Stopped && utf8.FullRune(t.partial) {
		r, n := utf8.DecodeRune(t.partial)
		t.partial = t.partial[n:]
		out = t.rune(out, r, mayStop)
	}
	return string(out)
}

// Flush returns what was held back, when no more tokens follow. Bytes of an
// unfinished rune become U+FFFD, one each.
func (t *Stream) Flush() string {
	var out []byte
	for range t.partial {
		if !t.Stopped {
			out = t.rune(out, utf8.RuneError, true)
		}
	}
	t.partial = nil
	if !t.Stopped {
		out = append(out, t.held...)
		t.Delivered += len(t.held)
		t.held = nil
	}
	return string(out)
}

// Seen returns the number of bytes of text known so far, delivered or held.
func (t *Stream) Seen() int { return t.Delivered + len(t.held) }

// rune passes one rune through the stop matchers and appends to out what no
// longer can belong to a stop.
func (t *Stream) rune(out []byte, r rune, mayStop bool) []byte {
	t.held = utf8.AppendRune(t.held, r)
	size := utf8.RuneLen(r)
	longest, matched, kept := 0, 0, false
	for i := range t.stops {
		m := &t.stops[i]
		for _, b := range t.held[len(t.held)-size:] {
			m.state = m.Next(m.state, b)
		}
		if m.state == len(m.Pattern) {
			switch {
			case !mayStop:
				m.state = m.shorter[m.state] // goes on as if it had not been
			case m.state > matched:
				matched, kept, t.Stop = m.state, m.keep, string(m.Pattern)
			}
		}
		longest = max(longest, m.state)
	}
	// A stop begins with a whole rune, so neither cut divides one.
	keep := longest
	if matched > 0 {
		t.Stopped = true
		if keep = matched; kept {
			keep = 0
		}
	}
	free := len(t.held) - keep
	out = append(out, t.held[:free]...)
	t.Delivered += free
	if t.Stopped {
		t.held = nil
	} else {
		t.held = append(t.held[:0], t.held[free:]...)
	}
	return out
}

// stopString is a text's progress through one stop string.
type stopString struct {
	Matcher[byte]      // shared by clones
	keep          bool // it stays in the text
	state         int  // the match
}

// Matcher finds a pattern in what comes piece by piece (Knuth, Morris, Pratt 1977). How
// far it has come is a number: how many of the last pieces are the pattern's first.
type Matcher[T comparable] struct {
	Pattern []T
	shorter []int // by length of a match: the length of the next shorter one with the same end
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
