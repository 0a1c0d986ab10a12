package schema

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lutra-lm/lutra/grammar"
	"github.com/lutra-lm/lutra/grammar/budget"
	"github.com/lutra-lm/lutra/grammar/regex"
)

// Combined is a grammar in the making: rules of a text in which values of several
// schemas stand.
type Combined struct {
	arena     *regex.Arena
	documents []*compiler
	symbols   []combinedSymbol
	ids       map[combinedSymbol]grammar.Symbol // of what documents name
	rules     map[grammar.Symbol][][]grammar.Symbol
}

// combinedSymbol says what a symbol of a Combined stands for.
type combinedSymbol struct {
	document int // whose symbol it is; -1: no document's
	symbol   grammar.Symbol
	expr     regex.Expr
	terminal bool
}

var _ grammar.Rules = (*Combined)(nil)

// NewCombined makes one without rules, whose grammar is charged to b.
func NewCombined(b *budget.Budget) *Combined {
	return &Combined{arena: regex.Within(b), ids: map[combinedSymbol]grammar.Symbol{}, rules: map[grammar.Symbol][][]grammar.Symbol{}}
}

// Arena returns the arena, for the expressions of Match.
func (f *Combined) Arena() *regex.Arena { return f.arena }

func (f *Combined) own(s combinedSymbol) grammar.Symbol {
	s.document = -1
	f.symbols = append(f.symbols, s)
	return grammar.Symbol(len(f.symbols) - 1)
}

// Match adds a symbol for a text that e matches.
func (f *Combined) Match(e regex.Expr) grammar.Symbol {
	return f.own(combinedSymbol{expr: e, terminal: true})
}

// Rule adds a symbol for one of several sequences. The sequences of a rule that contains itself are given with Let.
func (f *Combined) Rule(alternatives ...[]grammar.Symbol) grammar.Symbol {
	s := f.own(combinedSymbol{})
	f.Let(s, alternatives...)
	return s
}

// Let gives a rule its sequences.
func (f *Combined) Let(rule grammar.Symbol, alternatives ...[]grammar.Symbol) {
	f.rules[rule] = alternatives
}

// document adds a schema whose values are of a type as well. No string in them matches never. If quote is not
// None, they are written as Marked says.
func (f *Combined) document(text []byte, of *value, options Options, quote, never regex.Expr) (int, error) {
	root, err := read(text)
	if err != nil {
		return 0, &Error{err}
	}
	c, err := newCompiler(f.arena, root, options)
	if err == nil {
		if c.never = never; quote != regex.None {
			c.quoting, c.quote = regex.Raw, quote
			c.blank, c.indent, c.either = regex.Empty, regex.Empty, regex.Empty
		}
		err = c.build(subs{{schema: root}, {schema: of}})
	}
	if err != nil {
		return 0, &Error{err}
	}
	f.documents = append(f.documents, c)
	return len(f.documents) - 1, nil
}

// anyType is a schema that all values meet.
var anyType = &value{kind: objects}

// ofType returns the schema of a type.
func ofType(name string) *value {
	return &value{kind: objects, members: []member{{"type", &value{kind: strs, text: name}}}}
}

// Object adds a symbol for an object that meets a schema. An error is an *Error.
func (f *Combined) Object(schema []byte, options Options) (grammar.Symbol, error) {
	return f.value(schema, ofType("object"), options)
}

// Value adds a symbol for a value that meets a schema. An error is an *Error.
func (f *Combined) Value(schema []byte, options Options) (grammar.Symbol, error) {
	return f.value(schema, anyType, options)
}

func (f *Combined) value(schema []byte, of *value, options Options) (grammar.Symbol, error) {
	d, err := f.document(schema, of, options, regex.None, regex.None)
	if err != nil {
		return 0, err
	}
	return f.of(d, f.documents[d].symbol(symbol{kind: symValue})), nil
}

// Marked adds a symbol for what Object does, without white space. Strings that are written as they are stand between two
// quotes, and names of properties have none. No string matches never. Required properties whose names have characters with
// a meaning are an *Error.
func (f *Combined) Marked(schema []byte, options Options, quote, never regex.Expr) (grammar.Symbol, error) {
	d, err := f.document(schema, ofType("object"), options, quote, never)
	if err != nil {
		return 0, err
	}
	return f.of(d, f.documents[d].symbol(symbol{kind: symValue})), nil
}

// of returns a symbol of a document.
func (f *Combined) of(document int, s grammar.Symbol) grammar.Symbol {
	key := combinedSymbol{document: document, symbol: s}
	id, ok := f.ids[key]
	if !ok {
		id = grammar.Symbol(len(f.symbols))
		f.symbols = append(f.symbols, key)
		f.ids[key] = id
	}
	return id
}

