package toolcall

import (
	"encoding/json"
	"fmt"
	"strings"
)

// marked is the state of arguments that become JSON as they arrive. Objects have no quotes around names of
// properties, and strings stand between marks, within which nothing is escaped, as in Gemma 4:
//
//	<|tool_call>call:NAME{city:<|"|>Berlin<|"|>,days:3,near:[true]}<tool_call|>
type marked struct {
	quote  string // the mark
	open   string // the braces and brackets that values are within
	at     markedState
	quoted bool // the string or name under way is between quotes, with escapes
	behind bool // something stands before the next member or item
	inKey  bool // the string under way is a property's name
}

type markedState uint8

const (
	markedValue markedState = iota // or the end of a list
	markedKey                      // or the end of an object
	markedColon
	markedText
	markedAfter
)

// mostMarked bounds how deep values are nested, and the bytes of a name, a number or a word.
const mostMarked = 256

// inMarkedName reads after the mark of a call, up to its arguments.
func inMarkedName(p *Parser, last bool) bool {
	at := strings.IndexByte(p.held, '{')
	if at < 0 && len(p.held) <= maxHead && !last {
		return false
	}
	if at < 0 || at > maxHead || !p.open(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(p.held[:at]), p.format.nameMark))) {
		p.fail()
		return true
	}
	p.held, p.state, p.marked = p.held[at:], inMarked, marked{quote: p.format.form.quote}
	return true
}

// inMarked reads within arguments.
func inMarked(p *Parser, last bool) bool {
	var b strings.Builder
	m := &p.marked
	ended := false
	for more := true; more && p.held != "" && !ended; {
		more = m.take(&p.held, &b, last)
		ended = m.at == markedAfter && len(m.open) == 0
	}
	p.arguments(b.String())
	if ended {
		p.state = inTail
		return true
	}
	if last {
		p.held = ""
	}
	return false
}

// take moves something of held to b as JSON; false: what is held may go on.
func (m *marked) take(held *string, b *strings.Builder, last bool) bool {
	if m.at == markedText {
		return m.text(held, b, last)
	}
	rest := strings.TrimLeft(*held, " \t\r\n")
	if *held = rest; rest == "" {
		return false
	}
	switch c := rest[0]; {
	case strings.HasPrefix(m.quote, rest) && len(rest) < len(m.quote): // of what is cut off, too
		return false
	case m.at == markedColon:
		if c == ':' {
			b.WriteString(": ")
			m.at = markedValue
		}
		*held = rest[1:]
	case c == '}' || c == ']':
		*held = rest[1:]
		m.close(b)
	case m.at == markedAfter:
		if c == ',' {
			if m.at = markedValue; m.open[len(m.open)-1] == '{' {
				m.at = markedKey
			}
		}
		*held = rest[1:]
	case c == '"' || strings.HasPrefix(rest, m.quote):
		if m.begin(b); c == '"' {
			*held, m.quoted = rest[1:], true
		} else {
			*held, m.quoted = rest[len(m.quote):], false
		}
		b.WriteByte('"')
		m.inKey, m.at = m.at == markedKey, markedText
	case m.at == markedKey:
		return m.name(held, b, last)
	case c == '{' || c == '[':
		if len(m.open) == mostMarked {
			*held = rest[1:]
			return true
		}
		m.begin(b)
		b.WriteByte(c)
		m.open, m.behind = m.open+string(c), false
		if *held = rest[1:]; c == '{' {
			m.at = markedKey
		}
	default:
		return m.word(held, b, last)
	}
	return true
}

// begin writes what stands between members or items.
func (m *marked) begin(b *strings.Builder) {
	if m.behind && (m.at == markedKey || len(m.open) > 0 && m.open[len(m.open)-1] == '[') {
		b.WriteString(", ")
	}
	m.behind = true
}

