package toolcall

import (
	"encoding/json"
	"slices"
	"strings"
)

// Object returns the arguments as an object. Of a call that was cut off it has the complete members, and the
// beginning of a text that is not complete.
func (c *Call) Object() json.RawMessage {
	if json.Valid([]byte(c.Arguments)) {
		return json.RawMessage(c.Arguments)
	}
	return json.RawMessage(closed(c.Arguments))
}

// mostCut is the most bytes at the end of a text that may be a part of one character, which is escaped.
const mostCut = 6

// closed ends an object that breaks off.
func closed(text string) string {
	var open []byte                // what would close it, the innermost last
	whole, after := 0, []byte(nil) // up to where all is whole, and what would close that
	inside, escaped := false, false
	for i := range len(text) {
		b := text[i]
		switch {
		case escaped:
			escaped = false
		case inside && b == '\\':
			escaped = true
		case b == '"':
			inside = !inside
		case inside:
		case b == '{', b == '[':
			open = append(open, b+2) // the other bracket of ASCII
			whole, after = i+1, slices.Clone(open)
		case b == '}' || b == ']':
			open = open[:max(0, len(open)-1)]
		case b == ',':
			whole, after = i, slices.Clone(open)
		}
	}
	ended := func(text string, open []byte) (string, bool) {
		open = slices.Clone(open)
		slices.Reverse(open)
		text += string(open)
		return text, json.Valid([]byte(text))
	}
	if inside {
		for cut := range min(mostCut, len(text)) {
			if s, ok := ended(strings.ToValidUTF8(text[:len(text)-cut], "")+`"`, open); ok {
				return s
			}
		}
	} else if strings.HasSuffix(text, `"`) || strings.HasSuffix(text, "}") || strings.HasSuffix(text, "]") { // no number, which may have more digits
		if s, ok := ended(text, open); ok {
			return s
		}
	}
	if s, ok := ended(text[:whole], after); ok {
		return s
	}
	return "{}"
}
