package toolcall

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// objects is the state of a call that is an object with a name and arguments.
type objects struct {
	objectScanner
	name   []byte // as it is written
	args   []byte // while the name is not known, or they are a string
	begun  bool   // there are arguments
	whole  bool   // they are a string, and wait for its end
	opened bool
}

// headKeys are those that may stand before the name of a call that nothing else marks
// as one.
var headKeys = []string{"type", "name", "function"}

// inObject reads within a call that is an object.
func inObject(p *Parser, _ bool) bool {
	o := &p.object
	var send []byte // arguments
	n := 0
	for n < len(p.held) && o.at != afterObject && o.at != broken {
		b := p.held[n]
		n++
		ev := o.next(b)
		if ev == valueByte && p.format.unmarked && !o.opened && !slices.Contains(headKeys, string(o.key)) {
			o.at = broken // an object of another kind
			break
		}
		switch string(o.key) {
		case "name", "function":
			if ev == valueByte || ev == valueEnd {
				o.name = append(o.name, b)
			}
			if ev == valueEnd && !o.opened && !p.openObject() {
				o.at = broken
			}
		case "arguments", "parameters":
			switch {
			case ev == nothing || ev == valueEnded:
				continue
			case !o.begun:
				o.begun, o.whole = true, b == '"'
			}
			if o.opened && !o.whole {
				send = append(send, b)
				continue
			}
			if o.args = append(o.args, b); ev == valueEnd && o.opened {
				p.late()
			}
		}
	}
	if o.opened {
		p.arguments(string(send))
		p.held = p.held[n:]
	} else {
		p.take(n)
	}
	switch {
	case o.at != broken && o.at != afterObject:
		return false
	case !o.opened:
		p.fail()
	case !o.begun:
		p.arguments("{}")
		fallthrough
	default:
		p.after()
	}
	return true
}

// openObject begins the call when its name is complete. False: it can be none.
func (p *Parser) openObject() bool {
	o := &p.object
	name, ok := textOf(o.name)
	if !ok || p.format.unmarked && len(o.name) != len(name)+len(`""`) || !p.open(name) {
		return false
	}
	o.opened = true
	p.late()
	return true
}

// late sends arguments that came before the name, or were written as a string.
func (p *Parser) late() {
	o := &p.object
	args := string(o.args)
	if s, ok := textOf(o.args); ok {
		args = s
	}
	p.arguments(args)
	o.args = nil
}

// after goes on after an object.
func (p *Parser) after() {
	p.object, p.raw, p.state = objects{}, p.raw[:0], inText
	if p.listed {
		p.state = inList
	}
}

// inList reads between the calls of a list.
func inList(p *Parser, _ bool) bool {
	rest := strings.TrimLeft(p.held, " \t\r\n,")
	p.held = rest
	switch {
	case rest == "":
		return false
	case rest[0] == '{':
		p.state = inObject
	default:
		p.listed, p.state = false, inText
		p.held = strings.TrimPrefix(rest, "]")
	}
	return true
}

const (
	functionMark    = "<function="
	functionEnd     = "</function>"
	parameterMark   = "<parameter="
	parameterEnd    = "</parameter>"
	toolCallEndMark = "</tool_call>"
)

// inElement reads after the mark of a call, before its function.
func inElement(p *Parser, last bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n")
	p.take(len(p.held) - len(head))
	switch {
	case strings.HasPrefix(head, functionMark):
		p.take(len(functionMark))
		p.state = inName
	case strings.HasPrefix(head, "{"): // as its elder siblings write
		p.state = inObject
	case strings.HasPrefix(functionMark, head) && !last:
		return false
	default:
		p.fail()
	}
	return true
}

// inName reads within the name of a function.
func inName(p *Parser, last bool) bool {
	at := strings.IndexByte(p.held, '>')
	if at < 0 && len(p.held) <= maxName && !last {
		return false
	}
	if at < 0 || !p.open(strings.TrimSpace(p.held[:at])) {
		p.fail()
		return true
	}
	p.held, p.state = p.held[at+1:], inParameters
	p.arguments("{")
	return true
}

// inParameters reads within a function, between its parameters. One is read when it is
// complete.
func inParameters(p *Parser, last bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n")
	end := strings.HasPrefix(head, functionEnd) || strings.HasPrefix(head, toolCallEndMark)
	if end || last && head == "" {
		p.arguments("}")
		p.held, p.state = strings.TrimPrefix(head, functionEnd), inText
		p.object = objects{}
		return true
	}
	if !strings.HasPrefix(head, parameterMark) {
		if at := strings.IndexByte(head[min(1, len(head)):], '<'); at >= 0 { // something else: it is passed over
			p.held = head[at+1:]
			return true
		}
		if last {
			p.held, p.state = "", inText
		}
		return false
	}
	name, value, ok := strings.Cut(head[len(parameterMark):], ">")
	if !ok {
		return p.cutOff(last)
	}
	to, skip := valueEnds(value, last)
	if to < 0 {
		return p.cutOff(last)
	}
	var b bytes.Buffer
	if p.object.begun {
		b.WriteString(", ")
	}
	p.object.begun = true
	key, _ := json.Marshal(name)
	b.Write(key)
	b.WriteString(": ")
	b.Write(p.element(name, value[:to]))
	p.arguments(b.String())
	p.held = value[to+skip:]
	return true
}

// valueEnds returns where a parameter's value ends, and the length of the mark that ends it;
// -1: not yet. A value may hold the end of a function, unless a call ends with it.
func valueEnds(value string, last bool) (to, skip int) {
	for at := 0; ; {
		end := strings.Index(value[at:], "</")
		if end < 0 {
			return -1, 0
		}
		at += end
		rest := value[at:]
		if strings.HasPrefix(rest, parameterEnd) {
			return at, len(parameterEnd)
		}
		if behind, ok := strings.CutPrefix(rest, functionEnd); ok {
			behind = strings.TrimLeft(behind, " \t\r\n")
			switch {
			case strings.HasPrefix(behind, toolCallEndMark), last && strings.HasPrefix(toolCallEndMark, behind):
				return at, 0
			case strings.HasPrefix(toolCallEndMark, behind):
				return -1, 0
			}
		}
		at += len("</")
	}
}

// cutOff waits for the rest of a parameter, or gives it up where there is none.
func (p *Parser) cutOff(last bool) bool {
	if last {
		p.held, p.state = "", inText
	}
	return last
}

// element returns a parameter's value as JSON: text for those that are text, else what it
// is if it is JSON.
func (p *Parser) element(name, value string) []byte {
	value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
	text := p.tool == nil || p.tool.Text == nil || p.tool.Text(name)
	if trimmed := strings.TrimSpace(value); !text && json.Valid([]byte(trimmed)) {
		return []byte(trimmed)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // a string
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
