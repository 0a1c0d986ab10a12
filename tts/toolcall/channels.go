package toolcall

import "strings"

const (
	channelMark = "<|channel|>"
	messageMark = "<|message|>"
	recipient   = "to="
)

// inAnswer reads at the beginning of a message whose role the prompt has: it may go on
// with who it is for.
func inAnswer(p *Parser, last bool) bool {
	head := strings.TrimLeft(p.held, " \t\r\n")
	switch {
	case strings.HasPrefix(head, recipient):
		p.state = inRole
	case strings.HasPrefix(recipient, head) && !last:
		return false
	default:
		p.state = inText
	}
	return true
}

// inRole reads after the mark that begins a message, before its channel or its text.
func inRole(p *Parser, last bool) bool { return p.channel(last, channelMark, messageMark) }

// inChannel reads within the name of a channel.
func inChannel(p *Parser, last bool) bool { return p.channel(last, messageMark) }

// channel reads up to one of ends.
func (p *Parser) channel(last bool, ends ...string) bool {
	at, end := -1, ""
	for _, e := range ends {
		if i := strings.Index(p.held, e); i >= 0 && (at < 0 || i < at) {
			at, end = i, e
		}
	}
	if at < 0 {
		if len(p.held) > maxHead || last {
			p.fail()
			return true
		}
		return false
	}
	p.take(at + len(end))
	if end == channelMark && len(ends) > 1 {
		p.state = inChannel
		return true
	}
	if _, to, called := strings.Cut(string(p.raw), recipient); called {
		if !p.open(p.format.nameIn(to)) {
			p.fail()
			return true
		}
		p.state = inArguments
		return true
	}
	p.reasoning = strings.Contains(string(p.raw), "analysis")
	p.raw, p.state, p.begun = p.raw[:0], inText, false
	return true
}
