package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
)

// inElementName reads within a call whose arguments are elements, up to the end of its name.
func inElementName(p *Parser, last bool) bool {
	f := &p.format.form
	rest := p.held
	if mark := p.format.nameMark; mark != "" {
		switch {
		case strings.HasPrefix(rest, mark):
			rest = rest[len(mark):]
		case strings.HasPrefix(mark, rest) && !last:
			return false
		default:
			p.fail()
			return true
		}
	}
	name := strings.TrimLeft(rest, " \t\r\n")
	name = name[:nameLength(name)]
	behind := strings.TrimLeft(strings.TrimLeft(rest, " \t\r\n")[len(name):], " \t\r\n")
	after := []string{strings.TrimSpace(f.middle)}
	if at := strings.Index(after[0], holeIndex); at >= 0 {
		after[0] = after[0][:at]
	}
	if after[0] == "" {
		after = append(template.Marks(f.end), f.elements.open)
	}
	found, partial := "", false
	for _, a := range after {
		switch {
		case a != "" && strings.HasPrefix(behind, a):
			found = a
		case strings.HasPrefix(a, behind):
			partial = true
		}
	}
	if found == "" && partial && !last && len(name) <= maxName {
		return false
	}
	if found == "" || !p.open(name) {
		p.take(len(p.held) - len(rest))
		p.fail()
		return true
	}
	p.held, p.state = behind, inParameters
	if strings.TrimSpace(f.middle) != "" {
		p.held = behind[len(found):]
	}
	p.arguments("{")
	return true
}

// nameLength returns how many bytes at the beginning of a text may be a function's name.
func nameLength(text string) int {
	for i := range len(text) {
		if !ValidName(text[i : i+1]) {
			return i
		}
	}
	return len(text)
}

// inParameters reads within a call, between its arguments. One is read when it is complete.
func inParameters(p *Parser, last bool) bool {
	e := &p.format.form.elements
	head := strings.TrimLeft(p.held, " \t\r\n")
	ends := template.Marks(p.format.form.end)
	end := slices.IndexFunc(ends, func(m string) bool { return strings.HasPrefix(head, m) })
	if end < 0 && last && head == "" && !p.object.begun { // cut off
		p.held, p.state = "", inText
		return false
	}
	if end >= 0 || last && head == "" {
		p.arguments("}")
		p.state, p.object = inText, objects{}
		if p.held = head; end >= 0 {
			p.held = head[len(ends[end]):]
		}
		return true
	}
	if !strings.HasPrefix(head, e.open) {
		begins := func(mark string) bool { return strings.HasPrefix(mark, head) }
		if !last && (begins(e.open) || slices.ContainsFunc(ends, begins)) {
			return false
		}
		if at := strings.IndexAny(head[min(1, len(head)):], e.open[:1]+ends[0][:1]); at >= 0 { // something else: it is passed over
			p.held = head[at+1:]
			return true
		}
		p.held = ""
		return last // what is at its end now
	}
	head = head[len(e.open):]
	at, n, which := p.format.naming(head)
	if at < 0 {
		return p.cutOff(last)
	}
	name, value := head[:at], head[at+n:]
	to, skip := p.format.valueEnds(value, last)
	if to < 0 {
		return p.cutOff(last)
	}
	p.argument(name, p.element(name, value[:to], which))
	p.held = value[to+skip:]
	return true
}

// argument adds one whole argument to the current call.
func (p *Parser) argument(name string, value []byte) {
	var b bytes.Buffer
	if p.object.begun {
		b.WriteString(", ")
	}
	p.object.begun = true
	b.Write(jsonText(name))
	b.WriteString(": ")
	b.Write(value)
	p.arguments(b.String())
}

// naming finds what stands between an argument's name and its value. at < 0: it is not there yet.
func (f *Format) naming(head string) (at, n int, found *named) {
	at = -1
	list := f.form.elements.named
	for i := range list {
		if from, length := looseIndex(head, list[i].literal); from >= 0 && (at < 0 || from < at) {
			at, n, found = from, length, &list[i]
		}
	}
	return at, n, found
}

