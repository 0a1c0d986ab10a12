package toolcall

import (
	"encoding/json"
	"fmt"
	"strings"
)

// call finds the first call in a text: of name, with arguments that are an object of texts. What is found out of
// the form of its arguments goes into f.
func (d *derivation) call(text, name, arguments string, f *form) (s shown, k kind, err error) {
	list, _ := members(arguments)
	key := list[0].name
	last := list[len(list)-1]
	value, _ := textOf(last.value)
	at := strings.Index(text, key)
	to := strings.Index(text, value)
	if to < at || at < 0 {
		return s, k, unclear("it does not show arguments")
	}
	named := strings.LastIndex(text[:at], name)
	if named < 0 {
		return s, k, unclear("it does not show the name before the arguments")
	}
	s.before = text[:named]
	rest := text[named+len(name):]
	done := func(from, to int, k kind) (shown, kind, error) {
		s.middle, s.arguments, s.after = rest[:from], rest[from:to], rest[to:]
		return s, k, nil
	}
	for from := strings.IndexByte(rest, '{'); from >= 0 && from < at-named; {
		dec := json.NewDecoder(strings.NewReader(rest[from:]))
		var got map[string]any
		if dec.Decode(&got) == nil && got[key] != nil {
			return done(from, from+int(dec.InputOffset()), objectKind)
		}
		next := strings.IndexByte(rest[from+1:], '{')
		if next < 0 {
			break
		}
		from += 1 + next
	}
	at, to = strings.Index(rest, key), strings.Index(rest, value)+len(value)
	switch before := strings.TrimSpace(rest[:at]); {
	case before == "(":
		if end := strings.IndexByte(rest[to:], ')'); end >= 0 && strings.HasPrefix(rest[at+len(key):], "=") {
			return done(strings.IndexByte(rest, '(')+1, to+end, pythonKind)
		}
	case before == "{":
		quote, _, ok := strings.Cut(rest[at+len(key):], jsonValue(list[0]))
		if quote, found := strings.CutPrefix(quote, ":"); ok && found && quote != "" && strings.HasPrefix(rest[to:], quote+"}") {
			f.quote = quote
			return done(at-1, to+len(quote)+1, markedKind)
		}
	default:
		if len(list) > 1 {
			if err := d.element(rest, list, f); err != nil {
				return s, k, err
			}
		}
		e := &f.elements
		from, end := strings.LastIndex(rest[:at], e.open), to+len(e.close)
		if e.open != "" && from+len(e.open) == at && strings.HasPrefix(rest[to:], e.close) {
			return done(from, end, elementKind)
		}
	}
	return s, k, unclear("the form of arguments")
}

func jsonValue(m member) string {
	s, _ := textOf(m.value)
	return s
}

// element finds how an argument is written, from two behind a name.
func (d *derivation) element(rest string, list []member, f *form) error {
	e := &f.elements
	var before, naming [2]string
	for i, m := range list {
		var ok bool
		if before[i], rest, ok = strings.Cut(rest, m.name); ok {
			naming[i], rest, ok = strings.Cut(rest, jsonValue(m))
		}
		if !ok {
			return unclear("the form of arguments")
		}
	}
	if naming[0] != naming[1] || strings.TrimSpace(naming[0]) == "" {
		return unclear("an argument's name stands more than once")
	}
	e.open = strings.TrimLeft(commonEnd(before[0], before[1]), " \t\r\n")
	between := strings.TrimSuffix(before[1], e.open)
	e.close = between[:tagStart(between, common(between, rest))]
	if e.between = between[len(e.close):]; e.open == "" || strings.TrimSpace(e.close) == "" {
		return unclear("the form of arguments")
	}
	e.named = []named{{literal: naming[0]}}
	return d.types(e)
}

// types finds out whether what stands behind an argument's name says of what type it is.
func (d *derivation) types(e *element) error {
	text := e.named[0].literal
	for _, v := range []string{"98765", "true", `["value"]`, `{"value":"x"}`} {
		turn, err := d.turn("", fmt.Sprintf(`{"lutra_a":%s}`, v))
		if err != nil {
			continue // of some types it may know nothing
		}
		_, behind, ok := strings.Cut(turn, "lutra_a")
		starts := map[byte]string{'9': "98765", 't': "true True", '[': "[", '{': "{"}[v[0]]
		for start := range strings.FieldsSeq(starts) {
			at := strings.Index(behind, start)
			if !ok || at < 0 || at > maxHead || behind[:at] == text {
				continue
			}
			if literal := behind[:at]; strings.ContainsAny(literal, "[{") || common(literal, text) == 0 {
				continue
			} else if add := (named{literal: literal, says: true}); !has(e.named, add) {
				e.named = append(e.named, add)
			}
			break
		}
	}
	if len(e.named) > 1 {
		e.named[0].says, e.named[0].text = true, true
	}
	return nil
}

func has(list []named, n named) bool {
	for _, x := range list {
		if x.literal == n.literal {
			return true
		}
	}
	return false
}
