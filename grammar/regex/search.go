package regex

import (
	"errors"
	"fmt"
	"slices"
)

// mostAlternatives bounds how many alternatives anchors may split a pattern into.
const mostAlternatives = 256

// Search matches the texts in which pattern, of ECMA-262, matches somewhere: what
// the keyword pattern of JSON Schema asks for. Anchors and looking ahead are
// possible where the rest of the text follows them.
func (a *texts) Search(pattern string, quoting Quoting) (Expr, error) {
	n, err := parse(pattern, a.budget)
	if err != nil {
		return None, err
	}
	e, err := (&patterns{a, quoting}).fullText(n, true, true)
	if err == nil {
		err = a.err
	}
	if err != nil {
		return None, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return e, nil
}

// Match matches the texts that pattern matches as a whole.
func (a *texts) Match(pattern string, quoting Quoting) (Expr, error) {
	n, err := parse(pattern, a.budget)
	if err != nil {
		return None, err
	}
	e, err := (&patterns{a, quoting}).fullText(n, false, false)
	if err == nil {
		err = a.err
	}
	if err != nil {
		return None, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return e, nil
}

// AnyText matches every text.
func (a *texts) AnyText(quoting Quoting) Expr {
	return a.Texts(0, Infinite, quoting)
}

// Texts matches every text of least to most characters; most may be Infinite.
func (a *texts) Texts(least, most int, quoting Quoting) Expr {
	c, ok := a.anyRune[quoting]
	if !ok {
		c = a.Char(AnyRune, quoting)
		a.anyRune[quoting] = c
	}
	return a.Repeat(c, least, most)
}

// Spelled matches every text of least to most characters within a JSON string, however they are escaped. Models write so
// that were trained on texts of Python's json, which escapes all but ASCII. If a pattern bounds texts, each has one spelling
// (JSON), since a text outside a pattern must be outside in any. The error says that the arena's budget is spent.
func (a *texts) Spelled(least, most int) (Expr, error) {
	if a.anySpelled == None {
		escape, err := a.Match(anyEscape, Raw)
		if err != nil {
			return None, err
		}
		if a.anySpelled = a.Or(a.Texts(1, 1, JSON), escape); a.anySpelled != None {
			a.infos[a.anySpelled].flags |= covers
		}
	}
	return a.Repeat(a.anySpelled, least, most), nil
}

// anyEscape matches the escape of one character. Those that JSON writes as two are a pair of surrogates.
const anyEscape = `\\(/|u([0-9a-cA-Ce-fE-F][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))`

// patterns makes expressions of patterns whose texts are quoted so.
type patterns struct {
	*texts
	quoting Quoting
}

// fullText matches whole texts. before and after: something may stand there, unless
// an anchor says no.
func (p *patterns) fullText(n *node, before, after bool) (Expr, error) {
	alts, err := split(n)
	if err != nil {
		return None, err
	}
	out := make([]Expr, 0, len(alts))
	for _, items := range alts {
		e, err := p.line(items, before, after)
		if err != nil {
			return None, err
		}
		out = append(out, e)
	}
	return p.Or(out...), nil
}

// split lists the alternatives of n as sequences in whose items, but for single
// ones, there are no anchors.
func split(n *node) ([][]*node, error) {
	if !n.fixed {
		return [][]*node{{n}}, nil
	}
	switch n.op {
	case opAlt:
		var out [][]*node
		for _, k := range n.kids {
			alts, err := split(k)
			if err != nil {
				return nil, err
			}
			if out = append(out, alts...); len(out) > mostAlternatives {
				return nil, ErrSize
			}
		}
		return out, nil
	case opCat:
		out := [][]*node{nil}
		for _, k := range n.kids {
			alts, err := split(k)
			if err != nil {
				return nil, err
			}
			if len(out)*len(alts) > mostAlternatives {
				return nil, ErrSize
			}
			var next [][]*node
			for _, head := range out {
				for _, tail := range alts {
					next = append(next, append(head[:len(head):len(head)], tail...))
				}
			}
			out = next
		}
		return out, nil
	case opRepeat:
		if n.min <= 1 && n.max == 1 {
			alts, err := split(n.kids[0])
			if n.min == 0 {
				alts = append(alts, nil)
			}
			return alts, err
		}
		if n.tempered() {
			return [][]*node{{n}}, nil
		}
		return ended(n)
	}
	return [][]*node{{n}}, nil
}

// ended lists the alternatives of a repetition of which some pass ends with $, as (a($|/))* does. After such
// a pass only empty ones can follow, so it is the last that reads anything: what comes before repeats without $.
func ended(n *node) ([][]*node, error) {
	alts, err := split(n.kids[0])
	if err != nil {
		return nil, err
	}
	var through, last []*node // passes without $, and what the others read before it
	_, empty := n.kids[0].opens()
	for _, items := range alts {
		body, ends := items, false
		if k := len(items) - 1; k >= 0 && items[k].op == opEnd {
			body, ends = items[:k], true
		}
		if slices.ContainsFunc(body, func(k *node) bool { return k.fixed }) {
			return nil, fmt.Errorf("an anchor within a repetition is not supported, but for $ at its end")
		}
		if pass := (&node{op: opCat, kids: body}); ends {
			last = append(last, pass)
		} else {
			through = append(through, pass)
		}
	}
	repeat := func(least, most int) []*node {
		if most == 0 {
			return nil
		}
		return []*node{{op: opRepeat, kids: []*node{{op: opAlt, kids: through}}, min: least, max: most}}
	}
	var out [][]*node
	if len(through) > 0 || n.min == 0 {
		most := n.max
		if len(through) == 0 {
			most = 0
		}
		out = append(out, repeat(n.min, most))
	}
	least, most := max(0, n.min-1), n.max
	if empty {
		least = 0
	}
	if most != Infinite {
		most--
	}
	if len(through) == 0 {
		most = 0
	}
	if least > 0 && len(through) == 0 || n.max == 0 {
		return out, nil
	}
	return append(out, append(repeat(least, most), &node{op: opAlt, kids: last}, &node{op: opEnd, fixed: true})), nil
}

// line matches texts in which the items match one after another.
func (p *patterns) line(items []*node, before, after bool) (Expr, error) {
	any := p.AnyText(p.quoting)
	e := Empty
	if after {
		e = any
	}
	for i := len(items) - 1; i >= 0; i-- {
		n := items[i]
		switch n.op {
		case opEnd:
			if e = p.emptied(e); e == None {
				return None, nil // something has to follow the end
			}
		case opBegin: // what stands before may only be empty
			for _, k := range items[:i] {
				switch k.op {
				case opAhead, opNotAhead, opEdge, opNoEdge:
					return None, fmt.Errorf("looking ahead of ^ is not supported")
				case opEnd:
					e = p.emptied(e)
				}
				x, err := p.plain(k)
				if err != nil {
					return None, err
				}
				if !p.Nullable(x) {
					return None, nil
				}
			}
			return e, nil
		case opEdge, opNoEdge:
			return p.edges(items[:i+1], e, before)
		case opRepeat:
			if n.fixed {
				if e != Empty {
					return None, fmt.Errorf("looking ahead within a repetition is supported before the end alone")
				}
				x, err := p.temper(n)
				if err != nil {
					return None, err
				}
				e = x
				continue
			}
			x, err := p.plain(n)
			if err != nil {
				return None, err
			}
			e = p.seq(x, e)
		case opAhead, opNotAhead:
			if n.kids[0].begins() {
				return None, fmt.Errorf("^ within looking ahead is not supported")
			}
			if edge, _ := n.opens(); edge && !first(items[:i], before) {
				return None, errEdgeAhead
			}
			x, err := p.fullText(n.kids[0], false, true)
			if err != nil {
				return None, err
			}
			if n.op == opNotAhead {
				x = p.Not(x)
			}
			e = p.And(e, x)
		default:
			x, err := p.plain(n)
			if err != nil {
				return None, err
			}
			e = p.seq(x, e)
		}
	}
	if before {
		e = p.seq(any, e)
	}
	return e, nil
}

// errEdgeAhead says that what stands before is not known where something is looked for.
var errEdgeAhead = errors.New(`\b where looking ahead begins is supported at the beginning alone`)

// first reports whether what follows items stands at the beginning of the text. before:
// something may stand before them.
func first(items []*node, before bool) bool {
	for _, n := range items {
		switch n.op {
		case opBegin:
			before = false
		case opEnd, opAhead, opNotAhead, opEdge, opNoEdge:
		default:
			before = true
		}
	}
	return !before
}

// edges matches what items match, the last of which is an edge of a word, or none, and then
// rest.
func (p *patterns) edges(items []*node, rest Expr, before bool) (Expr, error) {
	word, any := p.Char(words, p.quoting), p.AnyText(p.quoting)
	begins, ends := p.seq(word, any), p.seq(any, word)
	var until [2]Expr // all up to an edge: [1] if a word's character follows
	from := 0         // where what follows the last edge begins
	for i, n := range items {
		switch {
		case n.op == opAhead || n.op == opNotAhead || n.op == opEnd || n.op == opRepeat && n.fixed:
			return None, fmt.Errorf(`an anchor before \b is not supported`)
		case n.op == opBegin && from > 0:
			return None, fmt.Errorf("looking ahead of ^ is not supported")
		case n.op != opEdge && n.op != opNoEdge:
			continue
		}
		part, err := p.line(items[from:i], before && from == 0, false)
		if err != nil {
			return None, err
		}
		if from == 0 {
			until = [2]Expr{part, part}
		} else {
			until = [2]Expr{p.apart(until, items[from-1].op, part, begins, ends), p.apart(until, items[from-1].op, part, p.Optional(begins), ends)}
		}
		from = i + 1
	}
	return p.apart(until, items[from-1].op, rest, begins, ends), nil
}

// apart matches the texts of until, then the texts of rest, with an edge of a word between them
// or, of opNoEdge, none. What begins matches begins with a word's character, and what ends
// matches ends with one.
func (p *patterns) apart(until [2]Expr, edge op, rest, begins, ends Expr) Expr {
	if edge == opNoEdge {
		ends = p.Not(ends)
	}
	return p.Or(p.seq(p.And(until[0], ends), p.And(rest, p.Not(begins))), p.seq(p.And(until[1], p.Not(ends)), p.And(rest, begins)))
}

// opens reports whether an edge of a word may stand where n begins, and whether n may be
// empty.
func (n *node) opens() (edge, empty bool) {
	switch n.op {
	case opClass:
		return false, false
	case opEdge, opNoEdge:
		return true, true
	case opCat:
		for _, k := range n.kids {
			e, goesOn := k.opens()
			if edge = edge || e; !goesOn {
				return edge, false
			}
		}
		return edge, true
	}
	for _, k := range n.kids {
		e, goesOn := k.opens()
		edge, empty = edge || e, empty || goesOn
	}
	return edge, empty || n.op != opAlt && (n.op != opRepeat || n.min == 0)
}

// tempered reports whether n repeats a character before which something is looked for,
// as ((?!x).)* does.
func (n *node) tempered() bool {
	k := n.kids[0]
	if n.min > 1 || n.max != Infinite || k.op != opCat {
		return false
	}
	last := len(k.kids) - 1
	return k.kids[last].op == opClass && !slices.ContainsFunc(k.kids[:last], func(k *node) bool {
		return k.op != opAhead && k.op != opNotAhead || k.kids[0].begins()
	})
}

// temper matches texts of which no part from some character on to the end fails what is
// looked for.
func (p *patterns) temper(n *node) (Expr, error) {
	k := n.kids[0]
	last := len(k.kids) - 1
	all := []Expr{p.Repeat(p.Char(k.kids[last].runes, p.quoting), n.min, Infinite)}
	for _, ahead := range k.kids[:last] {
		if edge, _ := ahead.opens(); edge {
			return None, errEdgeAhead
		}
		x, err := p.fullText(ahead.kids[0], false, true)
		if err != nil {
			return None, err
		}
		if ahead.op == opAhead {
			x = p.Not(x)
		}
		all = append(all, p.Not(p.seq(p.AnyText(p.quoting), p.And(x, p.Texts(1, Infinite, p.quoting)))))
	}
	return p.And(all...), nil
}

// emptied returns Empty if e may be empty, else None.
func (p *patterns) emptied(e Expr) Expr {
	if p.Nullable(e) {
		return Empty
	}
	return None
}

// plain returns a pattern without anchors.
func (p *patterns) plain(n *node) (Expr, error) {
	switch n.op {
	case opClass:
		return p.Char(n.runes, p.quoting), nil
	case opBegin, opEnd, opAhead, opNotAhead, opEdge, opNoEdge:
		return Empty, nil
	}
	kids := make([]Expr, len(n.kids))
	for i, k := range n.kids {
		var err error
		if kids[i], err = p.plain(k); err != nil {
			return None, err
		}
	}
	switch n.op {
	case opCat:
		return p.Seq(kids...), nil
	case opAlt:
		return p.Or(kids...), nil
	}
	return p.Repeat(kids[0], n.min, n.max), nil
}

// begins reports whether ^ stands in n.
func (n *node) begins() bool {
	return n.op == opBegin || slices.ContainsFunc(n.kids, (*node).begins)
}
