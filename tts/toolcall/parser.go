// Package toolcall reads calls of tools out of the text that a model writes, as it
// comes. How a model writes them, its Format, is seen from what its chat template makes
// of a few.
package toolcall

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lutra-lm/lutra/models/template"
)

// Part is a piece of a message: text, or something of a call.
type Part struct {
	Text      string
	Reasoning string // of formats that write it on a channel of its own
	Call      *Call
}

// Call is a piece of a call. The pieces of one come one after the other; the first
// has the name, and the arguments of all make one JSON object.
type Call struct {
	Index     int    // among the calls of the message
	ID        string // with the name
	Name      string
	Arguments string
}

// Join adds a piece of a call to the calls of its message so far; nil is none.
func Join(calls []Call, piece *Call) []Call {
	switch {
	case piece == nil:
	case piece.Index == len(calls):
		calls = append(calls, *piece)
	default:
		calls[piece.Index].Arguments += piece.Arguments
	}
	return calls
}

// Parser divides one message as it comes. What turns out to be no call is text.
type Parser struct {
	format *Format
	tools  []Tool
	state  state
	held   string  // not divided yet
	out    []Part  // of the push under way
	calls  int     // begun
	tool   *Tool   // of the call under way; nil: none that is known
	raw    []byte  // of the call under way, while it may still be none
	object objects // of the call under way
	marked marked  // the same, of arguments that are written so

	from      int  // the length of held where an opening was found last
	passed    bool // that opening began no call
	listed    bool // in a list of calls
	begun     bool // there was text since the last call, or from the beginning
	reasoning bool // the text is reasoning
}

// state is a part of the text that a parser is within. It takes something from held and tells whether there
// may be more to take.
type state func(p *Parser, last bool) bool

// NewParser reads a message in this format, of a model that may call these tools.
func (f *Format) NewParser(tools []Tool) *Parser {
	p := &Parser{format: f, tools: tools, state: inText}
	if f.first != nil {
		p.state = f.first
	}
	return p
}

// Push takes more text; last says that it is all. The parts are valid until the
// next Push.
func (p *Parser) Push(text string, last bool) []Part {
	p.held += text
	p.out = p.out[:0]
	for p.state(p, last) {
	}
	if last {
		p.finish()
	}
	return p.out
}

// Calls returns the number of calls so far.
func (p *Parser) Calls() int { return p.calls }

// Undecided reports whether what came last may yet turn out to be a call.
func (p *Parser) Undecided() bool { return len(p.raw) > 0 || strings.TrimSpace(p.held) != "" }

// Clone returns a parser that goes on from here on its own.
func (p *Parser) Clone() *Parser {
	c, o := *p, &p.object
	c.out, c.raw = nil, slices.Clone(p.raw)
	c.object.key, c.object.name, c.object.args = slices.Clone(o.key), slices.Clone(o.name), slices.Clone(o.args)
	return &c
}

// finish ends the message.
func (p *Parser) finish() {
	if len(p.raw) > 0 {
		p.fail()
	}
	p.text(p.held)
	p.held = ""
}

// text adds text to the message.
func (p *Parser) text(s string) {
	if !p.begun {
		s = strings.TrimLeft(s, " \t\r\n")
	}
	if s == "" {
		return
	}
	p.begun = true
	part := Part{Text: s}
	if p.reasoning {
		part = Part{Reasoning: s}
	}
	p.out = append(p.out, part)
}

// take moves n bytes of held into raw.
func (p *Parser) take(n int) string {
	s := p.held[:n]
	p.raw, p.held = append(p.raw, s...), p.held[n:]
	return s
}

// fail makes text of what looked like a call.
func (p *Parser) fail() {
	raw := string(p.raw)
	p.raw, p.state, p.passed = p.raw[:0], inText, raw == "" && len(p.held) == p.from
	p.text(raw)
}

// open begins a call, if a tool can have the name.
func (p *Parser) open(name string) bool {
	if !ValidName(name) {
		return false
	}
	p.tool = nil
	if i := slices.IndexFunc(p.tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
		p.tool = &p.tools[i]
	} else if p.format.unmarked {
		return false // an object or a line that is no call
	}
	p.raw, p.begun = p.raw[:0], false
	p.out = append(p.out, Part{Call: &Call{Index: p.calls, ID: p.format.id(p.calls, name), Name: name}})
	p.calls++
	return true
}

