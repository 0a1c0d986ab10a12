package grammar

// mostForced bounds the text that is found to be forced at once.
const mostForced = 256

// Forced returns the text that must follow: the only bytes that may stand there, one
// after another, up to where there is a choice or the text may end.
func (s *State) Forced() []byte {
	s.g.lock(nil)
	defer s.g.unlock()
	text, _ := s.forced()
	return text
}

// forced finds the text of Forced and the state after it. Locked.
func (s *State) forced() (text []byte, end *State) {
	for len(text) < mostForced && !s.accepts && !s.Ended() {
		b, ok := s.only()
		if !ok {
			break
		}
		text = append(text, b)
		s = s.after(b)
	}
	return text, s
}

// only returns the one byte that may follow, if there is just one. Locked.
func (s *State) only() (found byte, ok bool) {
	for class, b := range s.g.single {
		next := s.next[class].Load()
		if next == nil {
			next = s.g.step(s, uint8(class))
		}
		switch {
		case next == s.g.refused:
		case ok || b < 0:
			return 0, false
		default:
			found, ok = byte(b), true
		}
	}
	return found, ok
}

// ForcedWithin returns Forced if every token of v that may follow s lies within that text,
// so that nothing but the spelling is left to choose. Otherwise it is empty: some token
// goes on after the text in one of several ways. pause and errors are as in Allow.
func (s *State) ForcedWithin(v *Vocabulary, pause func()) ([]byte, error) {
	g := s.g
	g.lock(pause)
	defer g.unlock()
	text, end := s.forced()
	if len(text) > 0 && len(text) < mostForced {
		for i := range v.slices {
			if part := &v.slices[i]; follows(end, part, part.below(text)) {
				text = nil
				break
			}
		}
	}
	return text, g.fault()
}

// below lists the nodes of a trie under the one that text leads to, none if it leads to
// none.
func (part *slice) below(text []byte) []node {
	nodes := part.nodes
	for _, b := range text {
		i := 0
		for i < len(nodes) && nodes[i].b != b {
			i += int(nodes[i].size)
		}
		if i >= len(nodes) {
			return nil
		}
		nodes = nodes[i+1 : i+int(nodes[i].size)]
	}
	return nodes
}

// follows reports whether the text of one of these nodes, which are some of a trie's,
// may follow s. Locked.
func follows(s *State, part *slice, nodes []node) bool {
	if len(nodes) == 0 || s.Ended() {
		return false
	}
	path := make([]*State, part.depth+2)
	root := nodes[0].depth
	path[0] = s
	for i := 0; i < len(nodes); {
		n := &nodes[i]
		next := path[n.depth-root].after(n.b)
		if next == s.g.refused {
			i += int(n.size)
			continue
		}
		if n.token >= 0 {
			return true
		}
		path[n.depth-root+1] = next
		i++
	}
	return false
}
