package tts

import (
	"slices"
	"unicode/utf8"
)

// text turns the bytes of tokens into deliverable text: always valid UTF-8,
// and never a byte that may still turn out to begin a stop string.
//
//	piece ──▶ partial (an unfinished rune) ──▶ held (a possible stop) ──▶ delivered
type text struct {
	partial   []byte // begins a rune that has not ended, at most utf8.UTFMax-1 bytes
	held      []byte // valid UTF-8 that begins some stop string
	stops     []matcher
	delivered int // bytes handed out
	stopped   bool
	stop      string // that ended it
}

// newText decodes until a stop string appears: one of kept, which stays in the
// text, or of cut, which does not. Empty ones never match.
func newText(cut, kept []string) *text {
	t := &text{}
	for i, s := range slices.Concat(cut, kept) {
		if s != "" {
			m := newMatcher(s)
			m.keep = i >= len(cut)
			t.stops = append(t.stops, m)
		}
	}
	return t
}

// clone is a copy that goes on from here on its own.
func (t *text) clone() *text {
	c := *t
	c.partial, c.held, c.stops = slices.Clone(t.partial), slices.Clone(t.held), slices.Clone(t.stops)
	return &c
}

// push adds a token's bytes and returns the text that can be delivered. After
// a stop string has ended, stopped is set and all further input is ignored.
//
// The stop that ends first wins, and of those that end together the longest:
// the outcome depends on the bytes alone, not on how tokens divide them. With
// mayStop false none ends here.
func (t *text) push(piece []byte, mayStop bool) string {
	t.partial = append(t.partial, piece...)
	var out []byte
	for !t.stopped && utf8.FullRune(t.partial) {
		r, n := utf8.DecodeRune(t.partial)
		t.partial = t.partial[n:]
		out = t.rune(out, r, mayStop)
	}
	return string(out)
}

// flush returns what was held back, when no more tokens follow. Bytes of an
// unfinished rune become U+FFFD, one each.
func (t *text) flush() string {
	var out []byte
	for range t.partial {
		if !t.stopped {
			out = t.rune(out, utf8.RuneError, true)
		}
	}
	t.partial = nil
	if !t.stopped {
		out = append(out, t.held...)
		t.delivered += len(t.held)
		t.held = nil
	}
	return string(out)
}

// seen is the number of bytes of text known so far, delivered or held.
func (t *text) seen() int { return t.delivered + len(t.held) }

// rune passes one rune through the stop matchers and appends to out what no
// longer can belong to a stop.
func (t *text) rune(out []byte, r rune, mayStop bool) []byte {
	t.held = utf8.AppendRune(t.held, r)
	size := utf8.RuneLen(r)
	longest, matched, kept := 0, 0, false
	for i := range t.stops {
		m := &t.stops[i]
		for _, b := range t.held[len(t.held)-size:] {
			m.next(b)
		}
		if m.state == len(m.stop) {
			switch {
			case !mayStop:
				m.state = int(m.fail[m.state-1]) // goes on as if it had not been
			case m.state > matched:
				matched, kept, t.stop = m.state, m.keep, m.stop
			}
		}
		longest = max(longest, m.state)
	}
	// A stop begins with a whole rune, so neither cut divides one.
	keep := longest
	if matched > 0 {
		t.stopped = true
		if keep = matched; kept {
			keep = 0
		}
	}
	free := len(t.held) - keep
	out = append(out, t.held[:free]...)
	t.delivered += free
	if t.stopped {
		t.held = nil
	} else {
		t.held = append(t.held[:0], t.held[free:]...)
	}
	return out
}

// matcher finds one stop string in a stream of bytes (Knuth, Morris, Pratt
// 1977): its state is the length of the longest prefix of stop that the
// stream ends with, so each byte is looked at once.
type matcher struct {
	stop  string
	keep  bool    // it stays in the text
	fail  []int32 // fail[i]: longest proper prefix of stop[:i+1] that is its suffix; shared by clones
	state int
}

func newMatcher(stop string) matcher {
	m := matcher{stop: stop, fail: make([]int32, len(stop))}
	for i, k := 1, int32(0); i < len(stop); i++ {
		for k > 0 && stop[k] != stop[i] {
			k = m.fail[k-1]
		}
		if stop[k] == stop[i] {
			k++
		}
		m.fail[i] = k
	}
	return m
}

// next must not be called after a match: the text has stopped there.
func (m *matcher) next(b byte) {
	for m.state > 0 && m.stop[m.state] != b {
		m.state = int(m.fail[m.state-1])
	}
	if m.stop[m.state] == b {
		m.state++
	}
}
