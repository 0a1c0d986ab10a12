package schema

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// The bounds of the work of compiling.
const (
	mostEffort = 1 << 21 // schemas looked at, and pairs compared
	mostNodes  = 1 << 16 // combinations of schemas
	nodeSteps  = 64      // of the budget, for one
	nodeBytes  = 512
)

var (
	errEffort  = errors.New("the schema takes too long to work out")
	errNothing = errors.New("no value meets it")

	errNarrowed  = errors.New("not: several properties that have no name in the schema and are not to meet it are supported as one alone")
	errUndecided = errors.New("whether any value meets it takes too long to find out")
)

// The white space that may stand between tokens, as JSON is commonly written: none before a comma or a colon, one blank after
// it, or a newline with an indent where a list or an object goes on. A model cannot go on with blanks for ever.
const (
	blank  = ` ?`
	indent = `(\n( {0,16}|\t{0,8}))?`
	either = ` |` + indent
)

// writing says how values are written: expressions of an arena for the texts of strings, numbers and names.
type writing struct {
	arena                 *regex.Arena
	quoting               regex.Quoting // of strings: Raw ones have no quotes
	quote                 regex.Expr    // what stands on both sides of Raw strings; None: nothing
	never                 regex.Expr    // what no string matches
	python                bool          // Elements.Python
	blank, indent, either regex.Expr
}

// solver works out what schemas demand of a value: the alternatives of shapes of which it has one.
type solver struct {
	writing
	refs     *references
	known    map[sub]alternatives
	within   map[sub]bool
	formats  map[string]regex.Expr
	effort   int
	narrowed bool // what several properties could meet, one has to
}

// graph has a node for each of the combinations of schemas that values within a value may have to meet: it says which of them any value meets.
type graph struct {
	solver
	options Options
	differ  bool // there are lists whose items differ and are many
	nodes   []*node
	nodeIDs map[string]int
}

// compiler turns one schema into rules: symbols for places within the values of nodes.
type compiler struct {
	graph
	symbols []symbol
	ids     map[symbol]grammar.Symbol
}

// Options change what texts are accepted of the values that a schema describes.
type Options struct {
	// AnyOrder lets properties stand in any order, in objects of at most 62 that the
	// schema names.
	AnyOrder bool

	// Listed leaves objects only the properties that the schema lists, if it lists some and does not mention others.
	// Such a schema asks for these alone, and a small model might add to them for ever.
	Listed bool

	// Budget is charged for the grammar; nil: a default one.
	Budget *budget.Budget

	python bool // Elements.Python
}

// arena makes the arena of a grammar.
func (o *Options) arena() *regex.Arena {
	if o.Budget == nil {
		return regex.New()
	}
	return regex.Within(o.Budget)
}

// nothing returns why there seems to be no value.
func (c *solver) nothing() error {
	switch {
	case c.arena.Undecided():
		return errUndecided
	case c.narrowed:
		return errNarrowed
	}
	return errNothing
}

// spend counts n pieces of work, about a microsecond each: a schema's work has a bound, and
// is charged to the budget, which ends with the request.
func (c *solver) spend(n int) error {
	if c.effort += n; c.effort > mostEffort {
		return errEffort
	}
	if err := c.arena.Budget().Work(n); err != nil {
		return err
	}
	return c.arena.Err()
}

// newCompiler turns a schema, or parts of one, into rules over an arena that it may
// share with others.
func newCompiler(arena *regex.Arena, root *value, options Options) (c *compiler, err error) {
	write := writing{arena: arena, quoting: regex.JSON, quote: regex.None, never: regex.None, python: options.python}
	solve := solver{writing: write, refs: newReferences(root), known: map[sub]alternatives{}, within: map[sub]bool{}, formats: map[string]regex.Expr{}}
	c = &compiler{graph: graph{solver: solve, options: options, nodeIDs: map[string]int{}}, ids: map[symbol]grammar.Symbol{}}
	for _, space := range []struct {
		pattern string
		to      *regex.Expr
	}{{blank, &c.blank}, {indent, &c.indent}, {either, &c.either}} {
		if *space.to, err = c.arena.Match(space.pattern, regex.Raw); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// freeze freezes an arena whose expressions hold all bytes that rules come to name.
func freeze(arena *regex.Arena) {
	for _, b := range []byte(`[]{}:,"`) {
		arena.Byte(b)
	}
	arena.Freeze()
}

// node numbers a combination of schemas.
func (c *graph) node(all subs) (int, error) {
	var key strings.Builder
	kept := all[:0:0]
	seen := map[sub]bool{}
	for _, s := range all {
		if s.schema.kind == booleans && s.schema.truth != s.negated || seen[s] {
			continue
		}
		seen[s] = true
		kept = append(kept, s)
		fmt.Fprintf(&key, "%p %v ", s.schema, s.negated)
	}
	if n, ok := c.nodeIDs[key.String()]; ok {
		return n, nil
	}
	if len(c.nodes) >= mostNodes {
		return 0, errEffort
	}
	if err := c.arena.Budget().Work(nodeSteps + len(kept)); err != nil {
		return 0, err
	}
	if err := c.arena.Budget().Hold(nodeBytes + key.Len()); err != nil {
		return 0, err
	}
	c.nodeIDs[key.String()] = len(c.nodes)
	c.nodes = append(c.nodes, &node{all: kept})
	return len(c.nodes) - 1, nil
}

// symbolBytes is the memory of a symbol.
const symbolBytes = 192

func (c *compiler) symbol(s symbol) grammar.Symbol {
	id, ok := c.ids[s]
	if !ok {
		_ = c.arena.Budget().Hold(symbolBytes) // the grammar, which goes on, meets the error
		id = grammar.Symbol(len(c.symbols))
		c.symbols = append(c.symbols, s)
		c.ids[s] = id
	}
	return id
}

func (c *compiler) terminal(es ...regex.Expr) grammar.Symbol {
	return c.symbol(symbol{expr: c.arena.Seq(es...)})
}

// demanded lists what s demands of a property.
func demanded(a *regex.Arena, s *shape, name string) subs {
	var out subs
	for i := range s.parts {
		all, _ := s.parts[i].of(a, name)
		out = append(out, all...)
	}
	return out
}