// Terminal implements grammar.Rules.
func (f *Combined) Terminal(id grammar.Symbol) (regex.Expr, bool) {
	s := f.symbols[id]
	if s.document < 0 {
		return s.expr, s.terminal
	}
	return f.documents[s.document].Terminal(s.symbol)
}

// Alternatives implements grammar.Rules.
func (f *Combined) Alternatives(id grammar.Symbol) [][]grammar.Symbol {
	s := f.symbols[id]
	if s.document < 0 {
		return f.rules[id]
	}
	list := f.documents[s.document].Alternatives(s.symbol)
	out := make([][]grammar.Symbol, len(list))
	for i, sequence := range list {
		out[i] = make([]grammar.Symbol, len(sequence))
		for j, k := range sequence {
			out[i][j] = f.of(s.document, k)
		}
	}
	return out
}

// Differ implements grammar.Lists.
func (f *Combined) Differ() func(grammar.Symbol) bool {
	known := make([]func(grammar.Symbol) bool, len(f.documents))
	some := false
	for i, c := range f.documents {
		known[i] = c.Differ()
		some = some || known[i] != nil
	}
	if !some {
		return nil
	}
	return func(id grammar.Symbol) bool {
		s := f.symbols[id]
		return s.document >= 0 && known[s.document] != nil && known[s.document](s.symbol)
	}
}

// Grammar makes the grammar of the texts that start stands for. Nothing can be added to the
// rules afterwards. An error is an *Error: of the first schema that no value meets,
// for instance.
func (f *Combined) Grammar(start grammar.Symbol) (*grammar.Grammar, error) {
	if err := f.arena.Err(); err != nil {
		return nil, &Error{err}
	}
	freeze(f.arena)
	for _, c := range f.documents {
		c.settle()
		if err := f.arena.Err(); err != nil { // nothing is known then
			return nil, &Error{err}
		}
		if !c.nodes[0].possible {
			return nil, &Error{c.nothing()}
		}
	}
	f.prune()
	if err := f.arena.Err(); err != nil {
		return nil, &Error{err}
	}
	if len(f.rules[start]) == 0 {
		if f.arena.Undecided() {
			return nil, &Error{errUndecided}
		}
		return nil, &Error{errNothing}
	}
	g, err := grammar.New(f.arena, f, start)
	if err != nil {
		return nil, &Error{err}
	}
	return g, nil
}

// prune drops the sequences of which a part stands for no text.
func (f *Combined) prune() {
	alive := make([]bool, len(f.symbols))
	for changed := true; changed; {
		changed = false
		for i := range f.symbols {
			if !alive[i] {
				alive[i] = f.possible(grammar.Symbol(i), alive)
				changed = changed || alive[i]
			}
		}
	}
	for rule, alternatives := range f.rules {
		f.rules[rule] = slices.DeleteFunc(alternatives, func(sequence []grammar.Symbol) bool {
			return slices.ContainsFunc(sequence, func(s grammar.Symbol) bool { return !alive[s] })
		})
	}
}

// possible reports whether a symbol stands for some text, as far as is known of others.
func (f *Combined) possible(id grammar.Symbol, alive []bool) bool {
	s := f.symbols[id]
	switch {
	case s.document >= 0: // a value
		c := f.documents[s.document]
		return c.nodes[c.symbols[s.symbol].node].possible
	case s.terminal:
		return f.arena.Alive(s.expr)
	}
	return slices.ContainsFunc(f.rules[id], func(sequence []grammar.Symbol) bool {
		return !slices.ContainsFunc(sequence, func(s grammar.Symbol) bool { return !alive[s] })
	})
}

// Elements says how an object is written as a list of elements.
type Elements struct {
	Open             regex.Expr // before a property's name; None: nothing
	Named, NamedText regex.Expr // after it, before a value and before a text
	Close, Between   regex.Expr // after a value, and between two elements; None: nothing
	// Python says that truths and null are written as in Python.
	Python bool
	// Text tells whether a property is text, which stands without quotes and as it is.
	Text func(name string) bool
	// Name tells whether a property may have a name.
	Name func(name string) bool
	// Never matches what no string may be, wherever it stands in a value.
	Never regex.Expr
}