// looseIndex finds a literal in a text, whatever white space stands where the literal has some; behind
// it the text has what it has.
func looseIndex(text, literal string) (at, n int) {
	fields := strings.Fields(literal)
	for from := 0; len(fields) > 0; from++ {
		i := strings.Index(text[from:], fields[0])
		if i < 0 {
			return -1, 0
		}
		from += i
		rest, ok := text[from+len(fields[0]):], true
		for _, f := range fields[1:] {
			if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), f); !ok {
				break
			}
		}
		if ok {
			return from, len(text) - from - len(rest)
		}
	}
	return -1, 0
}

// valueEnds returns where an argument's value ends, and the length of the mark that ends it;
// -1: not yet. A value may hold the end of a function, unless a call ends with it.
func (f *Format) valueEnds(value string, last bool) (to, skip int) {
	mark, ends := strings.TrimSpace(f.form.elements.close), template.Marks(f.form.end)
	at := 0
	if inside := strings.TrimLeft(value, " \t\r\n"); strings.HasPrefix(inside, cdata) {
		end := strings.Index(inside, cdataEnd)
		if end < 0 {
			return -1, 0
		}
		at = len(value) - len(inside) + end
	}
	for {
		end := strings.IndexAny(value[at:], mark[:1]+ends[0][:1])
		if end < 0 {
			return -1, 0
		}
		at += end
		rest := value[at:]
		if strings.HasPrefix(rest, mark) {
			return at, len(mark)
		}
		if behind, ok := strings.CutPrefix(rest, ends[0]); ok && len(ends) > 1 {
			behind = strings.TrimLeft(behind, " \t\r\n")
			switch {
			case strings.HasPrefix(behind, ends[1]), last && strings.HasPrefix(ends[1], behind):
				return at, 0
			case strings.HasPrefix(ends[1], behind):
				return -1, 0
			}
		}
		at++
	}
}

// cutOff waits for the rest of an argument, or gives it up where there is none.
func (p *Parser) cutOff(last bool) bool {
	if last {
		p.held, p.state = "", inText
	}
	return last
}

// XML writes text between cdata and cdataEnd that is not to be read as XML.
const cdata, cdataEnd = "<![CDATA[", "]]>"

// element returns an argument's value as JSON: text for those that are text, else what it
// is if it is JSON, or Python.
func (p *Parser) element(name, value string, by *named) []byte {
	e := &p.format.form.elements
	value = strings.TrimPrefix(value, by.literal[len(strings.TrimRight(by.literal, " \t\r\n")):])
	value = strings.TrimSuffix(value, e.close[:len(e.close)-len(strings.TrimLeft(e.close, " \t\r\n"))])
	text := p.tool == nil || p.tool.Text == nil || p.tool.Text(name)
	if by.says {
		text = by.text
	}
	if inside, ok := strings.CutPrefix(strings.TrimSpace(value), cdata); ok && strings.HasSuffix(inside, cdataEnd) {
		value, text = strings.TrimSuffix(inside, cdataEnd), true
	}
	if trimmed := strings.TrimSpace(value); !text {
		if json.Valid([]byte(trimmed)) {
			return []byte(trimmed)
		}
		if v, ok := fromPython(trimmed); ok {
			return []byte(v)
		}
	}
	return jsonText(value)
}

// jsonText writes a string as JSON.
func jsonText(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// write writes arguments, a JSON object, as elements: what is none stays as it is.
func (e *element) write(arguments string) string {
	list, ok := members(arguments)
	if !ok {
		return arguments
	}
	var b strings.Builder
	for i, m := range list {
		if i > 0 {
			b.WriteString(e.between)
		}
		text, isText := textOf(m.value)
		by := e.named[0]
		for _, n := range e.named {
			if n.says && n.text == isText {
				by = n
				break
			}
		}
		b.WriteString(e.open + m.name + by.literal)
		if isText {
			b.WriteString(text)
		} else {
			b.Write(m.value)
		}
		b.WriteString(e.close)
	}
	return b.String()
}

// member is one of an object.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the members of a JSON object in their order.
func members(object string) (list []member, ok bool) {
	d := json.NewDecoder(strings.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := member{}
		if m.name, ok = name.(string); !ok || d.Decode(&m.value) != nil {
			return nil, false
		}
		list = append(list, m)
	}
	_, err := d.Token()
	return list, err == nil
}
