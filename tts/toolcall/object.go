package toolcall

// objectScanner finds the members of a JSON object as it comes. It checks no more
// than it needs to know where values end.
type objectScanner struct {
	at      objectState
	key     []byte // under way or of the value under way, with its escapes
	depth   int    // of containers within the value
	quoted  bool   // in a string within the value
	escaped bool   // after a backslash
}

type objectState uint8

const (
	beforeObject objectState = iota
	beforeKey
	inKey
	afterKey
	beforeValue
	inValue
	afterValue
	afterObject
	broken
)

// maxKey bounds a key of a call: longer ones are none that matter.
const maxKey = 256

// event says what a byte meant.
type event uint8

const (
	nothing    event = iota
	valueByte        // it belongs to the value of key
	valueEnd         // it is the last of that value
	valueEnded       // it follows a number or a word, and is no part of it
)

// next takes a byte.
func (s *objectScanner) next(b byte) event {
	space := b == ' ' || b == '\n' || b == '\t' || b == '\r'
	switch s.at {
	case beforeObject:
		s.expect(b == '{', space, beforeKey)
	case beforeKey:
		switch {
		case b == '}':
			s.at = afterObject
		case b == '"':
			s.at, s.key = inKey, s.key[:0]
		case !space:
			s.at = broken
		}
	case inKey:
		switch {
		case s.escaped:
			s.escaped = false
		case b == '\\':
			s.escaped = true
		case b == '"':
			s.at = afterKey
			return nothing
		}
		if s.key = append(s.key, b); len(s.key) > maxKey {
			s.at = broken
		}
	case afterKey:
		s.expect(b == ':', space, beforeValue)
	case beforeValue:
		if space {
			return nothing
		}
		s.at, s.depth, s.quoted = inValue, 0, false
		return s.value(b)
	case inValue:
		return s.value(b)
	case afterValue:
		s.behind(b, space)
	}
	return nothing
}

// expect goes on to a state with one byte, and past white space.
func (s *objectScanner) expect(found, space bool, to objectState) {
	if found {
		s.at = to
	} else if !space {
		s.at = broken
	}
}

// behind takes a byte that follows a value.
func (s *objectScanner) behind(b byte, space bool) {
	switch {
	case b == ',':
		s.at = beforeKey
	case b == '}':
		s.at = afterObject
	case space:
		s.at = afterValue
	default:
		s.at = broken
	}
}

// value takes a byte of a value.
func (s *objectScanner) value(b byte) event {
	if s.quoted {
		switch {
		case s.escaped:
			s.escaped = false
		case b == '\\':
			s.escaped = true
		case b == '"':
			s.quoted = false
			return s.ended()
		}
		return valueByte
	}
	switch b {
	case '"':
		s.quoted = true
	case '{', '[':
		s.depth++
	case '}', ']', ',', ' ', '\n', '\t', '\r':
		if s.depth == 0 { // after a number or a word
			s.at = afterValue
			s.behind(b, b != '}' && b != ',' && b != ']')
			return valueEnded
		}
		if b == '}' || b == ']' {
			s.depth--
			return s.ended()
		}
	}
	return valueByte
}

// ended returns the event of a byte that ends a string or a container.
func (s *objectScanner) ended() event {
	if s.depth > 0 {
		return valueByte
	}
	s.at = afterValue
	return valueEnd
}
