package grammar

import (
	"slices"
	"sort"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// readItems reads text as Read does where the grammar has lists whose items differ. Locked.
func (s *State) readItems(text []byte) (next *State, n int, err error) {
	next = s
	c := cursorOf(s.items)
	for n < len(text) {
		t := next.after(text[n])
		at := c
		if t == s.g.refused || !c.read(t, text[:n], text[n]) {
			c = at
			break
		}
		next = t
		n++
	}
	return next.within(c.behind(text[:n])), n, s.g.fault()
}

// Shared reports whether other texts may lead to s too. Only one text leads to a state
// within a list whose items differ.
func (s *State) Shared() bool { return s.items == nil }

// within returns s after what has been written of a list whose items differ.
func (s *State) within(i *items) *State {
	if i == nil {
		return s
	}
	return &State{g: s.g, accepts: s.accepts, configs: s.configs, next: s.next, room: s.room, differ: s.differ, rules: s, items: i}
}

// Rules returns s as far as rules know, without what has been written of a list whose items
// differ.
func (s *State) Rules() *State {
	if s.rules != nil {
		return s.rules
	}
	return s
}

// Withhold takes the tokens that s does not allow from mask, which follows the rules alone.
// pause and errors are as in Allow.
func (s *State) Withhold(v *Vocabulary, mask Mask, pause func()) error {
	s.g.lock(pause)
	defer s.g.unlock()
	s.withhold(v, mask)
	return s.g.fault()
}

// withhold takes from mask the tokens that would repeat an item, or begin one that cannot
// but repeat one. Locked.
func (s *State) withhold(v *Vocabulary, mask Mask) {
	if s.items == nil && s.differ { // of Rules, which do not know what the item begins with
		return
	}
	for i := range v.slices {
		if s.g.fault() == nil {
			s.withholdOf(cursorOf(s.items), &v.slices[i], mask)
		}
	}
}

// withholdOf walks a trie as walk does.
func (s *State) withholdOf(c cursor, part *slice, mask Mask) {
	if c.apart(s, part) {
		return
	}
	type point struct {
		state  *State
		cursor cursor
	}
	path := make([]point, part.depth+1)
	path[0] = point{s, c}
	text := make([]byte, part.depth)
	for i := 0; i < len(part.nodes); {
		n := &part.nodes[i]
		at := path[n.depth]
		next := at.state.after(n.b)
		text[n.depth] = n.b
		switch {
		case next == s.g.refused:
			i += int(n.size)
			continue
		case !at.cursor.read(next, text[:n.depth], n.b):
			for _, n := range part.nodes[i : i+int(n.size)] {
				part.remove(n.token, mask)
			}
			i += int(n.size)
			continue
		case at.cursor.apart(next, part):
			i += int(n.size)
			continue
		}
		path[n.depth+1] = point{next, at.cursor}
		i++
	}
}

// remove takes the tokens of one text from mask.
func (s *slice) remove(token int32, mask Mask) {
	for more := token >= 0; more; token, more = s.same[token] {
		mask[token/64] &^= 1 << (token % 64)
	}
}

// cursor is items while a text is read.
type cursor struct {
	in bool // a list whose items differ
	items
	length int // of the item that is being written
	since  int // the bytes of the text at hand from here on are the item's too
}

func cursorOf(i *items) cursor {
	if i == nil {
		return cursor{}
	}
	return cursor{in: true, items: *i, length: len(i.text)}
}

// behind returns what c has become at the end of the text at hand.
func (c *cursor) behind(text []byte) *items {
	if !c.in {
		return nil
	}
	i := c.items
	if i.text = ""; c.length > 0 {
		i.text = c.text + string(text[c.since:])
	}
	return &i
}

// apart reports whether no token of a slice can end an item or begin a list. Its characters then go on with a string
// that no earlier one begins with, or with any string.
func (c *cursor) apart(s *State, part *slice) bool {
	return part.room > 0 && (c.in && c.quoted && c.from == c.to || !c.in && s.room >= part.room)
}

// read returns what c becomes after a byte, where the state is next. before is the text at
// hand up to it.
func (c *cursor) read(next *State, before []byte, b byte) (ok bool) {
	switch {
	case !c.in:
		if c.in = next.differ; c.in {
			c.begin(len(before) + 1)
		}
		return true
	case c.quoted:
		ends := b == '"' && !c.escaped
		c.escaped = b == '\\' && !c.escaped
		if !c.add(next, b, ends) {
			return false
		}
		return !ends || c.end(before[:len(before)+1]) // the text at hand goes on with b
	}
	switch b {
	case ' ', '\t', '\n', '\r':
		if c.length > 0 {
			return c.end(before)
		}
		if c.whole {
			return true
		}
		c.since = len(before) + 1
	case ']', ',':
		if c.length > 0 && !c.end(before) {
			return false
		}
		if b == ']' || !next.differ {
			*c = cursor{}
			return true
		}
		c.begin(len(before) + 1)
		return next.more(len(c.told))
	case '[', '{', ':': // of another list
		*c = cursor{in: next.differ, since: len(before) + 1}
	default:
		c.quoted = b == '"' && c.length == 0
		return c.add(next, b, false)
	}
	return true
}

// begin begins an item.
func (c *cursor) begin(since int) {
	c.text, c.whole, c.quoted, c.escaped = "", false, false, false
	c.length, c.since, c.from, c.to = 0, since, 0, len(c.told)
}

// add adds a byte to the item, and reports whether it can still become one that is not
// there; one that ends with it is looked at by end.
func (c *cursor) add(next *State, b byte, ends bool) bool {
	at := func(i int) int { // the byte there, or -1
		if told := c.told[i]; c.length < len(told) {
			return int(told[c.length])
		}
		return -1
	}
	from, to := c.from, c.to
	c.from = from + sort.Search(to-from, func(i int) bool { return at(from+i) >= int(b) })
	c.to = from + sort.Search(to-from, func(i int) bool { return at(from+i) > int(b) })
	c.length++
	switch same := c.to - c.from; {
	case same == 0 || ends:
		return true
	case next.differ:
		return next.more(same)
	}
	return len(c.told[c.from]) != c.length // it cannot go on
}

// end ends the item, whose bytes of the current text reach to the end of before.
func (c *cursor) end(before []byte) bool {
	if c.from < c.to && len(c.told[c.from]) == c.length {
		return false
	}
	c.told = slices.Insert(slices.Clone(c.told), c.from, c.text+string(before[c.since:]))
	c.begin(len(before))
	c.whole = true
	return true
}

// more reports whether an item that has been read so far can become one of more than n.
// Locked.
func (s *State) more(n int) bool {
	if n < s.many {
		return true
	}
	var es []regex.Expr
	for _, c := range s.configs {
		if s.g.behindItem(c.rest) {
			es = append(es, c.expr)
		}
	}
	e := s.g.arena.Or(es...)
	if s.g.arena.Exceeds(e, 2*n+mostAsked) {
		s.many = 2*n + mostAsked + 1
		return true
	}
	return s.g.arena.Exceeds(e, n)
}

// mostAsked items more are counted than are asked for, so that counting is seldom
// done.
const mostAsked = 64

// behindItem reports whether rest stands after an item of a list whose items
// differ.
func (g *Grammar) behindItem(rest *stack) bool {
	return g.differ != nil && slices.ContainsFunc(rest.frames, func(f frame) bool { return g.differ(f.symbol) })
}
