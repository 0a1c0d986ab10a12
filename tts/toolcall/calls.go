package toolcall

import "strings"

// objects is the state of a call that is an object with a name and arguments.
type objects struct {
	objectScanner
	name   []byte // as it is written
	args   []byte // while the name is not known, or they are a string
	begun  bool   // there are arguments
	whole  bool   // they are a string, and wait for its end
	opened bool
}

// part is a member of a call.
type part uint8

const (
	otherMember part = iota
	nameMember
	argumentsMember
	eitherMember // the name is its key
)

// member tells what a key of a call stands for: models mix up what templates show.
func (f *Format) member(key string) part {
	switch o := f.form.objects; {
	case o.whole && o.name == "":
		return eitherMember
	case key == "name" || key == "function" || o.name == key && key != "":
		return nameMember
	case key == "arguments" || key == "parameters" || o.arguments == key && key != "":
		return argumentsMember
	}
	return otherMember
}

// inObject reads within a call that is an object.
func inObject(p *Parser, _ bool) bool {
	o := &p.object
	var send []byte // arguments
	n := 0
	for n < len(p.held) && o.at != afterObject && o.at != broken {
		b := p.held[n]
		n++
		ev := o.next(b)
		is := false // b is sent
		switch p.format.member(string(o.key)) {
		case otherMember:
			if ev == valueByte && p.format.unmarked && !o.opened && string(o.key) != "type" {
				o.at = broken // an object of another kind
			}
		case eitherMember:
			is = o.keyed(p, ev)
		case nameMember:
			if o.named(ev, b) && !p.openObject() {
				o.at = broken
			}
		case argumentsMember:
			is = o.argument(p, ev, b)
		}
		if is {
			send = append(send, b)
		}
	}
	if o.opened {
		p.arguments(string(send))
		p.held = p.held[n:]
	} else {
		p.take(n)
	}
	if o.at != broken && o.at != afterObject {
		return false
	}
	endObject(p)
	return true
}

// endObject ends a call that is an object.
func endObject(p *Parser) {
	switch o := &p.object; {
	case !o.opened:
		p.fail()
		return
	case !o.begun:
		p.arguments("{}")
	}
	p.after()
}

// keyed takes in a byte of a member whose key is the name, and tells whether it is the arguments'.
func (o *objects) keyed(p *Parser, ev event) bool {
	if ev != valueByte && ev != valueEnd {
		return false
	}
	if ev == valueByte && !o.opened {
		if o.name = jsonText(string(o.key)); !p.openObject() {
			o.at = broken
			return false
		}
	}
	o.begun = true
	return true
}

// named takes in a byte of the name, and tells whether the call begins with it.
func (o *objects) named(ev event, b byte) bool {
	if ev == valueByte || ev == valueEnd {
		o.name = append(o.name, b)
	}
	return ev == valueEnd && !o.opened
}

// argument takes in a byte of the arguments, and tells whether it is sent at once.
func (o *objects) argument(p *Parser, ev event, b byte) bool {
	if ev == nothing || ev == valueEnded {
		return false
	}
	if !o.begun {
		o.begun, o.whole = true, b == '"'
	}
	if o.opened && !o.whole {
		return true
	}
	if o.args = append(o.args, b); ev == valueEnd && o.opened {
		p.late()
	}
	return false
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
		p.listed, p.state = false, inClose
		p.held = strings.TrimPrefix(rest, "]")
	}
	return true
}

// inClose reads behind a list of calls that ends with words which are no mark.
func inClose(p *Parser, last bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n")
	rest, ended := strings.CutPrefix(head, p.format.closing)
	if !ended && strings.HasPrefix(p.format.closing, head) && !last {
		return false
	}
	if p.state = inText; ended && p.format.closing != "" {
		p.held = rest
	}
	return true
}
