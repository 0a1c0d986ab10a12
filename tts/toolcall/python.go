package toolcall

import (
	"encoding/json"
	"strings"
)

// Arguments of calls in Python are by keyword, and become JSON one after the other:
//
//	[NAME(city="Berlin", days=3, near=[True, None])]

// inPython reads before a call.
func inPython(p *Parser, last bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n")
	n := nameLength(head)
	behind := strings.TrimLeft(head[n:], " \t\r\n")
	if behind == "" && n <= maxName && !last {
		return false
	}
	p.take(len(p.held) - len(behind))
	if !strings.HasPrefix(behind, "(") || !p.open(head[:n]) {
		p.fail()
		return true
	}
	p.arguments("{")
	p.held, p.state = behind[1:], inKeywords
	return true
}

// inKeywords reads within a call, between its arguments.
func inKeywords(p *Parser, last bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n,")
	switch {
	case head == "":
		if p.held = ""; last {
			p.state, p.object = inText, objects{}
		}
		return false
	case head[0] == ')':
		p.arguments("}")
		p.object, p.held, p.state = objects{}, head[1:], inNextPython
		return true
	}
	at := strings.IndexAny(head, "=,)")
	if at < 0 && len(head) <= maxHead && !last {
		return false
	}
	if at < 0 {
		p.held, p.state, p.object = "", inText, objects{}
		return false
	}
	value := head[at:]
	if value[0] != '=' { // it has no name
		p.held = value
		return true
	}
	n := pythonEnd(value[1:])
	if n < 0 {
		return p.cutOff(last)
	}
	literal := strings.TrimSpace(value[1 : 1+n])
	written, ok := fromPython(literal)
	if !ok {
		written = string(jsonText(literal))
	}
	p.argument(strings.TrimSpace(head[:at]), []byte(written))
	p.held = value[1+n:]
	return true
}

// inNextPython reads behind a call.
func inNextPython(p *Parser, last bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n")
	switch {
	case head == "":
		p.held = ""
		return false
	case p.listed && head[0] == ',':
		p.held, p.state = head[1:], inPython
	case p.listed && head[0] == ']':
		p.listed, p.held, p.state = false, head[1:], inText
	case !p.listed && strings.TrimSpace(p.format.form.between) == "" && nameLength(head) > 0: // or a line each
		p.held, p.state = head, inPython
	default:
		p.listed, p.held, p.state = false, head, inText
	}
	return true
}

// pythonEnd returns where a value ends, before a comma or a bracket that is not its own; -1: not yet.
// Templates do not escape quotes within strings: a string ends with the quote behind which a value may
// end.
func pythonEnd(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\'':
			n := stringEnd(s[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case depth == 0 && (c == ',' || c == ')' || c == ']' || c == '}'):
			return i
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		}
	}
	return -1
}

// stringEnd returns the length of the string that begins s, or -1 if more text is needed to tell.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			switch behind := strings.TrimLeft(s[i+1:], " \t\r\n"); {
			case behind == "":
				return -1
			case strings.ContainsRune(",)]}:", rune(behind[0])):
				return i + 1
			}
		}
	}
	return -1
}

// fromPython writes a value of Python, or of JSON, as JSON. False: it is none.
func fromPython(s string) (string, bool) {
	var b strings.Builder
	r := pythonReader{rest: s + ")"}
	if !r.value(&b, 0) || strings.TrimSpace(r.rest) != ")" {
		return "", false
	}
	return b.String(), true
}

// pythonReader reads values.
type pythonReader struct{ rest string }

// pythonWords are the words that JSON writes otherwise.
var pythonWords = map[string]string{"True": "true", "False": "false", "None": "null"}