// arguments adds to the arguments of the current call.
func (p *Parser) arguments(s string) {
	if s == "" {
		return
	}
	if n := len(p.out); n > 0 && p.out[n-1].Call != nil {
		p.out[n-1].Call.Arguments += s
		return
	}
	p.out = append(p.out, Part{Call: &Call{Index: p.calls - 1, Arguments: s}})
}

// maxName bounds names of functions, as OpenAI does, and a call's head.
const (
	maxName = 64
	maxHead = 512
)

// ValidName tells whether a function can have this name.
func ValidName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
}

// cuts are texts that may stand for the rest of a character within which a message ends, and their beginnings.
var cuts = func() (list []string) {
	const most = "\uFFFD\uFFFD"
	for n := range len(most) + 1 {
		list = append(list, most[:n])
	}
	return list
}()

// mark finds the first of the format's marks and openings in held. partial is how
// many bytes at held's end may begin one; last says that nothing follows them.
func (p *Parser) mark(last bool) (at int, mark string, opens bool, partial int) {
	at = -1
	look := func(list []string, opening bool) {
		for _, m := range list {
			if i := strings.Index(p.held, m); i >= 0 && (at < 0 || i < at || i == at && len(m) > len(mark)) {
				at, mark, opens = i, m, opening
			}
			for _, cut := range cuts {
				rest, ok := strings.CutSuffix(p.held, cut)
				for n := min(len(m)-1, len(rest)); ok && n > 0 && n+len(cut) > partial; n-- {
					if strings.HasSuffix(rest, m[:n]) {
						partial = n + len(cut)
					}
				}
			}
		}
	}
	look(p.format.Marks, false)
	look(p.format.opens, true)
	if at >= 0 && !last && slices.ContainsFunc(p.format.opens, func(o string) bool { return len(o) > len(mark) && strings.HasPrefix(o, p.held[at:]) }) {
		return -1, "", false, max(partial, len(p.held)-at) // it may begin what opens
	}
	return at, mark, opens || slices.Contains(p.format.opens, mark), partial
}

// beginsMark tells whether held is a mark of the format that has been cut off, maybe
// within a character.
func (p *Parser) beginsMark() bool {
	held := strings.TrimLeft(p.held, " \t\r\n")
	return slices.ContainsFunc(slices.Concat(p.format.Marks, p.format.opens), func(m string) bool {
		return slices.ContainsFunc(cuts, func(cut string) bool {
			begun, ok := strings.CutSuffix(held, cut)
			return ok && begun != "" && strings.HasPrefix(m, begun)
		})
	})
}

// inText reads within text.
func inText(p *Parser, last bool) bool {
	if p.format.lead != nil && !p.begun && !p.behindLead(last) {
		return false
	}
	passed := p.passed
	p.passed = false
	if p.format.bare != "" && !p.begun && !passed {
		head := strings.TrimLeft(p.held, " \t\r\n;,")
		switch {
		case head == "" && !last:
			return false
		case strings.HasPrefix(head, p.format.bare):
			p.take(len(p.held) - len(head))
			p.from, p.object = len(p.held), objects{}
			p.state = inCall
			return true
		}
	}
	at, mark, opens, partial := p.mark(last)
	if passed && at == 0 && opens {
		p.text(mark)
		p.held = p.held[len(mark):]
		return true
	}
	if at < 0 {
		n := len(strings.TrimRight(p.held[:len(p.held)-partial], " \t\r\n"))
		switch {
		case last && p.calls > 0 && !p.begun && p.beginsMark():
			p.held, n = "", 0
		case last:
			n = len(p.held)
		}
		p.text(p.held[:n])
		p.held = p.held[n:]
		return false
	}
	p.text(strings.TrimRight(p.held[:at], " \t\r\n"))
	p.held = p.held[at:]
	if !opens {
		p.held, p.begun = p.held[len(mark):], false
		return true
	}
	p.from = len(p.held)
	p.take(len(mark))
	p.object, p.reasoning = objects{}, false
	if next := p.format.enter(p, mark); next != nil {
		p.state = next
	} else {
		p.raw = p.raw[:0]
	}
	return true
}

