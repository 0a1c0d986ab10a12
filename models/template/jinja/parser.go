package jinja

import (
	"fmt"
	"slices"
)

// MaxNesting bounds how deep statements and expressions may nest in a source.
const MaxNesting = 200

// parser is the state of a parse by recursive descent: the tokens, the place among them and
// what encloses it. Each rule of the language is a function of it.
type parser struct {
	tokens []token
	pos    int
	depth  int
	loops  int // enclosing for statements of the current macro
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) take() token {
	t := p.tokens[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{p.peek().line, fmt.Sprintf(format, args...)}
}

// enter counts a level of nesting, which leave ends.
func (p *parser) enter() error {
	if p.depth++; p.depth > MaxNesting {
		return p.fail("nested deeper than %d", MaxNesting)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// op takes the operator text if it comes next.
func (p *parser) op(text string) bool {
	if t := p.peek(); t.kind == tokOp && t.text == text {
		p.pos++
		return true
	}
	return false
}

// word takes the name text if it comes next.
func (p *parser) word(text string) bool {
	if t := p.peek(); t.kind == tokName && t.text == text {
		p.pos++
		return true
	}
	return false
}

func (p *parser) isWord(texts ...string) bool {
	t := p.peek()
	return t.kind == tokName && slices.Contains(texts, t.text)
}

func (p *parser) wantOp(text string) error {
	if !p.op(text) {
		return p.fail("expected %q", text)
	}
	return nil
}

func (p *parser) want(kind tokenKind, what string) (token, error) {
	if p.peek().kind != kind {
		return token{}, p.fail("expected %s", what)
	}
	return p.take(), nil
}

func (p *parser) name() (string, error) {
	t, err := p.want(tokName, "a name")
	return t.text, err
}

func (p *parser) endBlock() error {
	_, err := p.want(tokBlockEnd, "the end of the block")
	return err
}