func (r *pythonReader) value(b *strings.Builder, depth int) bool {
	r.rest = strings.TrimLeft(r.rest, " \t\r\n")
	if r.rest == "" || depth > mostMarked {
		return false
	}
	switch c := r.rest[0]; c {
	case '"', '\'':
		n := stringEnd(r.rest)
		if n < 0 {
			return false
		}
		literal := r.rest[:n]
		if r.rest = r.rest[n:]; c == '"' && json.Valid([]byte(literal)) {
			b.WriteString(literal)
			return true
		}
		b.Write(jsonText(unescaped(literal[1 : n-1])))
		return true
	case '[', '(', '{':
		return r.container(b, c, depth)
	}
	n := strings.IndexAny(r.rest, ",)]}: \t\r\n")
	if n <= 0 {
		return false
	}
	word := r.rest[:n]
	if r.rest = r.rest[n:]; pythonWords[word] != "" {
		word = pythonWords[word]
	}
	b.WriteString(word)
	return json.Valid([]byte(word))
}

// container reads a list, a tuple or a dictionary.
func (r *pythonReader) container(b *strings.Builder, open byte, depth int) bool {
	ends := map[byte]byte{'[': ']', '(': ')', '{': '}'}[open]
	kind := byte('[')
	if open == '{' {
		kind = '{'
	}
	b.WriteByte(kind)
	r.rest = r.rest[1:]
	for first := true; ; first = false {
		r.rest = strings.TrimLeft(r.rest, " \t\r\n")
		if r.rest == "" {
			return false
		}
		if r.rest[0] == ends {
			r.rest = r.rest[1:]
			b.WriteByte(kind + 2) // ] or }
			return true
		}
		if !first {
			if r.rest[0] != ',' {
				return false
			}
			if r.rest = strings.TrimLeft(r.rest[1:], " \t\r\n"); r.rest != "" && r.rest[0] == ends {
				continue
			}
			b.WriteString(", ")
		}
		if open == '{' {
			if r.rest == "" || r.rest[0] != '"' && r.rest[0] != '\'' || !r.value(b, depth+1) {
				return false
			}
			r.rest = strings.TrimLeft(r.rest, " \t\r\n")
			if !strings.HasPrefix(r.rest, ":") {
				return false
			}
			r.rest = r.rest[1:]
			b.WriteString(": ")
		}
		if !r.value(b, depth+1) {
			return false
		}
	}
}

// unescaped reads what is between quotes: an escape that Python does not know stays.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '\\', '\'', '"':
			b.WriteByte(s[i])
		case 'u', 'x':
			n := map[byte]int{'u': 4, 'x': 2}[s[i]]
			text, ok := "", i+n < len(s)
			if ok {
				text, ok = textOf([]byte(`"\u` + strings.Repeat("0", 4-n) + s[i+1:i+1+n] + `"`))
			}
			if !ok {
				b.WriteString(s[i-1 : i+1])
				continue
			}
			b.WriteString(text)
			i += n
		default:
			b.WriteString(s[i-1 : i+1])
		}
	}
	return b.String()
}

// writePython writes arguments, a JSON object, by keyword: what is none stays as it is.
func writePython(arguments string) string {
	list, ok := members(arguments)
	if !ok {
		return arguments
	}
	parts := make([]string, len(list))
	for i, m := range list {
		parts[i] = m.name + "=" + toPython(m.value)
	}
	return strings.Join(parts, ", ")
}

// toPython writes a value of JSON as Python does.
func toPython(raw json.RawMessage) string {
	trimmed := strings.TrimSpace(string(raw))
	for word, same := range pythonWords {
		if trimmed == same {
			return word
		}
	}
	var parts []string
	switch {
	case strings.HasPrefix(trimmed, "["):
		var items []json.RawMessage
		_ = json.Unmarshal(raw, &items)
		for _, item := range items {
			parts = append(parts, toPython(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case strings.HasPrefix(trimmed, "{"):
		list, _ := members(trimmed)
		for _, m := range list {
			parts = append(parts, string(jsonText(m.name))+": "+toPython(m.value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return trimmed
}
