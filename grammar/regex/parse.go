package regex

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lutra-lm/lutra/grammar/budget"
)

// The bounds of a pattern.
const (
	mostPattern = 1 << 15 // bytes
	mostNesting = 100
	mostRepeat  = 10000
	mostRanges  = 1 << 14 // of a class, before those that touch are joined
)

type op uint8

const (
	opClass op = iota
	opCat
	opAlt
	opRepeat
	opBegin
	opEnd
	opAhead    // kids[0] follows
	opNotAhead // it does not
	opEdge     // of a word: \b
	opNoEdge   // \B
)

// node is a pattern as it is written.
type node struct {
	op       op
	runes    Runes
	kids     []*node
	min, max int
	fixed    bool // holds an anchor, an edge of a word or a look ahead
}

// parse reads a pattern of ECMA-262, read with its flag u, and charges b for the ranges of its classes.
func parse(pattern string, b *budget.Budget) (*node, error) {
	if len(pattern) > mostPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d are allowed", len(pattern), mostPattern)
	}
	p := &parser{src: pattern, budget: b}
	n, err := p.alternatives()
	if err == nil && p.at < len(p.src) {
		err = fmt.Errorf("unmatched )")
	}
	if err != nil {
		return nil, fmt.Errorf("pattern %q at %d: %w", pattern, p.at, err)
	}
	return n, nil
}

func join(o op, kids []*node) *node {
	if len(kids) == 1 {
		return kids[0]
	}
	n := &node{op: o, kids: kids}
	for _, k := range kids {
		n.fixed = n.fixed || k.fixed
	}
	return n
}

func (p *parser) alternatives() (*node, error) {
	if p.depth++; p.depth > mostNesting {
		return nil, fmt.Errorf("groups are nested deeper than %d", mostNesting)
	}
	fold := p.fold // (?i) holds to the end of its group
	defer func() { p.depth, p.fold = p.depth-1, fold }()
	var alts []*node
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		if alts = append(alts, n); !p.eat("|") {
			return join(opAlt, alts), nil
		}
	}
}

func (p *parser) sequence() (*node, error) {
	var kids []*node
	for p.at < len(p.src) && p.peek() != '|' && p.peek() != ')' {
		if p.eat("(?i)") {
			p.fold = true
			continue
		}
		n, err := p.atom()
		if err == nil && n.op == opClass && p.fold {
			if err := p.budget.Work(foldSteps + len(n.runes)); err != nil {
				return nil, err
			}
			n.runes = n.runes.folded(false)
		}
		if err == nil {
			n, err = p.quantified(n)
		}
		if err != nil {
			return nil, err
		}
		kids = append(kids, n)
	}
	return join(opCat, kids), nil
}

func (p *parser) quantified(n *node) (*node, error) {
	lo, hi := 0, Infinite
	switch {
	case p.eat("*"):
	case p.eat("+"):
		lo = 1
	case p.eat("?"):
		hi = 1
	case p.peek() == '{':
		var ok bool
		if lo, hi, ok = p.counts(); !ok {
			return n, nil
		}
		if lo > mostRepeat || hi > mostRepeat {
			return nil, fmt.Errorf("repetitions are bounded by %d", mostRepeat)
		}
		if hi != Infinite && hi < lo {
			return nil, fmt.Errorf("numbers of a repetition are out of order")
		}
	default:
		return n, nil
	}
	p.eat("?") // whether it is lazy changes nothing of what matches
	if n.op == opBegin || n.op == opEnd || n.op == opEdge || n.op == opNoEdge {
		return nil, fmt.Errorf("an anchor cannot be repeated")
	}
	if c := p.peek(); c == '*' || c == '+' || c == '?' {
		return nil, fmt.Errorf("nothing to repeat")
	}
	return &node{op: opRepeat, kids: []*node{n}, min: lo, max: hi, fixed: n.fixed}, nil
}

