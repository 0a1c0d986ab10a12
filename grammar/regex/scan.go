package regex

import (
	"strings"

	"github.com/lutra-lm/lutra/grammar/budget"
)

// parser reads a pattern.
type parser struct {
	src    string
	budget *budget.Budget
	at     int  // in src
	depth  int  // of groups within groups
	fold   bool // letters stand for both cases
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

// eat reads text, if it comes next, and reports whether it did.
func (p *parser) eat(text string) bool {
	if strings.HasPrefix(p.src[p.at:], text) {
		p.at += len(text)
		return true
	}
	return false
}
