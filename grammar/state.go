package grammar

// after returns the state after a byte. Locked.
func (s *State) after(b byte) *State {
	class := s.g.class[b]
	if n := s.next[class].Load(); n != nil {
		return n
	}
	return s.g.step(s, class)
}

// Read returns the state after text, and how many of its bytes may stand there. An
// error is one of the grammar's budget.
func (s *State) Read(text []byte) (next *State, n int, err error) {
	s.g.lock(nil)
	defer s.g.unlock()
	if s.g.differ != nil {
		return s.readItems(text)
	}
	next = s
	for n < len(text) {
		t := next.after(text[n])
		if t == s.g.refused {
			break
		}
		next = t
		n++
	}
	return next, n, s.g.fault()
}

// Peek reads text as far as it has been found out before: it waits for nobody. known is
// false where it has not.
func (s *State) Peek(text []byte) (next *State, n int, known bool) {
	next = s
	for n < len(text) {
		if s.g.differ != nil {
			return next, n, false
		}
		t := next.next[s.g.class[text[n]]].Load()
		switch t {
		case nil:
			return next, n, false
		case s.g.refused:
			return next, n, true
		}
		next = t
		n++
	}
	return next, n, true
}

// Allow adds to mask, which holds v's tokens, those whose texts may follow s: whole
// tokens, and ones that lead on. Tokens that end texts are not among them. pause, if it
// is not nil, is called now and then, so that long work may rest. An error is
// one of the grammar's budget.
func (s *State) Allow(v *Vocabulary, mask Mask, pause func()) error {
	g := s.g
	g.lock(pause)
	defer g.unlock()
	if s.Ended() {
		return g.fault()
	}
	for i := range v.slices {
		part := &v.slices[i]
		if part.room > 0 && s.room >= part.room {
			for w, bits := range part.all {
				mask[w] |= bits
			}
			continue
		}
		s.walk(part, mask)
		if g.fault() != nil {
			break
		}
	}
	if g.differ != nil {
		s.withhold(v, mask)
	}
	return g.fault()
}

// walk adds the tokens of a trie that may follow s.
func (s *State) walk(part *slice, mask Mask) {
	g := s.g
	if len(g.scratch.path) <= part.depth {
		g.scratch.path = make([]*State, part.depth+1)
	}
	path := g.scratch.path
	path[0] = s
	refused, nodes := g.refused, part.nodes
	for i := 0; i < len(nodes); {
		n := &nodes[i]
		s := path[n.depth]
		class := g.class[n.b]
		next := s.next[class].Load()
		if next == nil {
			next = g.step(s, class)
		}
		if next == refused {
			i += int(n.size)
			continue
		}
		if t := n.token; t >= 0 {
			mask[t/64] |= 1 << (t % 64)
			for more := part.same != nil; more; {
				if t, more = part.same[t]; more {
					mask[t/64] |= 1 << (t % 64)
				}
			}
		}
		path[n.depth+1] = next
		i++
	}
}