// Elements adds a symbol for an object that meets a schema, as a list of elements in the schema's
// order. Properties that the schema does not name are left out, unless it names none:
// then any may be there whose values may be text. An error is an *Error.
func (f *Combined) Elements(schema []byte, e Elements) (grammar.Symbol, error) {
	for _, text := range []*regex.Expr{&e.Open, &e.Close, &e.Between} {
		if *text == regex.None {
			*text = regex.Empty
		}
	}
	d, err := f.document(schema, ofType("object"), Options{python: e.Python}, regex.None, e.Never)
	if err != nil {
		return 0, err
	}
	c := f.documents[d]
	texts, err := newCompiler(f.arena, c.refs.root, Options{})
	if err != nil {
		return 0, &Error{err}
	}
	texts.quoting, texts.never, texts.refs = regex.Raw, e.Never, c.refs
	w := &elements{Elements: e, combined: f, document: d, texts: texts}
	var all [][]grammar.Symbol
	for _, b := range c.nodes[0].branches {
		if !b.object {
			continue
		}
		s, err := w.list(b)
		if err != nil {
			return 0, &Error{err}
		}
		all = append(all, []grammar.Symbol{s})
	}
	return f.Rule(all...), nil
}

// elements writes objects as elements.
type elements struct {
	Elements
	combined *Combined
	document int
	texts    *compiler // whose strings have no quotes
}

// someName is the name of a property that no schema names: JSON writes it as it is.
const someName = `[A-Za-z_][A-Za-z0-9_.\-]{0,63}`

// list returns the properties of a branch, one rule for each place in it: what may still
// come.
func (w *elements) list(b *branch) (grammar.Symbol, error) {
	f, a := w.combined, w.combined.arena
	entries := slices.Clone(b.entries)
	for _, e := range b.others {
		if e.single {
			entries = append(entries, e)
		}
	}
	if b.minimum > b.needed(0) || b.maximum != regex.Infinite && b.maximum < max(len(entries), 1) {
		return 0, errors.New("minProperties, maxProperties: they are not supported where arguments are elements")
	}
	none := f.Rule([]grammar.Symbol{})
	if len(entries) == 0 {
		var first, more [][]grammar.Symbol
		next := f.Rule()
		for _, e := range b.others {
			ident, err := a.Match(someName, regex.Raw)
			if err != nil {
				return 0, err
			}
			for _, isText := range w.unnamed() {
				one, err := w.element(e.node, a.And(e.names, ident), isText)
				if err != nil {
					return 0, err
				}
				first = append(first, append(one, next))
				more = append(more, append([]grammar.Symbol{f.Match(w.Between)}, append(one, next)...))
			}
		}
		f.Let(next, append(more, []grammar.Symbol{})...)
		return f.Rule(append(first, []grammar.Symbol{none})...), nil
	}
	first, more := none, none // the texts that may come where none has been, and after one
	for _, e := range slices.Backward(entries) {
		if !w.Name(e.name) {
			if e.required {
				return 0, fmt.Errorf("properties: the name %q is not supported where arguments are elements", e.name)
			}
			continue
		}
		one, err := w.element(e.node, a.Literal(e.name), w.Text(e.name))
		if err != nil {
			return 0, err
		}
		one = append(one, more)
		between := one
		if w.Between != regex.Empty {
			between = append([]grammar.Symbol{f.Match(w.Between)}, one...)
		}
		if e.required {
			first, more = f.Rule(one), f.Rule(between)
		} else {
			first, more = f.Rule(one, []grammar.Symbol{first}), f.Rule(between, []grammar.Symbol{more})
		}
	}
	return first, nil
}

// unnamed tells whether what no schema names is text, or may be text or not.
func (w *elements) unnamed() []bool {
	switch {
	case w.NamedText == regex.None:
		return []bool{false}
	case w.NamedText != w.Named:
		return []bool{true, false}
	}
	return []bool{true}
}

// element returns one of a name.
func (w *elements) element(node int, name regex.Expr, isText bool) ([]grammar.Symbol, error) {
	f, a := w.combined, w.combined.arena
	if !isText {
		return []grammar.Symbol{f.Match(a.Seq(w.Open, name, w.Named)), f.of(w.document, f.documents[w.document].symbol(symbol{kind: symValue, node: node})), f.Match(w.Close)}, nil
	}
	text, err := w.text(node)
	if err != nil {
		return nil, err
	}
	return []grammar.Symbol{f.Match(a.Seq(w.Open, name, w.NamedText, text, w.Close))}, nil
}

// text matches the strings that meet a node, without quotes.
func (w *elements) text(node int) (regex.Expr, error) {
	c := w.texts
	id, err := c.node(append(slices.Clone(w.combined.documents[w.document].nodes[node].all), sub{schema: ofType("string")}))
	if err != nil {
		return regex.None, err
	}
	if err := c.fill(c.nodes[id]); err != nil {
		return regex.None, err
	}
	return c.nodes[id].scalar, nil
}
