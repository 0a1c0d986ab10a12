// Package gbnf reads grammars as llama.cpp writes them: rules such as
// root ::= "a" [b-d]* other | "e"{2,3}, of which root is the whole text.
package gbnf

import (
	"errors"
	"fmt"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// Error says why a grammar is refused.
type Error struct{ Err error }

func (e *Error) Error() string { return "grammar: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Compile makes a grammar of its text within a budget. An error is an *Error: its cause
// may be one of the budget.
func Compile(text string, b *budget.Budget) (*grammar.Grammar, error) {
	g, err := compile(text, b)
	if err != nil {
		return nil, &Error{err}
	}
	return g, nil
}

func compile(text string, b *budget.Budget) (*grammar.Grammar, error) {
	if len(text) > mostBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), mostBytes)
	}
	c := &compiler{budget: b, arena: regex.Within(b), names: map[string]grammar.Symbol{}}
	p := &parser{src: text, c: c}
	err := p.rules()
	if fault := c.fault(); fault != nil { // whatever else is wrong follows from it
		err = fault
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line(), err)
	}
	for _, s := range c.symbols {
		if s.name != "" && s.alternatives == nil {
			return nil, fmt.Errorf("line %d: there is no rule %s", s.line, s.name)
		}
	}
	root, ok := c.names["root"]
	if !ok {
		return nil, errors.New("there is no rule root")
	}
	if err := c.leftRecursive(); err != nil {
		return nil, err
	}
	c.arena.Freeze()
	alive := c.settle(c.arena.Alive)
	if err := c.fault(); err != nil {
		return nil, err
	}
	if !alive[root] {
		return nil, errors.New("no text meets it")
	}
	c.prune(alive)
	g, err := grammar.New(c.arena, c, root)
	if err != nil {
		return nil, fmt.Errorf("line %d: the rule root: %w", c.symbols[root].line, err)
	}
	return g, nil
}