// behindLead passes over the words that name whom a part is for. False: they may go on.
func (p *Parser) behindLead(last bool) bool {
	const space = " \t\r\n"
	l, held := p.format.lead, strings.TrimLeft(p.held, space)
	may := func(words, held string) bool { return !last && strings.HasPrefix(words, held) }
	if may(l.word, held) || may(l.before, held) {
		return false
	}
	held, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimPrefix(held, l.word), space), l.before)
	if !ok {
		return !may(l.before, held)
	}
	n := nameLength(held)
	if behind, ok := strings.CutPrefix(held[n:], l.after); ok {
		p.held = behind
		return true
	}
	return n > maxName || !may(l.after, held[n:])
}

// inTail reads after a call whose end has a mark.
func inTail(p *Parser, last bool) bool {
	at, _, _, partial := p.mark(last)
	if at < 0 {
		if p.held = p.held[len(p.held)-partial:]; last {
			p.held = ""
		}
		return false
	}
	p.held, p.state = p.held[at:], inText
	return true
}

// inCall reads after the mark that begins a call, or a list of them.
func inCall(p *Parser, _ bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n")
	p.take(len(p.held) - len(head))
	f := &p.format.form
	switch {
	case head == "":
		return false
	case head[0] == '[' && !p.listed:
		p.listed = true
		p.take(1)
	case head[0] == '{':
		p.listed = p.listed || f.objects.whole && len(template.Marks(f.begin)) == 0 // as the mark says that is before them
		p.state = inObject
	case f.arguments == elementKind:
		p.state = inElementName
	case f.arguments == markedKind:
		p.state = inMarkedName
	case f.arguments == pythonKind:
		p.state = inPython
	case f.objects.whole:
		p.fail()
	default:
		p.state = inHeader
	}
	return true
}

// inHeader reads before the arguments of a call, which begin with a brace.
func inHeader(p *Parser, _ bool) bool {
	at := strings.IndexByte(p.held, '{')
	if at > maxHead || at < 0 && len(p.held) > maxHead {
		p.fail()
		return true
	}
	if at < 0 {
		return false
	}
	if !p.open(p.format.nameIn(p.take(at))) {
		p.fail()
		return true
	}
	p.state = inArguments
	return true
}

// nameIn returns the function's name in a call's head.
func (f *Format) nameIn(head string) string {
	if _, behind, ok := strings.Cut(head, f.nameMark); ok {
		head = behind
	}
	head = strings.TrimPrefix(strings.TrimLeft(head, " \t\r\n"), "functions.")
	return head[:nameLength(head)]
}

// inArguments reads within an object that is a call's arguments.
func inArguments(p *Parser, _ bool) bool {
	s := &p.object.objectScanner
	for i := range len(p.held) {
		if s.at != inValue {
			*s = objectScanner{at: inValue}
		}
		if s.value(p.held[i]) == valueEnd {
			p.arguments(p.held[:i+1])
			p.held, p.state = p.held[i+1:], inTail
			*s = objectScanner{}
			return true
		}
	}
	p.arguments(p.held)
	p.held = ""
	return false
}

// inRecipient reads within the line that names who a part is for.
func inRecipient(p *Parser, last bool) bool {
	at := strings.IndexByte(p.held, '\n')
	if at < 0 && len(p.held) <= maxName && !last {
		return false
	}
	name, brace, all := "", false, strings.TrimSpace(p.format.form.all)
	if at >= 0 {
		name = strings.TrimSpace(p.held[:at])
		rest := strings.TrimLeft(p.held[at:], " \t\r\n")
		if rest == "" && !last && name != all {
			return false
		}
		brace = strings.HasPrefix(rest, "{")
	}
	if name == all && all != "" {
		p.raw, p.held, p.state = p.raw[:0], p.held[at+1:], inText
		return true
	}
	if !brace || !p.open(name) {
		p.fail()
		return true
	}
	p.held, p.state = strings.TrimLeft(p.held[at:], " \t\r\n"), inArguments
	return true
}

// text of JSON is what a string in it says; false: it is no string.
func textOf(raw []byte) (s string, ok bool) {
	return s, json.Unmarshal(raw, &s) == nil
}
