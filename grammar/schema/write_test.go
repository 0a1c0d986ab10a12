package schema

import (
	"math/rand/v2"
	"strings"

	"github.com/lutra-lm/lutra/grammar/regex"
)

// style says how a value is written: order, spaces and escapes.
type style struct {
	*rand.Rand               // shuffles properties, unless it is nil
	comma, colon      string // the spaces after them
	open, next, close string // an indent
}

// styles are ways to write that models have.
func styles(r *rand.Rand) []style {
	return []style{{Rand: r}, {Rand: r, comma: " ", colon: " "}, {Rand: r, colon: " ", open: "\n  ", next: "\n  ", close: "\n"}}
}

// write writes a value.
func (v *value) write(s style) string {
	quoted := func(text string) string { return `"` + regex.Escape(text) + `"` }
	var parts []string
	brackets := "[]"
	switch v.kind {
	case nulls:
		return "null"
	case booleans:
		if v.truth {
			return "true"
		}
		return "false"
	case numbers:
		return v.text
	case strs:
		return quoted(v.text)
	case arrays:
		for _, x := range v.items {
			parts = append(parts, x.write(s))
		}
	case objects:
		brackets = "{}"
		for _, m := range v.members {
			parts = append(parts, quoted(m.name)+":"+s.colon+m.value.write(s))
		}
		if s.Rand != nil {
			s.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		}
	}
	if len(parts) == 0 {
		return brackets
	}
	return brackets[:1] + s.open + strings.Join(parts, ","+s.comma+s.next) + s.close + brackets[1:]
}
