package schema

import (
	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// Error says why a schema is refused. It begins with the name of a keyword where one
// is at fault.
type Error struct{ Err error }

func (e *Error) Error() string { return "schema: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Any is the schema of every value.
const Any = "true"

// Object is the schema of every object.
const Object = `{"type": "object"}`

// Compile makes the grammar of the JSON texts that a schema describes. An error is
// an *Error.
func Compile(text []byte, options Options) (*grammar.Grammar, error) {
	g, err := compile(text, options)
	if err != nil {
		return nil, &Error{err}
	}
	return g, nil
}

func compile(text []byte, options Options) (*grammar.Grammar, error) {
	root, err := read(text)
	if err != nil {
		return nil, err
	}
	c, err := newCompiler(options.arena(), root, options)
	if err != nil {
		return nil, err
	}
	if err := c.build(subs{{schema: root}}); err != nil {
		return nil, err
	}
	if err := c.arena.Err(); err != nil {
		return nil, err
	}
	freeze(c.arena)
	c.settle()
	if err := c.arena.Err(); err != nil { // nothing is known then
		return nil, err
	}
	if !c.nodes[0].possible {
		return nil, c.nothing()
	}
	g, err := grammar.New(c.arena, c, c.symbol(symbol{kind: symValue}))
	if err != nil {
		return nil, err
	}
	if g.Start().Ended() {
		return nil, c.nothing()
	}
	return g, nil
}

// build makes the nodes that are reached from schemas that all hold; theirs is the
// first.
func (c *graph) build(all subs) error {
	if _, err := c.node(all); err != nil {
		return err
	}
	for i := 0; i < len(c.nodes); i++ {
		if err := c.fill(c.nodes[i]); err != nil {
			return err
		}
		if err := c.spend(1); err != nil {
			return err
		}
	}
	return nil
}

// fill works out what a node's values look like.
func (c *graph) fill(n *node) error {
	w, err := c.all(n.all)
	if err != nil {
		return err
	}
	var scalars []regex.Expr
	for _, s := range w {
		e, err := c.scalars(s)
		if err != nil {
			return err
		}
		scalars = append(scalars, e)
		if s.enum != nil {
			continue
		}
		if s.types&(arrays|objects) == 0 {
			continue
		}
		if s.types&arrays != 0 {
			b := &branch{shape: s}
			if err := c.lists(b); err != nil {
				return err
			}
			n.branches = append(n.branches, b)
		}
		if s.types&objects != 0 {
			choices, err := c.choose(s)
			if err != nil {
				return err
			}
			for _, s := range choices {
				b := &branch{shape: s}
				if err := c.objects(b); err != nil {
					return err
				}
				n.branches = append(n.branches, b)
			}
		}
	}
	n.scalar = c.arena.Or(scalars...)
	return nil
}

// settle finds out which nodes some value meets: from the leaves up, until nothing
// changes.
func (c *graph) settle() {
	for changed := true; changed; {
		changed = false
		for _, n := range c.nodes {
			if n.possible {
				continue
			}
			n.possible = c.arena.Alive(n.scalar)
			for _, b := range n.branches {
				n.possible = n.possible || b.list && c.listPossible(b) || b.object && c.objectPossible(b)
			}
			changed = changed || n.possible
		}
	}
}