// close ends the innermost object or list: with whichever end.
func (m *marked) close(b *strings.Builder) {
	if len(m.open) == 0 {
		return
	}
	if m.at == markedValue && m.behind && m.open[len(m.open)-1] == '{' { // a property without a value
		b.WriteString("null")
	}
	b.WriteByte(m.open[len(m.open)-1] + 2) // } or ]
	m.open, m.at, m.behind = m.open[:len(m.open)-1], markedAfter, true
}

// text takes what is within a string.
func (m *marked) text(held *string, b *strings.Builder, last bool) bool {
	end := m.quote
	if m.quoted {
		end = `"`
	}
	at := strings.Index(*held, end)
	if m.quoted {
		at = closingQuote(*held)
	}
	value, whole := *held, at >= 0
	switch {
	case whole:
		value = value[:at]
	case !last && m.quoted && strings.HasSuffix(value, `\`):
		value = value[:len(value)-1]
	case !m.quoted: // of what is cut off, too
		n := min(len(end)-1, len(value))
		for n > 0 && !strings.HasSuffix(value, end[:n]) {
			n--
		}
		value = value[:len(value)-n]
	}
	if m.quoted {
		b.WriteString(value)
	} else {
		writeEscaped(b, value)
	}
	if *held = (*held)[len(value):]; !whole {
		return false
	}
	*held = (*held)[len(end):]
	b.WriteByte('"')
	if m.at = markedAfter; m.inKey {
		m.at = markedColon
	}
	return true
}

// closingQuote finds the quote that ends a string of JSON; -1: it is not there.
func closingQuote(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// name takes a property's name, which ends with a colon.
func (m *marked) name(held *string, b *strings.Builder, last bool) bool {
	at := strings.IndexByte((*held)[:min(len(*held), mostMarked)], ':')
	if at < 0 && len(*held) < mostMarked && !last {
		return false
	}
	if at < 0 { // none
		*held = (*held)[1:]
		return true
	}
	m.begin(b)
	b.WriteByte('"')
	writeEscaped(b, strings.TrimSpace((*held)[:at]))
	b.WriteByte('"')
	*held, m.at = (*held)[at:], markedColon
	return true
}

// word takes a number or a word: what JSON does not know becomes a string.
func (m *marked) word(held *string, b *strings.Builder, last bool) bool {
	most := min(len(*held), mostMarked)
	at := strings.IndexAny((*held)[:most], ",}] \t\r\n")
	if at < 0 && len(*held) < mostMarked && !last {
		return false
	}
	if at < 0 && last && !json.Valid([]byte(*held)) { // cut off in the midst of true, or of a number
		return false
	}
	if at < 0 {
		at = most
	}
	m.begin(b)
	value := (*held)[:max(at, 1)]
	*held, m.at = (*held)[len(value):], markedAfter
	if word, ok := pythonWords[value]; ok {
		value = word
	}
	if json.Valid([]byte(value)) {
		b.WriteString(value)
		return true
	}
	b.WriteByte('"')
	writeEscaped(b, value)
	b.WriteByte('"')
	return true
}

// writeEscaped writes a part of a string, maybe of a character, as JSON has it.
func writeEscaped(b *strings.Builder, s string) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.Write([]byte{'\\', c})
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ':
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
}

// writeMarked writes arguments, a JSON object, with a mark around strings: what is none stays as it is.
func writeMarked(quote, arguments string) string {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var b strings.Builder
	if writeMarkedValue(&b, quote, d) != nil {
		return arguments
	}
	return b.String()
}

func writeMarkedValue(b *strings.Builder, quote string, d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	var open json.Delim
	switch t := token.(type) {
	case json.Delim:
		open = t
		b.WriteString(t.String())
	case string:
		b.WriteString(quote + t + quote)
		return nil
	case nil:
		b.WriteString("null")
		return nil
	default:
		fmt.Fprint(b, t)
		return nil
	}
	for i := 0; d.More(); i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "%s:", name)
		}
		if err := writeMarkedValue(b, quote, d); err != nil {
			return err
		}
	}
	end, err := d.Token()
	fmt.Fprint(b, end)
	return err
}