// counts reads {n}, {n,} or {n,m}; anything else is plain text.
func (p *parser) counts() (lo, hi int, ok bool) {
	text, _, found := strings.Cut(p.src[p.at+1:], "}")
	if !found {
		return 0, 0, false
	}
	first, second, two := strings.Cut(text, ",")
	lo, err := strconv.Atoi(first)
	if err != nil || lo < 0 {
		return 0, 0, false
	}
	hi = lo
	if two {
		hi = Infinite
		if second != "" {
			if hi, err = strconv.Atoi(second); err != nil || hi < 0 {
				return 0, 0, false
			}
		}
	}
	p.at += len(text) + 2
	return lo, hi, true
}

func (p *parser) atom() (*node, error) {
	switch c := p.peek(); c {
	case '^':
		p.at++
		return &node{op: opBegin, fixed: true}, nil
	case '$':
		p.at++
		return &node{op: opEnd, fixed: true}, nil
	case '(':
		p.at++
		return p.group()
	case '[':
		p.at++
		runes, err := p.class()
		return &node{op: opClass, runes: runes}, err
	case '.':
		p.at++
		return &node{op: opClass, runes: Runes{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.Except()}, nil
	case '\\':
		p.at++
		switch {
		case p.eat("b"):
			return &node{op: opEdge, fixed: true}, nil
		case p.eat("B"):
			return &node{op: opNoEdge, fixed: true}, nil
		}
		runes, _, err := p.escape(false)
		return &node{op: opClass, runes: runes}, err
	case '*', '+', '?':
		return nil, fmt.Errorf("nothing to repeat")
	}
	c, size := utf8.DecodeRuneInString(p.src[p.at:])
	if c == utf8.RuneError && size < 2 {
		return nil, fmt.Errorf("not UTF-8")
	}
	p.at += size
	return &node{op: opClass, runes: Runes{{c, c}}}, nil
}

func (p *parser) group() (*node, error) {
	o := opCat
	switch {
	case p.eat("?:"):
	case p.eat("?i:"):
		defer func(fold bool) { p.fold = fold }(p.fold)
		p.fold = true
	case p.eat("?="):
		o = opAhead
	case p.eat("?!"):
		o = opNotAhead
	case p.eat("?<="), p.eat("?<!"):
		return nil, fmt.Errorf("looking behind is not supported")
	case p.eat("?<"), p.eat("?P<"):
		name, _, ok := strings.Cut(p.src[p.at:], ">")
		if !ok || name == "" {
			return nil, fmt.Errorf("unfinished name of a group")
		}
		p.at += len(name) + 1
	case p.peek() == '?':
		return nil, fmt.Errorf("unknown kind of group")
	}
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.eat(")") {
		return nil, fmt.Errorf("missing )")
	}
	if o != opCat {
		n = &node{op: o, kids: []*node{n}, fixed: true}
	}
	return n, nil
}

func (p *parser) class() (Runes, error) {
	negative := p.eat("^")
	var out Runes
	for !p.eat("]") {
		lo, single, err := p.classAtom()
		if err != nil {
			return nil, err
		}
		if len(out) > mostRanges {
			out = out.Normal()
		}
		if single && p.peek() == '-' && p.at+1 < len(p.src) && p.src[p.at+1] != ']' {
			p.at++
			hi, single, err := p.classAtom()
			if err != nil {
				return nil, err
			}
			if !single { // [a-\d]: the hyphen is meant
				out = append(append(append(out, lo...), [2]rune{'-', '-'}), hi...)
				continue
			}
			if hi[0][0] < lo[0][0] {
				return nil, fmt.Errorf("range out of order")
			}
			out = append(out, [2]rune{lo[0][0], hi[0][0]})
			continue
		}
		out = append(out, lo...)
	}
	if negative {
		if p.fold {
			if err := p.budget.Work(foldSteps + len(out)); err != nil {
				return nil, err
			}
			out = out.folded(true)
		}
		return out.Except(), nil
	}
	return out.Normal(), nil
}

func (p *parser) classAtom() (r Runes, single bool, err error) {
	if p.at >= len(p.src) {
		return nil, false, fmt.Errorf("missing ]")
	}
	if p.eat(`\`) {
		return p.escape(true)
	}
	c, size := utf8.DecodeRuneInString(p.src[p.at:])
	p.at += size
	return Runes{{c, c}}, true, nil
}
